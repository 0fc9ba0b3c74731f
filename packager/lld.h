// lld in this process, from memory to memory. The result depends on nothing but the arguments and
// the objects: no path, time or thread count. Thread-safe (lld is not: calls take turns).
#pragma once
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct LldInputs {
  const std::vector<std::string>& objects;  // relocatable ELF files' bytes, in link order
  bool where_needed = false;                // each only where the others lack a name it defines
};

// What lld writes. Errors: what it says.
Expected<std::string> run_lld(std::vector<std::string> arguments,
                              const std::vector<LldInputs>& inputs);

}  // namespace tw
