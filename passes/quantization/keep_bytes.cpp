// before: %f = cast(const i8 w)  %d = mul(%f, const s[N])  %y = matmul(%x, %d)
// after:  %f = cast(const i8 w)  %p = matmul(%x, %f)  %y = mul(%p, const s[N])
// The cast shares the product's kernel, which reads bytes. The same is done to dequantized weights,
// and to the weights of a convolution, whose bias is then added behind its scale. Zero points are
// subtracted at compile time. If the model must stay small, all such products are rewritten;
// otherwise only those with few rows, which spend their time on reading weights. Why here: after
// duplicates are merged, as each product has a cast of its own; before products are joined, which
// takes constants.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/graph/short_floats.h"
#include "passes/passes.h"
#include "passes/quantization/keep_bytes.h"
#include "passes/quantization/quantization.h"

namespace tw {
namespace {

// Up to this number of rows, reading a quarter of the bytes saves more than widening them costs,
// which each tile of rows pays. It holds if a run reads the weights from behind the second cache
// level.
constexpr int64_t kFewRows = 4;

int64_t few_rows(const Graph& graph, const Target& target) {
  int64_t bytes = 0;  // size of the constants if they were floats
  for (size_t i = 0; i < graph.value_count(); ++i)
    if (const ValueId v{static_cast<int32_t>(i)}; graph.is_constant(v))
      bytes += constant_bytes(graph, v) * (dtype_bytes(graph.value(v).type.dtype) == 1 ? 4 : 1);
  return bytes > target.l2_bytes ? kFewRows : 1;
}

// Constant bytes and their numbers: one for all, or one for each of the output's channels or
// columns.
struct ByteWeights {
  ValueId bytes;
  std::vector<double> scale, zero;
  std::optional<Tensor> centered;  // bytes less the zero points, if these are not 0
  std::vector<NodeId> nodes;       // make floats of the bytes
};

// The numbers of a constant that varies only along this axis of the weights.
std::optional<std::vector<double>> along(const Graph& graph, ValueId v, const Shape& weights,
                                         size_t axis) {
  if (!graph.is_constant(v) || graph.value(v).type.dtype != DType::f32) return std::nullopt;
  const Tensor tensor = graph.constant_tensor(v);
  const size_t rank = tensor.shape.size(), missing = weights.size() - rank;
  if (rank > weights.size()) return std::nullopt;
  for (size_t i = 0; i < rank; ++i)
    if (tensor.shape[i] != 1 && i + missing != axis) return std::nullopt;
  return to_doubles(tensor);
}

// The bytes less the zero points along the axis; nullopt if they do not fit i8.
std::optional<Tensor> less_zero(const Tensor& bytes, const std::vector<double>& zero, size_t axis) {
  int64_t inner = 1;
  for (size_t i = bytes.shape.size(); i-- > axis + 1;) inner *= bytes.shape[i];
  Tensor out = Tensor::zeros(DType::i8, bytes.shape);
  for (int64_t i = 0; i < bytes.size(); ++i) {
    const auto at = static_cast<size_t>(i / inner % bytes.shape[axis]);
    const double value = static_cast<double>(bytes.int_at(i)) - zero[zero.size() == 1 ? 0 : at];
    if (value != std::nearbyint(value) || value < -128 || value > 127) return std::nullopt;
    out.set_int(i, static_cast<int64_t>(value));
  }
  return out;
}

class KeptProduct {
 public:
  KeptProduct(const Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), few_rows_(few_rows(graph, context.target)) {}

  // nullopt for another node, or one that must read floats.
  std::optional<ByteWeights> weights_of(const Node& node) const {
    const auto* conv = get_if<op::Conv>(&node);
    const auto* product = get_if<op::MatMul>(&node);
    if ((!conv && !product) || !context_.target.axes.empty() || !all_plain(graph_, node))
      return std::nullopt;
    const TensorType &x = type(node.inputs[0]), &w = type(node.inputs[1]);
    if (x.dtype != DType::f32 || graph_.is_constant(node.inputs[0]) || !static_shape(w.shape))
      return std::nullopt;
    const Shape& y = type(node.output).shape;
    if (!context_.keep_small && !has_few_rows(y, conv ? 1 : y.size() - 1)) return std::nullopt;
    if (conv) {
      if (conv->group != 1) return std::nullopt;
      return weights_along(node.inputs[1], 0);
    }
    if (w.shape.size() != 2 || product->trans_a || is_const(y.back(), 1)) return std::nullopt;
    return weights_along(node.inputs[1], product->trans_b ? 0 : 1);
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }

  // Rows are the points of all axes but that of columns or channels, at their largest extents.
  bool has_few_rows(const Shape& shape, size_t columns) const {
    Ranges ranges;
    for (const auto& [symbol, limits] : graph_.limits)
      ranges[symbol] = {Expr(limits.least), limits.most < INT64_MAX ? Expr(limits.most) : Expr()};
    int64_t rows = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (axis == columns) continue;
      const std::optional<int64_t> most = constant_bounds(shape[axis], ranges).max;
      if (!most || *most > few_rows_) return false;
      rows *= std::max<int64_t>(*most, 1);
    }
    return rows <= few_rows_;
  }

  std::optional<ByteWeights> weights_along(ValueId value, size_t axis) const {
    const Shape& shape = type(value).shape;
    ByteWeights out{{}, {1}, {0}, {}, {}};
    if (const auto by = dequantized(graph_, value)) {
      if (by->by.axis >= 0 && by->by.axis != static_cast<int64_t>(axis)) return std::nullopt;
      out.bytes = by->x, out.nodes = {graph_.value(value).def};
      out.scale.assign(by->by.scale.begin(), by->by.scale.end());
      out.zero.assign(by->by.zero.begin(), by->by.zero.end());
    } else {
      ValueId v = value;
      if (!take(v, BinaryOp::mul, shape, axis, out.scale, out) ||
          !take(v, BinaryOp::add, shape, axis, out.zero, out))
        return std::nullopt;
      for (double& zero : out.zero) zero = -zero;  // canonicalize has turned differences into sums
      const Node* cast = graph_.def(v);
      if (!cast || !widens_bytes(graph_, *cast)) return std::nullopt;
      out.nodes.push_back(graph_.value(v).def);
      out.bytes = cast->inputs[0];
    }
    const DType dtype = type(out.bytes).dtype;
    const bool bytes = graph_.is_constant(out.bytes) && (dtype == DType::i8 || dtype == DType::u8);
    if (!bytes || !equal(type(out.bytes).shape, shape)) return std::nullopt;
    if (std::ranges::all_of(out.zero, [](double z) { return z == 0; })) return out;
    out.centered = less_zero(graph_.constant_tensor(out.bytes), out.zero, axis);
    return out.centered ? std::optional(std::move(out)) : std::nullopt;
  }

  // If v is such a node with a constant, takes its numbers and moves v to its other operand.
  // Returns false if the constant has another form.
  bool take(ValueId& v, BinaryOp function, const Shape& shape, size_t axis,
            std::vector<double>& numbers, ByteWeights& out) const {
    const Node* node = graph_.def(v);
    if (!is_binary(node, function)) return true;
    const size_t side = graph_.is_constant(node->inputs[0]) ? 0 : 1;
    const auto found = along(graph_, node->inputs[side], shape, axis);
    if (!found || !equal(type(node->inputs[1 - side]).shape, shape)) return false;
    out.nodes.push_back(graph_.value(v).def);
    numbers = *found;
    v = node->inputs[1 - side];
    return true;
  }

  const Graph& graph_;
  const PassContext& context_;
  const int64_t few_rows_;
};

class Keeper {
 public:
  Keeper(Graph& graph, const PassContext& context)
      : graph_(graph), rewriter_(graph), kept_(graph, context) {}

  Expected<bool> run(PassContext& context) {
    int count = 0;
    for (const NodeId id : graph_.order()) {
      const auto weights = kept_.weights_of(graph_.node(id));
      if (!weights) continue;
      ++count;
      if (!is_kept(graph_.node(id).inputs[1])) keep(id, *weights);
    }
    context.report = llvm::formatv("{0} products of bytes", count).str();
    return rewriter_.changed();
  }

 private:
  bool is_kept(ValueId weights) const {
    return get_if<op::Cast>(graph_.def(weights)) && rewriter_.uses(weights) == 1;
  }

  void keep(NodeId id, const ByteWeights& weights) {
    const Node node = graph_.node(id);
    const auto* product = std::get_if<op::MatMul>(&node.attrs);
    const std::string name = graph_.value(node.output).name;
    const ValueId bytes = weights.centered
                              ? rewriter_.add_constant(name + "_bytes", *weights.centered)
                              : weights.bytes;
    const bool scales = std::ranges::any_of(weights.scale, [](double s) { return s != 1; });
    const bool biased = input_or_none(node, 2).valid();
    std::vector<ValueId> inputs = {node.inputs[0],
                                   rewriter_.add(op::Cast{DType::f32}, {bytes}, id, "widened")};
    if (!scales) {
      if (biased) inputs.push_back(node.inputs[2]);
      return rewriter_.update(id, node.attrs, inputs);
    }
    std::vector<int64_t> shape = {static_cast<int64_t>(weights.scale.size())};
    if (!product) shape.resize(graph_.value(node.output).type.shape.size() - 1, 1);
    const ValueId scale = rewriter_.add_constant(name + "_scale",
                                                 from_doubles(DType::f32, shape, weights.scale));
    ValueId y = rewriter_.add(node.attrs, inputs, id, "of_bytes");
    if (!biased) return rewriter_.update(id, op::Binary{BinaryOp::mul}, {y, scale});
    y = rewriter_.add(op::Binary{BinaryOp::mul}, {y, scale}, id, "scaled");
    Shape channels(shape.size(), Expr(1));
    channels[0] = graph_.value(node.inputs[2]).type.shape[0];
    rewriter_.update(id, op::Binary{BinaryOp::add},
                     {y, rewriter_.add(op::Reshape{channels}, {node.inputs[2]}, id, "channels")});
  }

  Graph& graph_;
  Rewriter rewriter_;
  KeptProduct kept_;
};

}  // namespace

std::set<NodeId> nodes_of_kept_bytes(const Graph& graph, const PassContext& context) {
  const KeptProduct kept(graph, context);
  const std::vector<std::vector<NodeId>> users = graph.users();
  std::set<NodeId> nodes;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto weights = kept.weights_of(node);
    if (!weights) continue;
    const auto& readers = users[static_cast<size_t>(node.inputs[1].index)];
    const bool all = std::ranges::all_of(readers, [&](NodeId reader) {
      return kept.weights_of(graph.node(reader)) && graph.node(reader).inputs[0] != node.inputs[1];
    });
    if (all) nodes.insert(weights->nodes.begin(), weights->nodes.end());
  }
  return nodes;
}

Expected<bool> keep_bytes(Graph& graph, PassContext& context) {
  return Keeper(graph, context).run(context);
}

}  // namespace tw
