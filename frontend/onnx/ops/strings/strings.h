// Strings in importers: values of the type string. Functions of the runtime library make and
// compare them (runtime/ops/strings.c); all other operators only move them.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// A constant of this shape; a failure if a string has a zero byte.
Val string_constant(NodeImport& n, const std::vector<std::string>& texts, Shape shape);
// The places (i64) of x's strings among `texts`, -1 for others. Among equal texts the last one
// counts.
Val string_places(NodeImport& n, Val x, const std::vector<std::string>& texts);
// The two operands of the node, broadcast to one shape.
std::pair<Val, Val> string_operands(NodeImport& n);

// Sets the output of TfIdfVectorizer. x is i64, [length] or [rows, length], as the pool is.
void count_ngrams(NodeImport& n, Val x, const Ints& pool);

}  // namespace tw::onnx_import
