// Shape arithmetic: follows the elements of small integer tensors through the core operators, as
// dim expressions.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/simplify.h"

namespace tw::onnx_import {

struct KnownInput {
  const TensorType* type = nullptr;
  const std::vector<Expr>* elements = nullptr;  // null: unknown
};

// The output's elements in row-major order; nullopt if the operator, or its use here, is not
// followed. Elements are computed in i64 and do not wrap to narrower types; a bool is 0 or 1. `out`
// must have a static shape.
std::optional<std::vector<Expr>> propagate(const OpAttrs& attrs,
                                           const std::vector<KnownInput>& inputs,
                                           const TensorType& out, const Ranges& symbols);

}  // namespace tw::onnx_import
