// Checks of tokens that do not run the kernel.
#pragma once
#include <functional>
#include <string>

#include "ir/kernel/kernel.h"

namespace tw {

// Reports every queue that does not end with the tokens it began with, as far as loops and
// conditions are known. Also reports every buffer that one role writes and another reads without a
// token from writer to reader. A writer that fills the buffer repeatedly also needs a token back.
void verify_tokens(const Kernel& kernel, const std::function<void(const std::string&)>& report);

}  // namespace tw
