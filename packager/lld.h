// Runs lld in this process, from memory to memory. The result depends on nothing but the arguments
// and the objects: no path, time or thread count. Thread-safe: calls take turns, since lld itself
// is not.
#pragma once
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

struct LldInputs {
  const std::vector<std::string>& objects;  // bytes of relocatable ELF files, in link order
  bool where_needed = false;  // takes an object only where it defines a name that the others lack
};

// The bytes of lld's output. Errors: lld's messages.
Expected<std::string> run_lld(std::vector<std::string> arguments,
                              const std::vector<LldInputs>& inputs);

}  // namespace tw
