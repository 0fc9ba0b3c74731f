// What can be said of tokens without running the kernel.
#pragma once
#include <functional>
#include <string>

#include "ir/kernel/kernel.h"

namespace tw {

// Reports every queue that does not end with the tokens it began with, where loops and conditions
// are known, and every buffer that one role writes and another one reads with no token from writer
// to reader, or, when the writer fills it again and again, back.
void verify_tokens(const Kernel& kernel, const std::function<void(const std::string&)>& report);

}  // namespace tw
