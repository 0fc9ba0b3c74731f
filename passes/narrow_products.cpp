// before: %y: f32 = matmul(%x, const w)
// after:  %xn: bf16 = cast(%x)  %xw: f32 = cast(%xn)  %ww: f32 = cast(const w as bf16)
//         %y: f32 = matmul(%xw, %ww)
// Products and convolutions of constant weights multiply bf16 and sum in f32. The casts to f32
// share the product's kernel, which reads bf16; the casts to bf16 share the kernel that makes %x.
// Element-wise readers of %x read the same bf16, so that memory holds one value; where others read
// it, or the caller does, it stays f32 beside its bf16. Why here: after constants are folded, which
// would widen the weights; before layouts, which see the casts.
#include <algorithm>
#include <map>
#include <set>

#include "ir/group.h"
#include "ir/simplify.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

bool is_static(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Expr& e) { return as_const(e).has_value(); });
}

class Narrower {
 public:
  explicit Narrower(Graph& graph) : graph_(graph), rewriter_(graph), users_(graph.users()) {
    for (const Graph::Output& output : graph.outputs()) kept_.insert(output.value);
    for (const DataSymbol& symbol : graph.data_symbols) kept_.insert(symbol.value);
  }

  int run() {
    int count = 0;
    for (const NodeId id : graph_.order()) {
      if (!multiplies_constant(graph_.node(id))) continue;
      narrow(id);
      ++count;
    }
    for (const auto& [value, narrow] : narrow_) share(value, narrow);
    return count;
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }

  bool multiplies_constant(const Node& node) const {
    const auto* conv = get_if<op::Conv>(&node);
    const auto* product = get_if<op::MatMul>(&node);
    if (!conv && !product) return false;
    const ValueId x = node.inputs[0], w = node.inputs[1];
    if (type(x).dtype != DType::f32 || !graph_.is_constant(w) || graph_.is_constant(x))
      return false;
    if (conv) return conv->group == 1 && is_static(type(x).shape) && is_static(type(w).shape);
    const Shape& columns = type(node.output).shape;
    return type(w).shape.size() == 2 && !product->trans_a && is_static(type(w).shape) &&
           !is_const(columns.back(), 1);
  }

  void narrow(NodeId id) {
    const Node node = graph_.node(id);
    const auto [x, fresh] = narrow_.try_emplace(node.inputs[0]);
    if (fresh) x->second = rewriter_.add(op::Cast{DType::bf16}, {x->first}, id, "x_bf16");
    const auto [w, first] = weights_.try_emplace(node.inputs[1]);
    if (first) w->second = narrowed_constant(w->first);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = rewriter_.add(op::Cast{DType::f32}, {x->second}, id, "x");
    inputs[1] = rewriter_.add(op::Cast{DType::f32}, {w->second}, id, "w");
    rewriter_.update(id, node.attrs, inputs);
  }

  ValueId narrowed_constant(ValueId constant) {
    const Tensor wide = graph_.constant_tensor(constant);
    Tensor narrow = Tensor::zeros(DType::bf16, wide.shape);
    for (int64_t i = 0; i < wide.size(); ++i) narrow.set(i, wide.at(i));
    return rewriter_.add_constant(graph_.value(constant).name + "_bf16", narrow);
  }

  // Element-wise readers of the value read its bf16, each through a cast of its own, which shares
  // its kernel.
  void share(ValueId value, ValueId narrow) {
    if (kept_.contains(value) || !graph_.value(value).def.valid()) return;
    std::vector<NodeId> others;
    for (const NodeId user : users_[static_cast<size_t>(value.index)]) {
      const Node& node = graph_.node(user);
      if (std::ranges::find(node.inputs, value) == node.inputs.end()) continue;
      if (!is_elementwise(node) || !equal(type(node.output).shape, type(value).shape)) return;
      others.push_back(user);
    }
    for (const NodeId user : others) {
      const Node node = graph_.node(user);
      std::vector<ValueId> inputs = node.inputs;
      const auto at = std::ranges::find(inputs, value);
      if (at == inputs.end()) continue;  // read twice, and rewritten
      std::ranges::replace(inputs, value,
                           rewriter_.add(op::Cast{DType::f32}, {narrow}, user, "wide"));
      rewriter_.update(user, node.attrs, inputs);
    }
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::vector<std::vector<NodeId>> users_;  // before the pass
  std::map<ValueId, ValueId> narrow_, weights_;
  std::set<ValueId> kept_;  // read from outside
};

}  // namespace

Expected<bool> narrow_products(Graph& graph, PassContext& context) {
  const int count = Narrower(graph).run();
  context.report = llvm::formatv("{0} products of bf16", count).str();
  return count > 0;
}

}  // namespace tw
