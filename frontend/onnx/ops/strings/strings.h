// Strings in importers: values of the type string, which the runtime library's functions make and
// compare (runtime/ops/strings.c). Anything else only moves them.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// A constant of this shape. A failure for strings with a zero byte.
Val string_constant(NodeImport& n, const std::vector<std::string>& texts, Shape shape);
// The places (i64) of x's strings among these, -1 for others; of equal ones the last counts.
Val string_places(NodeImport& n, Val x, const std::vector<std::string>& texts);
// Both of one shape, as operators with two operands broadcast.
std::pair<Val, Val> string_operands(NodeImport& n);

// Sets the output of TfIdfVectorizer: x, [length] or [rows, length], are i64, as the pool.
void count_ngrams(NodeImport& n, Val x, const Ints& pool);

}  // namespace tw::onnx_import
