#include "autotune/task.h"

#include <algorithm>
#include <map>
#include <set>

#include "autotune/task_text.h"
#include "ir/graph/attributes.h"
#include "ir/kernel/work.h"
#include "kernels/device/attention.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/storage.h"
#include "support/hash.h"

namespace tw {
namespace {

using Renaming = std::map<std::string, Expr, std::less<>>;

Shape renamed(const Shape& shape, const Renaming& names) {
  Shape out;
  for (const Expr& dim : shape)
    out.push_back(simplify_dim(rewrite(dim, [&](const Expr& e) {
      const auto* symbol = as<expr::Var>(e);
      auto found = symbol ? names.find(symbol->name) : names.end();
      return found == names.end() ? Expr() : found->second;
    })));
  return out;
}

// Collects the symbols of an operator's dims.
struct SymbolCollector {
  std::set<std::string, std::less<>>& used;
  void note(const Shape& shape) {
    for (const Expr& dim : shape)
      visit(dim, [&](const Expr& e) {
        if (const auto* symbol = as<expr::Var>(e)) used.insert(symbol->name);
      });
  }
  template <class T>
  void operator()(const char*, T& value) {
    if constexpr (std::is_same_v<T, Shape>) note(value);
  }
};
struct SymbolRenamer {
  const Renaming& names;
  template <class T>
  void operator()(const char*, T& value) {
    if constexpr (std::is_same_v<T, Shape>) value = renamed(value, names);
  }
};

// Prints the group as text. Values are numbered in the order of their first use, symbols by their
// place among the symbols that the group uses.
//   0 f32[s0, 64, 56, 56]
//   1 f32[64, 64, 3, 3] const
//   conv 0 1 pads=[1,1,1,1] strides=[1,1] -> 2 f32[s0, 64, 56, 56]
class CanonicalText {
 public:
  // `layouts` adds the physical layouts of all values.
  CanonicalText(const Graph& graph, const Group& group, bool layouts)
      : graph_(graph), group_(group), layouts_(layouts) {}

  std::string run() {
    name_symbols();
    for (NodeId id : group_.nodes) {
      const Node& node = graph_.node(id);
      OpAttrs attrs = node.attrs;
      SymbolRenamer renamer{names_};
      std::visit([&](auto& op) { op.fields(renamer); }, attrs);
      std::string line = op_info(attrs).name;
      for (ValueId input : node.inputs) line += " " + number(input);
      line += print_attrs(attrs) + " -> ";
      line += std::to_string(numbers_.emplace(node.output, numbers_.size()).first->second) + " " +
              type(node.output) + "\n";
      text_ += line;
    }
    return text_;
  }

 private:
  void name_symbols() {
    std::set<std::string, std::less<>> used;
    SymbolCollector collector{used};
    for (NodeId id : group_.nodes) {
      const Node& node = graph_.node(id);
      OpAttrs attrs = node.attrs;
      std::visit([&](auto& op) { op.fields(collector); }, attrs);
      collector.note(graph_.value(node.output).type.shape);
      for (ValueId input : node.inputs)
        if (input.valid()) collector.note(graph_.value(input).type.shape);
    }
    for (const std::string& symbol : graph_.all_symbols())
      if (used.contains(symbol))
        names_.emplace(symbol,
                       var(symbol_name("s" + std::to_string(names_.size()), least_of(symbol))));
  }

  std::string type(ValueId id) const {
    TensorType t = graph_.value(id).type;
    t.shape = renamed(t.shape, names_);
    if (!layouts_) t.layout = {};
    return to_string(t);
  }

  std::string number(ValueId id) {
    if (!id.valid()) return "_";
    auto [it, fresh] = numbers_.try_emplace(id, numbers_.size());
    if (fresh) text_ += std::to_string(it->second) + " " + type(id) + constant(id) + "\n";
    return std::to_string(it->second);
  }

  std::string constant(ValueId id) const {
    if (!graph_.is_constant(id)) return "";
    if (!is_const(element_count(graph_.value(id).type.shape), 1)) return " const";
    const Tensor t = graph_.constant_tensor(id);
    return " = " +
           to_string(is_float(t.dtype) ? imm(t.at(0), t.dtype) : int_imm(t.int_at(0), t.dtype));
  }

  const Graph& graph_;
  const Group& group_;
  const bool layouts_;
  Renaming names_;
  std::map<ValueId, size_t> numbers_;
  std::string text_;
};

std::string dims_text(const Shape& shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i)
    if (i > 0 || shape.size() < 3 || !is_const(shape[i], 1))
      text += (text.empty() ? "" : "x") + to_string(shape[i]);
  return text.empty() ? "scalar" : text;
}

bool is_zero(const Graph& graph, ValueId v) {
  return graph.is_constant(v) && is_const(element_count(graph.value(v).type.shape), 1) &&
         graph.constant_tensor(v).at(0) == 0;
}

std::string node_word(const Graph& graph, const Node& node) {
  if (const auto* unary = std::get_if<op::Unary>(&node.attrs)) return op_name(unary->function);
  if (const auto* binary = std::get_if<op::Binary>(&node.attrs)) {
    const bool relu = binary->function == BinaryOp::max &&
                      (is_zero(graph, node.inputs[0]) || is_zero(graph, node.inputs[1]));
    return relu ? "relu" : op_name(binary->function);
  }
  return op_info(node.attrs).name;
}

std::string kernel_text(const Graph& graph, const Node& anchor) {
  Shape extents;
  if (const auto* pool = std::get_if<op::Pool>(&anchor.attrs))
    extents.assign(pool->kernel.begin(), pool->kernel.end());
  if (std::holds_alternative<op::Conv>(anchor.attrs) ||
      std::holds_alternative<op::ConvTranspose>(anchor.attrs)) {
    const Shape& weights = graph.value(anchor.inputs[1]).type.shape;
    extents.assign(weights.begin() + 2, weights.end());
  }
  std::string text;
  for (const Expr& e : extents) text += (text.empty() ? " " : "x") + to_string(e);
  return text;
}

bool holds(const Task& task, Algorithm algorithm) {
  return std::ranges::any_of(task.variants,
                             [&](const Variant& v) { return v.algorithm == algorithm; });
}

// Adds the applicable algorithms that are not in use, and computes the operations of the direct
// one.
Error complete(Task& task, const Graph& graph, Group group, const Target& target) {
  for (Algorithm algorithm : applicable_algorithms(graph, group, target)) {
    if (holds(task, algorithm)) continue;
    const auto estimate = estimate_algorithm(graph, group, algorithm, target, 0);
    // No network could use it.
    if (algorithm != Algorithm::direct && estimate && estimate->error > target.accuracy) continue;
    group.algorithm = algorithm;
    TW_ASSIGN(LoweredGroup lowered, lower_group(graph, group, target));
    task.variants.push_back({algorithm, std::move(lowered)});
  }
  group.algorithm = Algorithm::direct;
  for (auto& other : attention_in_other_blocks(graph, group, target))
    task.variants.push_back({Algorithm::direct, std::move(other)});
  const auto direct = std::ranges::find(task.variants, Algorithm::direct, &Variant::algorithm);
  task.flops = flops_of(direct->lowered.kernel);
  return Error::success();
}

}  // namespace

uint64_t weights_between(const Graph& graph, const Group& group) {
  constexpr uint64_t kLeast = 1 << 20, kCold = 64 << 20;
  const auto is_weight = [&](ValueId v) {
    return v.valid() && graph.is_constant(v) && !graph.value(v).type.shape.empty();
  };
  if (std::ranges::none_of(group.nodes, [&](NodeId id) {
        return std::ranges::any_of(graph.node(id).inputs, is_weight);
      }))
    return 0;
  std::vector<bool> counted(graph.value_count());
  uint64_t bytes = 0;
  for (size_t i = 0; i < graph.node_count() && bytes < kCold; ++i) {
    const Node& node = graph.node(NodeId{static_cast<int32_t>(i)});
    for (const ValueId v : node.inputs) {  // an erased node has none
      if (!is_weight(v) || counted[static_cast<size_t>(v.index)]) continue;
      counted[static_cast<size_t>(v.index)] = true;
      bytes += graph.value(v).constant->bytes.size();
    }
  }
  uint64_t between = kLeast;
  while (between < bytes && between < kCold) between *= 2;
  return between < kCold ? between : 0;
}

std::string task_key(const Graph& graph, const Group& group) {
  return task_key(graph, group, weights_between(graph, group));
}
std::string task_key(const Graph& graph, const Group& group, uint64_t weights_between) {
  return short_hash(CanonicalText(graph, group, false).run() +
                    (weights_between == 0 ? "" : "\nweights " + std::to_string(weights_between)));
}

std::string task_name(const Graph& graph, const Group& group) {
  constexpr int kMostWords = 4;
  const Node& anchor = graph.node(group.anchor);
  std::string text = node_word(graph, anchor) + " ";
  if (!anchor.inputs.empty() && anchor.inputs[0].valid())
    text += dims_text(graph.value(anchor.inputs[0]).type.shape) + " -> ";
  text += dims_text(graph.value(graph.node(group.nodes.back()).output).type.shape) +
          kernel_text(graph, anchor);
  int words = 0;
  bool behind = false;
  for (NodeId id : group.nodes) {
    if (behind && ++words <= kMostWords) text += " " + node_word(graph, graph.node(id));
    behind |= id == group.anchor;
  }
  return words > kMostWords ? text + " .." : text;
}

double flops_of(const Kernel& kernel) {
  return static_cast<double>(
      eval_int(count_work(kernel).flops, [](std::string_view) { return int64_t{1}; }));
}

std::string target_key(const Target& target) {
  Target own = target;
  own.name = own.address = "";
  own.devices.clear();
  if (target.driver.empty()) return codegen_hash(own);
  Target host;  // a device's key depends on everything that describes it
  host.triple = target.triple;
  host.devices = {own};
  return codegen_hash(host);
}

Expected<std::vector<Task>> tasks_of(const Graph& graph, const std::vector<Group>& groups,
                                     const Target& target, std::span<const int> devices,
                                     TaskTexts texts) {
  const Storage storage(graph, groups);
  std::vector<Task> tasks;
  std::vector<size_t> first;  // first group of each task
  std::map<std::string, size_t> by_key;
  std::map<std::string, size_t> lowered;  // task by its text with layouts and algorithm
  std::set<std::string> kernels;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    if (storage.in_place(group) || is_extern(graph, group) || (!devices.empty() && devices[g] != 0))
      continue;
    const std::string text = std::string(algorithm_name(group.algorithm)) + "\n" +
                             CanonicalText(graph, group, true).run();
    if (auto seen = lowered.find(text); seen != lowered.end()) {
      ++tasks[seen->second].calls;
      continue;
    }
    const std::string key = task_key(graph, group);
    const auto [found, fresh] = by_key.try_emplace(key, tasks.size());
    if (fresh) {
      tasks.push_back({key, task_name(graph, group), 0, 0, weights_between(graph, group), {}});
      if (texts == TaskTexts::yes) {
        if (Expected<std::string> text = print_task(graph, group)) tasks.back().text = *text;
        else llvm::consumeError(text.takeError());  // the kernels work without the text
      }
      first.push_back(g);
    }
    Task& task = tasks[found->second];
    lowered.emplace(text, found->second);
    ++task.calls;
    TW_ASSIGN(LoweredGroup made, lower_group(graph, group, target));
    if (kernels.insert(key + algorithm_name(group.algorithm) + definition_hash(made)).second)
      task.variants.push_back({group.algorithm, std::move(made)});
  }
  for (size_t t = 0; t < tasks.size(); ++t)
    TW_TRY(complete(tasks[t], graph, groups[first[t]], target));
  return tasks;
}

}  // namespace tw
