// Shape arithmetic: elements of small integer tensors as dim expressions through the core
// operators.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/simplify.h"

namespace tw::onnx_import {

struct KnownInput {
  const TensorType* type = nullptr;
  const std::vector<Expr>* elements = nullptr;  // null: not known
};

// Row-major elements of the output, or nothing when the operator or what it is applied to is not
// followed. Values are computed in i64 without wrapping to narrower types; bool is 0 or 1. `out`
// has a static shape.
std::optional<std::vector<Expr>> propagate(const OpAttrs& attrs,
                                           const std::vector<KnownInput>& inputs,
                                           const TensorType& out, const Ranges& symbols);

}  // namespace tw::onnx_import
