// A filter of system calls for confined work, by seccomp and libseccomp. Linux only.
#pragma once
#include <string>

namespace tw {

// Returns false on an architecture where the arguments of some calls are not known here.
bool can_limit_calls();

// Limits this process, for ever, to the calls that compiling and running a model need: memory,
// threads, clocks, signals to itself, and files, which Landlock limits further. The kernel refuses
// all other calls, also those that later kernels bring. Returns the reason of a failure, "" on
// success.
std::string limit_calls();

}  // namespace tw
