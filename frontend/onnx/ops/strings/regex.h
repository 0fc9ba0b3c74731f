// Regular expressions, as RE2 writes them, to programs for tw_op_string_match
// (runtime/ops/string_match.c): all that need no memory of what was matched.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw::onnx_import {

// The words of a program. Errors: what is no expression, and by name what is not supported.
Expected<std::vector<int32_t>> compile_regex(const std::string& pattern);

}  // namespace tw::onnx_import
