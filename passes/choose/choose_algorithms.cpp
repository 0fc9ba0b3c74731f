#include "passes/choose/choose_algorithms.h"

#include "ir/graph/queries.h"
#include "ir/group.h"
#include "kernels/common/short_operands.h"
#include "passes/choose/product_names.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tw {
namespace {

constexpr double kLeastGain = 0.03;  // share of a layer's time; the model errs by as much
// The factor by which later layers may enlarge an error, relative to their own range
constexpr double kPassedOn = 2;

constexpr Algorithm kFast[] = {Algorithm::winograd_f2, Algorithm::winograd_f4,
                               Algorithm::winograd_f6, Algorithm::strassen};

struct Option {
  Algorithm algorithm;
  AlgorithmEstimate estimate;
};

struct Choice {
  Group* group;
  std::vector<Option> options;  // the direct one comes first
  size_t taken = 0;
  const AlgorithmEstimate& now() const { return options[taken].estimate; }
};

bool has_constant_weights(const Graph& graph, const Group& group) {
  const Node node = with_short_operands(graph, group);
  bool product = std::holds_alternative<op::Conv>(node.attrs) ||
                 std::holds_alternative<op::MatMul>(node.attrs);
  return product && node.inputs.size() > 1 && node.inputs[1].valid() &&
         graph.is_constant(node.inputs[1]);
}

bool is_attention(const Graph& graph, const Group& group) {
  for (NodeId id : group.nodes)
    if (std::holds_alternative<op::Softmax>(graph.node(id).attrs)) return true;
  return false;
}

double constant_bytes(const Graph& graph, const std::vector<Group>& groups) {
  std::set<int32_t> seen;
  double bytes = 0;
  for (const Group& group : groups)
    for (NodeId id : group.nodes)
      for (ValueId v : graph.node(id).inputs)
        if (v.valid() && graph.is_constant(v) && seen.insert(v.index).second)
          bytes += static_cast<double>(graph.value(v).constant->bytes.size());
  return bytes;
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Replaces cycles by measured seconds. An option without a measurement gets its estimate, times the
// median ratio of seconds to cycles among measured kernels of its algorithm, or among all if there
// are none.
void use_measured(std::vector<Choice>& choices, const AlgorithmSeconds& measured) {
  const auto seconds_of = [&](const Choice& c, const Option& o) -> std::optional<double> {
    const auto known = measured.find(c.group->anchor);
    if (known == measured.end()) return std::nullopt;
    const auto seconds = known->second.find(o.algorithm);
    return seconds == known->second.end() ? std::nullopt : std::optional(seconds->second);
  };
  std::map<Algorithm, std::vector<double>> ratios;
  std::vector<double> all;
  for (const Choice& c : choices)
    for (const Option& o : c.options)
      if (const auto seconds = seconds_of(c, o)) {
        ratios[o.algorithm].push_back(*seconds / o.estimate.cycles);
        all.push_back(*seconds / o.estimate.cycles);
      }
  if (all.empty()) return;
  for (Choice& c : choices) {
    for (Option& o : c.options) {
      const auto own = ratios.find(o.algorithm);
      o.estimate.cycles = seconds_of(c, o).value_or(
          o.estimate.cycles * middle(own == ratios.end() ? all : own->second));
    }
    // Two measurements of the same kernel differ by as much
    const double most = (1 - kLeastGain) * c.options[0].estimate.cycles;
    std::erase_if(c.options, [&](const Option& o) {
      return o.algorithm != Algorithm::direct && o.estimate.cycles >= most;
    });
  }
}

double square(const Option& o) { return o.estimate.error * o.estimate.error; }

// Divides what layers in short floats may add to the error of direct sums among them.
void share_errors(std::vector<Choice>& choices, std::vector<Choice>& settled) {
  double layers = 0;
  for (const auto* some : {&choices, &settled})
    for (const Choice& c : *some) layers += c.options[0].estimate.short_floats ? 1 : 0;
  for (auto* some : {&choices, &settled})
    for (Choice& c : *some)
      for (Option& o : c.options)
        if (o.estimate.short_floats) o.estimate.error /= std::sqrt(layers);
}

// The algorithm that was decided before, if any.
std::optional<Algorithm> settled_algorithm(const Graph& graph, const Group& group,
                                           const AlgorithmOptions& options) {
  const std::string name = product_name(graph, group);
  if (options.exact.contains(name)) return Algorithm::direct;
  for (const std::string& one : {name, sized_product_name(graph, group)})
    if (const auto found = options.settled.find(one); found != options.settled.end())
      return found->second;
  if (const auto found = options.fixed.find(group.anchor); found != options.fixed.end())
    return found->second;
  return std::nullopt;
}

// Solves a knapsack with one option for each choice: the least sum of cycles, and of squared errors
// times `price`, within the spare bytes.
void take_best(std::vector<Choice>& choices, double spare_bytes, double price) {
  constexpr size_t kUnits = 4096;             // units of the spare bytes
  std::vector<double> cost(kUnits + 1, 0.0);  // by units used: the least cost of the choices so far
  std::vector<std::vector<size_t>> taken(choices.size());
  auto units_of = [&](const Choice& c, size_t option) -> std::optional<size_t> {
    const double bytes = c.options[option].estimate.weight_bytes -
                         c.options[0].estimate.weight_bytes;
    if (bytes <= 0) return 0;
    if (bytes > spare_bytes) return std::nullopt;
    return static_cast<size_t>(std::ceil(bytes / spare_bytes * kUnits));
  };
  for (size_t c = 0; c < choices.size(); ++c) {
    std::vector<double> least(kUnits + 1, std::numeric_limits<double>::infinity());
    taken[c].assign(kUnits + 1, 0);
    for (size_t i = 0; i < choices[c].options.size(); ++i) {
      const auto units = units_of(choices[c], i);
      if (!units) continue;
      const double own = choices[c].options[i].estimate.cycles +
                         price * square(choices[c].options[i]);
      for (size_t u = *units; u <= kUnits; ++u)
        if (const double sum = cost[u - *units] + own; sum < least[u]) {
          least[u] = sum;
          taken[c][u] = i;
        }
    }
    cost = std::move(least);
  }
  size_t left = kUnits;
  for (size_t c = choices.size(); c-- > 0;) {
    choices[c].taken = taken[c][left];
    left -= *units_of(choices[c], choices[c].taken);
  }
}

bool is_measured(const AlgorithmSeconds& measured, NodeId anchor, Algorithm algorithm) {
  const auto known = measured.find(anchor);
  return known != measured.end() && known->second.contains(algorithm);
}

// Errors of different layers are independent, so their squares add.
double squares(const std::vector<Choice>& choices) {
  double sum = 0;
  for (const Choice& c : choices) sum += square(c.options[c.taken]);
  return sum;
}

// Finds the lowest price of errors at which they stay within their budget. Takes the direct
// algorithms if no price achieves that.
void take_within(std::vector<Choice>& choices, double spare_bytes, double spare_square) {
  take_best(choices, spare_bytes, 0);
  if (squares(choices) <= spare_square) return;
  double cycles = 0;
  for (const Choice& c : choices) cycles += c.options[0].estimate.cycles;
  double low = 0, high = cycles / (spare_square + std::numeric_limits<double>::min());
  constexpr int kSteps = 40;
  for (int i = 0; i < kSteps; ++i) {
    const double price = i == 0 ? high : (low + high) / 2;
    take_best(choices, spare_bytes, price);
    (squares(choices) <= spare_square ? high : low) = price;
  }
  take_best(choices, spare_bytes, high);
  if (squares(choices) > spare_square)
    for (Choice& c : choices) c.taken = 0;
}

}  // namespace

bool serves_pool(Algorithm algorithm, const op::Pool& pool) {
  if (algorithm == Algorithm::strassen) return false;
  const int tile = winograd_tile(algorithm);
  return tile == 0 ||
         std::ranges::all_of(pool.kernel, [&](int64_t kernel) { return tile % kernel == 0; });
}

bool has_algorithms(const Graph& graph, const Group& group) {
  const Node& anchor = graph.node(group.anchor);
  // The other algorithms read their operand from memory as it is
  const bool operand_inside = get_if<op::MatMul>(&anchor) &&
                              std::ranges::any_of(group.nodes, [&](NodeId id) {
                                return graph.node(id).output == anchor.inputs[0];
                              });
  return has_constant_weights(graph, group) && !is_attention(graph, group) && !operand_inside;
}

std::vector<Algorithm> applicable_algorithms(const Graph& graph, const Group& group,
                                             const Target& target) {
  std::vector<Algorithm> list = {Algorithm::direct};
  if (!has_algorithms(graph, group)) return list;
  const op::Pool* pool = nullptr;
  for (NodeId id : group.nodes)
    if (const auto* found = std::get_if<op::Pool>(&graph.node(id).attrs)) pool = found;
  for (Algorithm algorithm : kFast)
    if (estimate_algorithm(graph, group, algorithm, target, 0) &&
        (!pool || serves_pool(algorithm, *pool)))
      list.push_back(algorithm);
  return list;
}

Algorithm algorithm_on(const Graph& graph, const Group& group, const Target& device) {
  if (group.algorithm == Algorithm::direct) return Algorithm::direct;
  const auto found = estimate_algorithm(graph, group, group.algorithm, device, 0);
  return found ? group.algorithm : Algorithm::direct;
}

AlgorithmSummary choose_algorithms(const Graph& graph, std::vector<Group>& groups,
                                   const Target& target, const AlgorithmOptions& options,
                                   const AlgorithmSummary& taken) {
  const double model_bytes = constant_bytes(graph, groups);
  AlgorithmSummary total;
  std::vector<Choice> choices, settled;
  for (Group& group : groups) {
    group.algorithm = Algorithm::direct;
    if (!has_algorithms(graph, group)) continue;
    const std::optional<Algorithm> fixed = settled_algorithm(graph, group, options);
    Choice c{&group,
             {{Algorithm::direct,
               *estimate_algorithm(graph, group, Algorithm::direct, target, model_bytes)}}};
    for (Algorithm algorithm : kFast) {
      if (fixed ? *fixed != algorithm : options.only && *options.only != algorithm) continue;
      auto e = estimate_algorithm(graph, group, algorithm, target, model_bytes);
      if (!e) continue;
      const bool promising = e->cycles < (1 - kLeastGain) * c.options[0].estimate.cycles;
      if (options.only || fixed || promising ||
          is_measured(options.measured, group.anchor, algorithm))
        c.options.push_back({algorithm, *e});
    }
    if (options.only || fixed) c.taken = c.options.size() - 1;
    total.direct_bytes += c.options[0].estimate.weight_bytes;
    (fixed ? settled : choices).push_back(std::move(c));
  }
  share_errors(choices, settled);
  double spare = std::max(model_bytes, total.direct_bytes + taken.direct_bytes) *
                     (options.max_weight_growth - 1) -
                 (taken.weight_bytes - taken.direct_bytes);
  for (const Choice& c : settled)
    spare -= c.now().weight_bytes - c.options[0].estimate.weight_bytes;
  const double budget = target.accuracy / kPassedOn, gone = taken.error / kPassedOn,
               spare_square = std::max(0.0, budget * budget - gone * gone - squares(settled));
  if (!options.only) {
    use_measured(choices, options.measured);
    take_within(choices, std::max(0.0, spare), spare_square);
  }
  choices.insert(choices.end(), std::make_move_iterator(settled.begin()),
                 std::make_move_iterator(settled.end()));
  for (const Choice& c : choices) {
    c.group->algorithm = c.options[c.taken].algorithm;
    total.weight_bytes += c.now().weight_bytes;
  }
  total.error = kPassedOn * std::sqrt(squares(choices));
  return total;
}

AlgorithmSummary summary_of(const Graph& graph, const std::vector<Group>& groups,
                            const Target& target) {
  AlgorithmSummary total;
  for (const Group& group : groups) {
    if (!has_algorithms(graph, group)) continue;
    const auto direct = estimate_algorithm(graph, group, Algorithm::direct, target, 0),
               own = estimate_algorithm(graph, group, group.algorithm, target, 0);
    if (!own) continue;
    total = total +
            AlgorithmSummary{direct->weight_bytes, own->weight_bytes, kPassedOn * own->error};
  }
  return total;
}

AlgorithmSummary operator+(const AlgorithmSummary& a, const AlgorithmSummary& b) {
  return {a.direct_bytes + b.direct_bytes, a.weight_bytes + b.weight_bytes,
          std::sqrt(a.error * a.error + b.error * b.error)};
}

PassContext pass_context(const Target& target, const Graph& graph,
                         const AlgorithmOptions& options) {
  constexpr int64_t kShare = 20, kLeast = int64_t{64} << 10;
  PassContext context{target};
  context.exact = options.exact;
  context.keep_small = options.max_weight_growth <= 1 && options.only == Algorithm::direct;
  if (!context.keep_small) return context;
  int64_t bytes = 0;
  for (size_t i = 0; i < graph.value_count(); ++i)
    if (const ValueId v{static_cast<int32_t>(i)}; graph.is_constant(v))
      bytes += constant_bytes(graph, v);
  context.fold_budget_bytes = std::max(bytes / kShare, kLeast);
  return context;
}

}  // namespace tw
