// Compilation of regular expressions in RE2's syntax to programs for tw_op_string_match
// (runtime/ops/string_match.c). It covers all expressions that need no memory of what was matched.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw::onnx_import {

// The words of a program. Errors: an invalid expression, or the name of an unsupported part.
Expected<std::vector<int32_t>> compile_regex(const std::string& pattern);

}  // namespace tw::onnx_import
