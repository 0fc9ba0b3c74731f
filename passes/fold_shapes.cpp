// before: %s = shape_of(%x: f32[batch, 3])  %n = gather(%s, const 0) axis=0  %m = mul(%n, const 2)
// after:  %m = dim_vector values=[2*batch] scalar
// Vectors of dimensions are followed through binary operators, gather, concat, slice, reshape,
// expand, cast and reductions; what turns out to be free of symbols becomes a constant. Why here:
// constant folding stops at values that depend on a symbol, and shapes without symbols are
// constants for it.
#include <algorithm>

#include "ir/size_ends.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr int64_t kMaxElements = 256;

struct Dims {
  Shape values;
  bool scalar = false;
};
using MaybeDims = std::optional<Dims>;

// The elements of an i64 scalar or vector as dimension expressions; nullopt if they are unknown.
MaybeDims dims_of(const Graph& graph, ValueId value) {
  if (!value.valid()) return std::nullopt;
  if (const op::DimVector* vector = get_if<op::DimVector>(graph.def(value)))
    return Dims{vector->values, vector->scalar};
  const TensorType& type = graph.value(value).type;
  if (!graph.is_constant(value) || type.dtype != DType::i64 || type.shape.size() > 1)
    return std::nullopt;
  Tensor tensor = graph.constant_tensor(value);
  if (tensor.size() > kMaxElements) return std::nullopt;
  Dims dims{{}, tensor.shape.empty()};
  for (int64_t i = 0; i < tensor.size(); ++i) dims.values.push_back(tensor.int_at(i));
  return dims;
}

std::optional<std::vector<int64_t>> constants_of(const Graph& graph, ValueId value) {
  MaybeDims dims = dims_of(graph, value);
  return dims ? static_shape(dims->values) : std::nullopt;
}

// True for operators that mean the same on i64 tensors and in dimension expressions.
bool is_dim_arithmetic(BinaryOp function) {
  switch (function) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max: return true;
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod:
      return true;  // the divisor must be a positive constant, which apply() checks
    case BinaryOp::pow:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return false;
  }
  TW_UNREACHABLE("bad binary operator");
}

bool is_division(BinaryOp f) {
  return f == BinaryOp::div || f == BinaryOp::floor_div || f == BinaryOp::floor_mod ||
         f == BinaryOp::mod;
}

std::optional<Expr> apply(BinaryOp function, const Expr& a, const Expr& b) {
  if (is_division(function)) {
    std::optional<int64_t> divisor = as_const(b);
    if (!divisor || *divisor <= 0) return std::nullopt;
    // For numbers that are not negative, truncation equals flooring, which simplify() knows better.
    if (is_const(simplify_dim(min(a, 0)), 0)) {
      if (function == BinaryOp::div) function = BinaryOp::floor_div;
      if (function == BinaryOp::mod) function = BinaryOp::floor_mod;
    }
  }
  return simplify_dim(binary(function, a, b));
}

MaybeDims fold_binary(const Graph& graph, const Node& node) {
  BinaryOp function = std::get<op::Binary>(node.attrs).function;
  MaybeDims a = dims_of(graph, node.inputs[0]), b = dims_of(graph, node.inputs[1]);
  if (!a || !b || !is_dim_arithmetic(function)) return std::nullopt;
  size_t size = a->values.size() == 1 ? b->values.size() : a->values.size();
  Dims out{{}, a->scalar && b->scalar};
  for (size_t i = 0; i < size; ++i) {
    const Expr& left = a->values[a->values.size() == 1 ? 0 : i];
    std::optional<Expr> value = apply(function, left, b->values[b->values.size() == 1 ? 0 : i]);
    if (!value) return std::nullopt;
    out.values.push_back(*value);
  }
  return out;
}

MaybeDims fold_gather(const Graph& graph, const Node& node) {
  MaybeDims data = dims_of(graph, node.inputs[0]);
  std::optional<std::vector<int64_t>> indices = constants_of(graph, node.inputs[1]);
  if (!data || !indices) return std::nullopt;
  Dims out{{}, graph.value(node.output).type.shape.empty()};
  int64_t size = static_cast<int64_t>(data->values.size());
  for (int64_t index : *indices) {
    if (index < -size || index >= size) return std::nullopt;
    out.values.push_back(data->values[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  return out;
}

MaybeDims fold_concat(const Graph& graph, const Node& node) {
  Dims out;
  for (ValueId input : node.inputs) {
    MaybeDims part = dims_of(graph, input);
    if (!part) return std::nullopt;
    out.values.insert(out.values.end(), part->values.begin(), part->values.end());
  }
  return out;
}

MaybeDims fold_slice(const Graph& graph, const Node& node) {
  const op::Slice& slice = std::get<op::Slice>(node.attrs);
  MaybeDims data = dims_of(graph, node.inputs[0]);
  if (!data || data->scalar) return std::nullopt;
  std::optional<int64_t> start = as_const(slice.starts[0]), size = as_const(slice.sizes[0]);
  if (!start || !size) return std::nullopt;
  Dims out;
  for (int64_t i = 0; i < *size; ++i) {
    int64_t from = *start + i * slice.steps[0];
    if (from < 0 || from >= static_cast<int64_t>(data->values.size())) return std::nullopt;
    out.values.push_back(data->values[static_cast<size_t>(from)]);
  }
  return out;
}

// Folds reshape, expand and cast, which keep the elements or repeat the only one.
MaybeDims fold_copy(const Graph& graph, const Node& node) {
  MaybeDims data = dims_of(graph, node.inputs[0]);
  std::optional<std::vector<int64_t>> shape = static_shape(graph.value(node.output).type.shape);
  if (!data || !shape || shape->size() > 1) return std::nullopt;
  size_t size = shape->empty() ? 1 : static_cast<size_t>((*shape)[0]);
  if (data->values.size() == size) return Dims{data->values, shape->empty()};
  if (data->values.size() != 1 || size > kMaxElements) return std::nullopt;
  return Dims{Shape(size, data->values[0]), shape->empty()};
}

MaybeDims fold_reduce(const Graph& graph, const Node& node) {
  const op::Reduce& reduce = std::get<op::Reduce>(node.attrs);
  MaybeDims data = dims_of(graph, node.inputs[0]);
  if (!data || data->values.empty() || reduce.axes.empty()) return std::nullopt;
  std::optional<BinaryOp> function;
  switch (reduce.kind) {
    case ReduceKind::sum: function = BinaryOp::add; break;
    case ReduceKind::prod: function = BinaryOp::mul; break;
    case ReduceKind::max: function = BinaryOp::max; break;
    case ReduceKind::min: function = BinaryOp::min; break;
    case ReduceKind::mean: return std::nullopt;
  }
  Expr total = data->values[0];
  for (size_t i = 1; i < data->values.size(); ++i)
    total = simplify_dim(binary(*function, total, data->values[i]));
  return Dims{{total}, graph.value(node.output).type.shape.empty()};
}

// The dimensions that the node computes, if they are known.
MaybeDims fold(const Graph& graph, const Node& node) {
  const TensorType& type = graph.value(node.output).type;
  if (type.dtype != DType::i64 || type.shape.size() > 1) return std::nullopt;
  const OpAttrs& attrs = node.attrs;
  if (std::holds_alternative<op::Binary>(attrs)) return fold_binary(graph, node);
  if (std::holds_alternative<op::Reduce>(attrs)) return fold_reduce(graph, node);
  if (std::holds_alternative<op::Concat>(attrs)) return fold_concat(graph, node);
  if (std::holds_alternative<op::Slice>(attrs)) return fold_slice(graph, node);
  if (std::holds_alternative<op::Gather>(attrs)) return fold_gather(graph, node);
  if (std::holds_alternative<op::DimVector>(attrs)) return dims_of(graph, node.output);
  if (std::holds_alternative<op::ShapeOf>(attrs))
    return Dims{graph.value(node.inputs[0]).type.shape, false};
  bool copies = std::holds_alternative<op::Cast>(attrs) ||
                std::holds_alternative<op::Reshape>(attrs) ||
                std::holds_alternative<op::Expand>(attrs);
  return copies ? fold_copy(graph, node) : std::nullopt;
}

// Longer expressions are computed at run time: a size that each step reads twice doubles in each
// step.
bool is_too_long(const Expr& value) {
  constexpr int64_t kMostKnownParts = 100;
  return has_many_parts(value, kMostKnownParts);
}

}  // namespace

Expected<bool> fold_shapes(Graph& graph, PassContext&) {
  Rewriter rewriter(graph);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.erased || rewriter.uses(node.output) == 0) continue;
    MaybeDims dims = fold(graph, node);
    if (!dims || std::ranges::any_of(dims->values, is_too_long)) continue;
    std::optional<std::vector<int64_t>> values = static_shape(dims->values);
    if (values) {
      std::vector<int64_t> shape;
      if (!dims->scalar) shape.push_back(static_cast<int64_t>(values->size()));
      Tensor tensor = Tensor::zeros(DType::i64, shape);
      for (size_t i = 0; i < values->size(); ++i)
        tensor.set_int(static_cast<int64_t>(i), (*values)[i]);
      rewriter.replace_by_constant(id, tensor);
    } else if (!std::holds_alternative<op::DimVector>(node.attrs)) {
      rewriter.update(id, op::DimVector{dims->values, dims->scalar}, {});
    }
  }
  return rewriter.changed();
}

}  // namespace tw
