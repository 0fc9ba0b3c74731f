// Assigns all layouts at once. Every node takes one of the layouts that it can write, so that
// kernels and moves of data between them cost least. The choice is a PBQP: its nodes are the
// graph's nodes, its edges the uses. The cost of a use is that of reading directly or after a cast,
// whichever is cheaper. Weights are packed for any choice at compile time.
#include "passes/choose/assign_layouts.h"

#include <algorithm>
#include <map>

#include "passes/choose/analytic_cost.h"
#include "passes/choose/layout_costs.h"
#include "passes/choose/pbqp.h"

namespace tw {
namespace {

class LayoutAssigner {
 public:
  LayoutAssigner(Graph& graph, const LayoutCosts& costs)
      : graph_(graph), costs_(costs), order_(graph.order()) {}

  Expected<bool> run(std::string& report) {
    if (assigned()) return false;
    PbqpSolution solution = solve(problem());
    std::vector<Layout> chosen;
    int blocked = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      chosen.push_back(alternatives_[i][solution.choice[i]]);
      TensorType& type = graph_.value(graph_.node(order_[i]).output).type;
      changed_ |= !(type.layout == chosen[i]);
      type.layout = chosen[i];
      blocked += !chosen[i].plain();
    }
    for (size_t i = 0; i < order_.size(); ++i)
      for (size_t k = 0; k < graph_.node(order_[i]).inputs.size(); ++k)
        if (Error error = fix_input(order_[i], k, chosen[i])) return error;
    std::vector<Graph::Output> outputs = graph_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      TW_ASSIGN(ValueId plain, in_layout(outputs[i].value, {}));
      if (plain != outputs[i].value) graph_.set_output(i, plain);
    }
    for (DataSymbol& symbol : graph_.data_symbols) {
      TW_ASSIGN(symbol.value, in_layout(symbol.value, {}));
    }
    report = llvm::formatv("{0} of {1} values in blocks, {2} casts, {3}", blocked, order_.size(),
                           casts_.size(), solution.optimal ? "optimal" : "heuristic")
                 .str();
    return changed_;
  }

 private:
  // True if layouts have been chosen. They are chosen once: the heuristic for large graphs may end
  // elsewhere when it starts from its own result.
  bool assigned() const {
    return std::ranges::any_of(order_, [&](NodeId id) {
      const Node& node = graph_.node(id);
      return !std::holds_alternative<op::LayoutCast>(node.attrs) &&
             !graph_.value(node.output).type.layout.plain();
    });
  }

  PbqpProblem problem() {
    PbqpProblem problem;
    std::map<int32_t, size_t> maker;  // value index -> position in order_
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph_.node(order_[i]);
      maker[node.output.index] = i;
      alternatives_.push_back(alternatives(node));
      problem.nodes.emplace_back();
      for (const Layout& layout : alternatives_[i])
        problem.nodes[i].push_back(costs_.node(node, layout));
      for (size_t k = 0; k < node.inputs.size(); ++k) add_use(problem, maker, i, k);
    }
    for (const Graph::Output& output : graph_.outputs()) {
      auto made = maker.find(output.value.index);
      if (made == maker.end()) continue;
      for (size_t j = 0; j < alternatives_[made->second].size(); ++j)
        if (!alternatives_[made->second][j].plain())
          problem.nodes[made->second][j] += costs_.cast(output.value);
    }
    return problem;
  }

  // A layout cast in the imported graph keeps its layout.
  std::vector<Layout> alternatives(const Node& node) const {
    if (std::holds_alternative<op::LayoutCast>(node.attrs))
      return {graph_.value(node.output).type.layout};
    return costs_.alternatives(node);
  }

  void add_use(PbqpProblem& problem, const std::map<int32_t, size_t>& maker, size_t user,
               size_t k) {
    const Node& node = graph_.node(order_[user]);
    ValueId v = node.inputs[k];
    if (!v.valid() || graph_.is_constant(v)) return;
    auto made = maker.find(v.index);
    if (made == maker.end()) {  // an input of the graph
      for (size_t j = 0; j < alternatives_[user].size(); ++j)
        problem.nodes[user][j] += costs_.reading(node, k, {}, alternatives_[user][j]).seconds;
      return;
    }
    PbqpEdge edge{made->second, user, {}};
    for (const Layout& in : alternatives_[made->second]) {
      edge.cost.emplace_back();
      for (const Layout& out : alternatives_[user])
        edge.cost.back().push_back(costs_.reading(node, k, in, out).seconds);
    }
    problem.edges.push_back(std::move(edge));
  }

  Error fix_input(NodeId id, size_t k, const Layout& out) {
    ValueId v = graph_.node(id).inputs[k];
    if (!v.valid() || graph_.is_constant(v)) return Error::success();
    LayoutCosts::Reading reading = costs_.reading(graph_.node(id), k, graph_.value(v).type.layout,
                                                  out);
    TW_ASSIGN(ValueId wanted, in_layout(v, reading.wanted));
    if (wanted != v) graph_.set_input(id, k, wanted);
    return Error::success();
  }

  // The value itself, or its only cast to the layout.
  Expected<ValueId> in_layout(ValueId v, const Layout& layout) {
    if (graph_.value(v).type.layout == layout) return v;
    auto key = std::pair(v.index, layout.block);
    if (auto found = casts_.find(key); found != casts_.end()) return found->second;
    TW_ASSIGN(ValueId cast,
              graph_.add(op::LayoutCast{layout.axis, layout.block}, {v}, "", "", "LayoutCast"));
    changed_ = true;
    casts_.emplace(key, cast);
    return cast;
  }

  Graph& graph_;
  const LayoutCosts& costs_;
  std::vector<NodeId> order_;
  std::vector<std::vector<Layout>> alternatives_;         // by position in order_
  std::map<std::pair<int32_t, int64_t>, ValueId> casts_;  // by value and block
  bool changed_ = false;
};

}  // namespace

Expected<bool> assign_layouts(Graph& graph, PassContext& context) {
  AnalyticCost analytic;
  LayoutCosts costs(graph, context.target, context.costs ? *context.costs : analytic);
  return LayoutAssigner(graph, costs).run(context.report);
}

}  // namespace tw
