// Layers with constant weights get short floats if the target's precision is bf16 or fp16.
// before: %y: f32 = matmul(%x, const w)
// after:  %xn: bf16 = cast(%x)  %xw: f32 = cast(%xn)  %ww: f32 = cast(const w as bf16)
//         %y: f32 = matmul(%xw, %ww)
// If an instruction does so, products and convolutions multiply bf16 and sum in f32. The casts to
// f32 share the product's kernel, which reads bf16. The casts to bf16 share the kernel that makes
// %x. Element-wise readers of %x read the same bf16, so that memory holds one value. If other nodes
// or the caller read it, it stays f32 beside its bf16.
//
// In attention, the queries, the keys, the result of the softmax and the values are rounded, each
// for its product alone. The casts share the attention's kernel, which multiplies bf16.
// before: %p = softmax(..)  %y = matmul(%p, %v)
// after:  %p = softmax(..)  %pn: bf16 = cast(%p)  %pw: f32 = cast(%pn)  .. %y = matmul(%pw, %vw)
// Layers whose time goes into reading weights have short weights alone, which the kernel widens:
// products with one row, tables of a gather, recurrent weights.
// before: %y: f32 = gather(const t, %i)       after: %s: f16 = gather(const t as f16, %i)
//                                                    %y: f32 = cast(%s)
// Why here: after constants are folded, which would widen the weights; before layouts, which see
// the casts.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/group.h"
#include "ir/simplify.h"
#include "kernels/attention/attention.h"
#include "kernels/device/attention.h"
#include "passes/match_attention.h"
#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr float kLargestHalf = 65504;

bool is_static(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Expr& e) { return as_const(e).has_value(); });
}

// True if all dimensions but the last are 1.
bool is_one_row(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - 1, [](const Expr& e) { return is_const(e, 1); });
}

class Narrower {
 public:
  // `multiplies`: products multiply numbers of the type; otherwise only weights have it.
  Narrower(Graph& graph, PassContext& context, DType type, bool multiplies)
      : graph_(graph),
        context_(context),
        short_(type),
        multiplies_(multiplies),
        rewriter_(graph),
        users_(graph.users()) {
    for (const Graph::Output& output : graph.outputs()) kept_.insert(output.value);
    for (const DataSymbol& symbol : graph.data_symbols) kept_.insert(symbol.value);
  }

  int run() {
    int count = multiplies_ ? narrow_attention() : 0;
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const std::string name = graph_.value(node.output).name;
      if (context_.exact.contains(name)) continue;
      const ValueId weights = narrow_layer(id);
      if (!weights.valid()) continue;
      const int64_t numbers = graph_.constant_tensor(weights).size();
      context_.narrowed[name] = {dtype_name(short_), 2 * numbers, 4 * numbers};
      ++count;
    }
    for (const auto& [value, narrow] : narrow_) share(value, narrow);
    return count;
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }

  // Returns the number of narrowed attentions.
  int narrow_attention() {
    const auto users = [&](ValueId v) {
      std::vector<NodeId> ids = users_[static_cast<size_t>(v.index)];
      std::ranges::sort(ids, {}, &NodeId::index);
      ids.erase(std::ranges::unique(ids).begin(), ids.end());
      return ids;
    };
    const auto is_output = [&](ValueId v) { return kept_.contains(v); };
    std::vector<Attention> found;
    for (const NodeId id : graph_.order())
      if (get_if<op::Softmax>(&graph_.node(id)))
        if (auto match = match_attention(graph_, id, users, is_output))
          found.push_back(std::move(*match));
    int count = 0;
    for (const Attention& attention : found) {
      const std::string name = graph_.value(graph_.node(attention.product).output).name;
      if (context_.exact.contains(name) || !multiplies(attention)) continue;
      for (const NodeId product : {attention.scores, attention.product})
        for (const size_t operand : {0, 1})
          replace_input(product, operand, rounded(graph_.node(product).inputs[operand], product));
      context_.narrowed[name] = {dtype_name(short_), 0, 0};
      ++count;
    }
    return count;
  }

  // True if the attention's kernel multiplies the short type. On a device an instruction of several
  // threads does so, for a symbolic number of queries too.
  bool multiplies(const Attention& attention) const {
    const Node& scores = graph_.node(attention.scores);
    const Shape& shape = type(scores.output).shape;
    if (type(scores.output).dtype != DType::f32) return false;
    if (context_.target.axes.empty())
      return is_static(shape) && *as_const(shape[shape.size() - 2]) >= kFewestShortRows;
    std::optional<AttentionProblem> problem = attention_problem(
        graph_, scores, graph_.node(attention.product), [](ValueId) { return false; });
    if (!problem) return false;
    problem->type = short_;
    const std::optional<AttentionTile> tile = attention_tile(context_.target, *problem);
    return tile && tile->by_instruction;
  }

  ValueId rounded(ValueId v, NodeId like) {
    return rewriter_.add(op::Cast{DType::f32},
                         {rewriter_.add(op::Cast{short_}, {v}, like, dtype_name(short_))}, like,
                         "rounded");
  }

  // Returns the weights that become short; invalid: none.
  ValueId narrow_layer(NodeId id) {
    const Node node = graph_.node(id);
    if (multiplies_ && multiplies_constant(node)) {
      narrow(id);
      return node.inputs[1];
    }
    if (reads_one_row(node)) {
      replace_input(id, 1, widened(node.inputs[1], id));
      return node.inputs[1];
    }
    if (gathers(node)) {
      gather_short(id);
      return node.inputs[0];
    }
    if (get_if<op::Recurrent>(&node) && shortens(node.inputs[1])) {
      replace_input(id, 1, narrowed(node.inputs[1]));
      return node.inputs[1];
    }
    return {};
  }

  // True for an f32 constant whose numbers lie in the range of the short type.
  bool shortens(ValueId constant) const {
    if (!graph_.is_constant(constant) || type(constant).dtype != DType::f32) return false;
    if (short_ == DType::bf16) return true;
    const Tensor wide = graph_.constant_tensor(constant);
    return std::ranges::all_of(wide.as<float>(),
                               [](float v) { return std::abs(v) <= kLargestHalf; });
  }

  bool multiplies_constant(const Node& node) const {
    const auto* conv = get_if<op::Conv>(&node);
    const auto* product = get_if<op::MatMul>(&node);
    if (!conv && !product) return false;
    const ValueId x = node.inputs[0], w = node.inputs[1];
    if (type(x).dtype != DType::f32 || !graph_.is_constant(w) || graph_.is_constant(x))
      return false;
    if (conv) return conv->group == 1 && is_static(type(x).shape) && is_static(type(w).shape);
    return is_matrix_product(node);
  }

  bool is_matrix_product(const Node& node) const {
    const Shape& columns = type(node.output).shape;
    const TensorType& w = type(node.inputs[1]);
    return w.shape.size() == 2 && !std::get<op::MatMul>(node.attrs).trans_a && is_static(w.shape) &&
           !is_const(columns.back(), 1);
  }

  bool reads_one_row(const Node& node) const {
    return get_if<op::MatMul>(&node) && type(node.inputs[0]).dtype == DType::f32 &&
           !graph_.is_constant(node.inputs[0]) && is_matrix_product(node) &&
           is_one_row(type(node.inputs[0]).shape) && shortens(node.inputs[1]);
  }

  bool gathers(const Node& node) const {
    return get_if<op::Gather>(&node) && shortens(node.inputs[0]) &&
           type(node.inputs[0]).shape.size() > 1;
  }

  void narrow(NodeId id) {
    const Node node = graph_.node(id);
    const auto [x, fresh] = narrow_.try_emplace(node.inputs[0]);
    if (fresh) x->second = rewriter_.add(op::Cast{short_}, {x->first}, id, "x_bf16");
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = rewriter_.add(op::Cast{DType::f32}, {x->second}, id, "x");
    inputs[1] = widened(node.inputs[1], id);
    rewriter_.update(id, node.attrs, inputs);
  }

  void gather_short(NodeId id) {
    const Node node = graph_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = narrowed(inputs[0]);
    const ValueId rows = rewriter_.add(node.attrs, inputs, id, "short");
    rewriter_.update(id, op::Cast{DType::f32}, {rows});
  }

  void replace_input(NodeId id, size_t index, ValueId value) {
    const Node node = graph_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    inputs[index] = value;
    rewriter_.update(id, node.attrs, inputs);
  }

  ValueId widened(ValueId constant, NodeId like) {
    return rewriter_.add(op::Cast{DType::f32}, {narrowed(constant)}, like, "w");
  }

  ValueId narrowed(ValueId constant) {
    const auto [w, first] = weights_.try_emplace(constant);
    if (!first) return w->second;
    const Tensor wide = graph_.constant_tensor(constant);
    Tensor narrow = Tensor::zeros(short_, wide.shape);
    for (int64_t i = 0; i < wide.size(); ++i) narrow.set(i, wide.at(i));
    w->second = rewriter_.add_constant(graph_.value(constant).name + "_" + dtype_name(short_),
                                       narrow);
    return w->second;
  }

  // Lets element-wise readers of the value read its bf16, each through a cast of its own, which
  // shares the reader's kernel.
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
      if (at == inputs.end()) continue;  // the node reads the value twice and has been rewritten
      std::ranges::replace(inputs, value,
                           rewriter_.add(op::Cast{DType::f32}, {narrow}, user, "wide"));
      rewriter_.update(user, node.attrs, inputs);
    }
  }

  Graph& graph_;
  PassContext& context_;
  DType short_;
  bool multiplies_;
  Rewriter rewriter_;
  std::vector<std::vector<NodeId>> users_;  // readers before the pass
  std::map<ValueId, ValueId> narrow_, weights_;
  std::set<ValueId> kept_;  // values that are read outside the graph
};

// Clears `byte_rows` of exact layers; it would let their rows be rounded to 8 bits.
bool exact_rows(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.order()) {
    auto* product = std::get_if<op::MatMulNBits>(&graph.node(id).attrs);
    if (!product || !product->byte_rows) continue;
    const std::string& name = graph.value(graph.node(id).output).name;
    if (context.exact.contains(name)) {
      product->byte_rows = false;
      changed = true;
    } else {
      context.narrowed[name] = {"8-bit rows", 0, 0};
    }
  }
  return changed;
}

}  // namespace

Expected<bool> narrow_products(Graph& graph, PassContext& context) {
  const bool exact = exact_rows(graph, context);
  const Precision precision = precision_of(context.target);
  if (precision == Precision::fp32 || precision == Precision::tf32) return exact;
  const DType type = precision == Precision::bf16 ? DType::bf16 : DType::f16;
  const bool multiplies = type == DType::bf16 && multiplies_bf16(context.target);
  const int count = Narrower(graph, context, type, multiplies).run();
  context.report = llvm::formatv("{0} layers of {1}", count, dtype_name(type)).str();
  return exact || count > 0;
}

}  // namespace tw
