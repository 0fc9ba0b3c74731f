// before: %q = matmul(%x, %wq)  %k = matmul(%x, %wk)  %v = matmul(%x, %wv), each with its bias or
//                                                     none, read by one attention alone
// after:  %a = matmul(%x, %w)   %q = slice(%a)  %k = slice(%a)  %v = slice(%a)      w, and the
//                                                               bias: the constants side by side
// One product with many columns reads its left operand once, and gives its algorithm and its
// threads more to divide. Attention reads slices in place. Other readers do not, so their products
// stay as they are. Why here: after duplicates are merged, so that equal left operands are one
// value, and after biases are folded.
#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/short_floats.h"
#include "ir/simplify.h"
#include "passes/match_attention.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

struct Branch {
  NodeId last, product;  // `last` is the add of the bias, or the product
  ValueId bias;          // invalid: no bias
};

class Joiner {
 public:
  explicit Joiner(Graph& graph) : graph_(graph), rewriter_(graph), users_(graph.users()) {
    for (const Graph::Output& output : graph.outputs()) outputs_.insert(output.value.index);
  }

  bool run() {
    for (NodeId id : graph_.order())
      if (get_if<op::Softmax>(&graph_.node(id))) find(id);
    for (const std::vector<Branch>& branches : found_) join(branches);
    return rewriter_.changed();
  }

 private:
  std::vector<NodeId> users(ValueId v) const {
    std::vector<NodeId> ids = users_[static_cast<size_t>(v.index)];
    std::sort(ids.begin(), ids.end(), [](NodeId a, NodeId b) { return a.index < b.index; });
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }
  bool is_output(ValueId v) const { return outputs_.contains(v.index); }

  // Finds the branches that one attention reads, by left operand and by the way that the constant
  // lies.
  void find(NodeId softmax) {
    auto match = match_attention(
        graph_, softmax, [this](ValueId v) { return users(v); },
        [this](ValueId v) { return is_output(v); });
    if (!match) return;
    const std::set<NodeId> inside(match->nodes.begin(), match->nodes.end());
    std::map<std::pair<ValueId, bool>, std::vector<Branch>> by_operand;
    std::set<ValueId> seen;
    for (ValueId v : {graph_.node(match->scores).inputs[0], graph_.node(match->scores).inputs[1],
                      graph_.node(match->product).inputs[1]}) {
      while (graph_.def(v) && inside.contains(graph_.value(v).def)) v = graph_.def(v)->inputs[0];
      const std::vector<NodeId> readers = users(v);
      if (is_output(v) || !seen.insert(v).second ||
          !std::ranges::all_of(readers, [&](NodeId id) { return inside.contains(id); }))
        continue;
      if (auto branch = branch_of(v)) {
        const Node& product = graph_.node(branch->product);
        by_operand[{product.inputs[0], get_if<op::MatMul>(&product)->trans_b}].push_back(*branch);
      }
    }
    for (auto& [operand, branches] : by_operand)
      if (branches.size() > 1) found_.push_back(std::move(branches));
  }

  std::optional<Branch> branch_of(ValueId v) const {
    const Node* last = graph_.def(v);
    if (!last) return std::nullopt;
    Branch branch{graph_.value(v).def, graph_.value(v).def, {}};
    if (is_binary(last, BinaryOp::add)) {
      branch.bias = last->inputs[1];
      branch.product = graph_.value(last->inputs[0]).def;
      const auto shape = graph_.is_constant(branch.bias)
                             ? static_shape(rewriter_.type(branch.bias).shape)
                             : std::nullopt;
      const Expr& columns = rewriter_.type(v).shape.back();
      if (!branch.product.valid() || rewriter_.uses(last->inputs[0]) != 1 || !shape ||
          shape->empty())
        return std::nullopt;
      if (!is_const(columns, shape->back()) ||
          element_count(std::span<const int64_t>(*shape)) != shape->back())
        return std::nullopt;
    }
    const Node& product = graph_.node(branch.product);
    const auto* attrs = get_if<op::MatMul>(&product);
    if (!attrs || attrs->trans_a || graph_.is_constant(product.inputs[0]) ||
        !graph_.is_constant(product.inputs[1]))
      return std::nullopt;
    const TensorType &weights = rewriter_.type(product.inputs[1]), &out = rewriter_.type(v);
    const bool joins = out.dtype == DType::f32 || is_short_float(out.dtype);
    if (weights.shape.size() != 2 || !joins || weights.dtype != out.dtype ||
        !all_plain(graph_, product) || !all_plain(graph_, *last))
      return std::nullopt;
    return branch;
  }

  // The matrices side by side, or one below the other.
  Tensor together(const std::vector<ValueId>& parts, bool below) const {
    Tensor all{rewriter_.type(parts.front()).dtype, {0, 0}, {}};
    std::vector<Tensor> tensors;
    for (ValueId part : parts) {
      tensors.push_back(graph_.constant_tensor(part));
      const std::vector<int64_t>& shape = tensors.back().shape;
      all.shape[below ? 0 : 1] += shape[below ? 0 : 1];
      all.shape[below ? 1 : 0] = shape[below ? 1 : 0];
    }
    const int64_t outer = below ? 1 : all.shape[0];
    for (int64_t row = 0; row < outer; ++row)
      for (const Tensor& tensor : tensors) {
        const auto bytes = static_cast<std::ptrdiff_t>(tensor.bytes.size()) / outer;
        all.bytes.insert(all.bytes.end(), tensor.bytes.begin() + row * bytes,
                         tensor.bytes.begin() + (row + 1) * bytes);
      }
    return all;
  }

  void join(const std::vector<Branch>& branches) {
    const NodeId first = branches.front().product;
    const ValueId x = graph_.node(first).inputs[0];
    const op::MatMul attrs = *get_if<op::MatMul>(&graph_.node(first));
    std::vector<ValueId> weights;
    std::vector<double> bias;
    bool biased = false;
    for (const Branch& b : branches) {
      const auto columns = static_cast<size_t>(
          *as_const(rewriter_.type(graph_.node(b.last).output).shape.back()));
      const std::vector<double> values = b.bias.valid() ? to_doubles(graph_.constant_tensor(b.bias))
                                                        : std::vector<double>(columns);
      weights.push_back(graph_.node(b.product).inputs[1]);
      bias.insert(bias.end(), values.begin(), values.end());
      biased |= b.bias.valid();
    }
    const std::string name = graph_.value(graph_.node(first).output).name;
    const ValueId w = rewriter_.add_constant(name + "_weights", together(weights, attrs.trans_b));
    ValueId all = rewriter_.add(attrs, {x, w}, first, "joined");
    if (biased) {
      const ValueId b = rewriter_.add_constant(
          name + "_bias",
          from_doubles(rewriter_.type(all).dtype, {static_cast<int64_t>(bias.size())}, bias));
      all = rewriter_.add(op::Binary{BinaryOp::add}, {all, b}, first, "biased");
    }
    Expr column(0);
    for (const Branch& b : branches) {
      const Shape shape = rewriter_.type(graph_.node(b.last).output).shape;
      op::Slice slice{Shape(shape.size(), Expr(0)), Ints(shape.size(), 1), shape};
      slice.starts.back() = column;
      column = simplify(column + shape.back());
      rewriter_.update(b.last, slice, {all});
    }
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::vector<std::vector<NodeId>> users_;
  std::set<int32_t> outputs_;
  std::vector<std::vector<Branch>> found_;
};

}  // namespace

Expected<bool> join_products(Graph& graph, PassContext&) { return Joiner(graph).run(); }

}  // namespace tw
