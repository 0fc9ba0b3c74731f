// before: %f = dequantize(%x, %xs, %xz)  %s = sigmoid(%f)  %y: i8 = quantize(%s, %ys, %yz)
// after:  %y: i8 = lookup(%x, const [256 numbers])
// A byte that is computed from one byte and numbers, element by element, is a table of it, whatever
// is computed: the reference evaluators fill it. Why here: after fuse-quantization has written
// arithmetic as it is rounded, and before other passes rewrite its operators.
#include <set>

#include "ir/group.h"
#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tw {
namespace {

constexpr size_t kMostNodes = 64;
constexpr size_t kWorthNodes = 4;  // as many cheap nodes are no faster than a table

class Tabulator {
 public:
  explicit Tabulator(Graph& graph) : rewriter_(graph), graph_(graph) {
    for (const NodeId id : graph.order()) {
      position_.resize(std::max(position_.size(), static_cast<size_t>(id.index) + 1));
      position_[static_cast<size_t>(id.index)] = static_cast<int>(order_.size());
      order_.push_back(id);
    }
  }

  // From the end, so that a table takes in as much as it can.
  Expected<bool> run(PassContext& context) {
    int tables = 0;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (graph_.node(*id).erased || !is_byte(rewriter_.type(graph_.node(*id).output).dtype))
        continue;
      const std::optional<Function> function = function_of(*id);
      if (!function) continue;
      Expected<Tensor> table = evaluated(*function, *id);
      if (!table) {
        llvm::consumeError(table.takeError());  // the reference does not know it
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
  // Nodes by position, which compute their last one's output from x and numbers.
  struct Function {
    ValueId x;
    std::set<int> nodes;
  };

  bool is_number(ValueId v) const {
    return graph_.is_constant(v) && is_const(element_count(rewriter_.type(v).shape), 1);
  }

  // Adds a node and what it reads; false: it is no function of its operands' elements at its point.
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

  // The largest one that is worth a table.
  std::optional<Function> function_of(NodeId id) const {
    std::set<std::pair<int, ValueId>> open;  // by maker, so that the last one comes first
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

  // Of every byte, the least number first.
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
