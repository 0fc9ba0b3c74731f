// before: %f = dequantize(%x, %xs, %xz)  %s = sigmoid(%f)  %y: i8 = quantize(%s, %ys, %yz)
// after:  %y: i8 = lookup(%x, const [256 numbers])
// A byte that is computed element by element from one byte and single numbers becomes a look-up in
// a table, which the reference evaluators fill. Why here: after fuse-quantization has written
// arithmetic with its roundings, and before other passes rewrite its operators.
#include <set>

#include "ir/group.h"
#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr size_t kMostNodes = 64;
constexpr size_t kWorthNodes = 4;  // fewer cheap nodes are faster than a table

class Tabulator {
 public:
  explicit Tabulator(Graph& graph) : rewriter_(graph), graph_(graph) {
    for (const NodeId id : graph.order()) {
      position_.resize(std::max(position_.size(), static_cast<size_t>(id.index) + 1));
      position_[static_cast<size_t>(id.index)] = static_cast<int>(order_.size());
      order_.push_back(id);
    }
  }

  // Goes from the end, so that a table takes in as much as it can.
  Expected<bool> run(PassContext& context) {
    int tables = 0;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (graph_.node(*id).erased || !is_byte(rewriter_.type(graph_.node(*id).output).dtype))
        continue;
      const std::optional<Function> function = function_of(*id);
      if (!function) continue;
      Expected<Tensor> table = evaluated(*function, *id);
      if (!table) {
        llvm::consumeError(table.takeError());  // the reference evaluators do not support it
        continue;
      }
      const ValueId values = rewriter_.add_constant(
          graph_.value(graph_.node(*id).output).name + "_table", *table);
      rewriter_.update(*id, op::Lookup{}, {function->x, values});
      ++tables;
    }
    context.report = llvm::formatv("{0} tables", tables).str();
    return rewriter_.changed();
  }

 private:
  // Nodes, by position, that compute the output of the last one from x and numbers.
  struct Function {
    ValueId x;
    std::set<int> nodes;
  };

  bool is_number(ValueId v) const {
    return graph_.is_constant(v) && is_const(element_count(rewriter_.type(v).shape), 1);
  }

  // Adds a node and its operands. Returns false if the node is not element-wise, or reads anything
  // but single numbers and values of its own shape.
  bool enter(int position, Function& function, std::set<std::pair<int, ValueId>>& open) const {
    const Node& node = graph_.node(order_[static_cast<size_t>(position)]);
    if (!is_elementwise(node) || get_if<op::Lookup>(&node) || !all_plain(graph_, node) ||
        function.nodes.size() == kMostNodes)
      return false;
    for (const ValueId v : node.inputs) {
      if (!v.valid() || is_number(v)) continue;
      if (graph_.is_constant(v) ||
          !equal(rewriter_.type(v).shape, rewriter_.type(node.output).shape))
        return false;
      const NodeId maker = graph_.value(v).def;
      open.insert({maker.valid() ? position_[static_cast<size_t>(maker.index)] : -1, v});
    }
    function.nodes.insert(position);
    return true;
  }

  // The largest function of one byte that is worth a table.
  std::optional<Function> function_of(NodeId id) const {
    std::set<std::pair<int, ValueId>> open;  // by position of the maker; the last comes first
    Function function;
    std::optional<Function> best;
    if (!enter(position_[static_cast<size_t>(id.index)], function, open)) return std::nullopt;
    while (!open.empty()) {
      const auto [position, value] = *open.rbegin();
      if (open.size() == 1 && is_byte(rewriter_.type(value).dtype) && is_worth(function)) {
        best = function;
        best->x = value;
      }
      open.erase(std::prev(open.end()));
      if (position < 0 || !enter(position, function, open)) break;
    }
    return best;
  }

  bool is_worth(const Function& function) const {
    return function.nodes.size() >= kWorthNodes ||
           std::ranges::any_of(function.nodes, [&](int position) {
             return get_if<op::Quantize>(&graph_.node(order_[static_cast<size_t>(position)]));
           });
  }

  // The results for all bytes, the least number first.
  Expected<Tensor> evaluated(const Function& function, NodeId id) const {
    const DType t = rewriter_.type(function.x).dtype;
    std::map<ValueId, Tensor> values;
    Tensor& x = values[function.x] = Tensor::zeros(t, {256});
    for (int64_t i = 0; i < x.size(); ++i) x.set_int(i, lowest_of(t) + i);
    for (const int position : function.nodes) {
      const Node& node = graph_.node(order_[static_cast<size_t>(position)]);
      std::vector<const Tensor*> inputs;
      for (const ValueId v : node.inputs) {
        if (v.valid() && !values.contains(v)) {
          values[v] = graph_.constant_tensor(v);
          values[v].shape.clear();
        }
        inputs.push_back(v.valid() ? &values[v] : nullptr);
      }
      TW_ASSIGN(values[node.output], evaluate_op(node.attrs, inputs));
    }
    return std::move(values[graph_.node(id).output]);
  }

  Rewriter rewriter_;
  Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<int> position_;  // by node index, in order_
};

}  // namespace

Expected<bool> tabulate_bytes(Graph& graph, PassContext& context) {
  return Tabulator(graph).run(context);
}

}  // namespace tw
