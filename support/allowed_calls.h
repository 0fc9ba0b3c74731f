// Which calls of the kernel confined work may make. Of Linux with seccomp, by libseccomp.
#pragma once
#include <string>

namespace tw {

// False: on this architecture the arguments of some calls are not known here.
bool can_limit_calls();

// Limits this process, for ever, to the calls that compiling and running a model take: memory,
// threads, clocks, signals to itself, and files, of which Landlock says which. All others, also
// those that later kernels bring, are refused. What failed; "": nothing.
std::string limit_calls();

}  // namespace tw
