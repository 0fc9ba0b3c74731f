// before: %y: f32[3, 5] = matmul(%a, %b), of f32[3, 0] and f32[0, 5]
// after:  %y: f32[3, 5] = expand(const 0)
// A tensor without elements is a constant without bytes, and a sum of nothing is the number that it
// begins with: 0, or a convolution's bias. Why here: the kernels of products and convolutions, and
// all that chooses and schedules them, divide by extents. Shapes are known, and no pattern is
// matched yet.
#include <algorithm>
#include <limits>

#include "ir/graph/externs.h"
#include "ir/scalar_ops.h"
#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

bool has_no_elements(const TensorType& type) {
  return std::ranges::any_of(type.shape, [](const Expr& extent) { return is_const(extent, 0); });
}

std::optional<Tensor> empty_tensor(const TensorType& type) {
  const auto shape = static_shape(type.shape);
  return shape ? std::optional<Tensor>(Tensor::zeros(type.dtype, *shape)) : std::nullopt;
}

// The number that a reduction begins with; nullopt for a mean, and for max and min of integers.
std::optional<double> beginning(ReduceKind kind, DType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::sum: return 0;
    case ReduceKind::prod: return 1;
    case ReduceKind::max: return is_float(type) ? std::optional<double>(-kInfinity) : std::nullopt;
    case ReduceKind::min: return is_float(type) ? std::optional<double>(kInfinity) : std::nullopt;
    case ReduceKind::mean: return std::nullopt;
  }
  TW_UNREACHABLE("bad reduction");
}

class EmptyFolder {
 public:
  explicit EmptyFolder(Graph& graph) : rewriter_(graph), graph_(graph) {}

  bool run() {
    for (NodeId id : graph_.order())
      if (!graph_.node(id).erased && !make_nothing(id)) sum_nothing(id);
    return rewriter_.changed();
  }

 private:
  bool reads_nothing(const Node& node, size_t i) const {
    return has_no_elements(graph_.value(node.inputs[i]).type);
  }

  bool make_nothing(NodeId id) {
    const Node& node = graph_.node(id);
    const auto* call = get_if<op::Extern>(&node);
    if (!regions_of(node.attrs).empty() || (call && call->function == ExternFunction::refuse))
      return false;  // they have effects
    std::vector<Tensor> nothing;
    for (ValueId output : node.outputs()) {
      const TensorType& type = graph_.value(output).type;
      const auto tensor = has_no_elements(type) ? empty_tensor(type) : std::nullopt;
      if (!tensor) return false;
      nothing.push_back(*tensor);
    }
    rewriter_.replace_by_constants(id, nothing);
    return true;
  }

  void sum_nothing(NodeId id) {
    const Node& node = graph_.node(id);
    if (get_if<op::MatMul>(&node) && reads_nothing(node, 0)) return fill(id, 0);
    if ((get_if<op::Conv>(&node) || get_if<op::ConvTranspose>(&node)) &&
        (reads_nothing(node, 0) || reads_nothing(node, 1)))
      return fill_with_bias(id);
    const auto* reduce = get_if<op::Reduce>(&node);
    if (!reduce || !reads_nothing(node, 0)) return;
    if (const auto first = beginning(reduce->kind, graph_.value(node.output).type.dtype))
      fill(id, *first);
  }

  void fill(NodeId id, double number) {
    const Value out = graph_.value(graph_.node(id).output);
    const ValueId value = rewriter_.add_constant(out.name + "_nothing",
                                                 from_doubles(out.type.dtype, {}, {number}));
    rewriter_.update(id, op::Expand{out.type.shape}, {value});
  }

  void fill_with_bias(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId bias = input_or_none(node, 2);
    if (!bias.valid()) return fill(id, 0);
    const Shape shape = graph_.value(node.output).type.shape;
    Shape channels(shape.size() - 1, Expr(1));
    channels[0] = shape[1];
    const ValueId spread = rewriter_.add(op::Reshape{channels}, {bias}, id, "bias");
    rewriter_.update(id, op::Expand{shape}, {spread});
  }

  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

Expected<bool> fold_empty(Graph& graph, PassContext&) { return EmptyFolder(graph).run(); }

}  // namespace tw
