#include "passes/choose_algorithms.h"

#include <cmath>
#include <set>

namespace tw {
namespace {

constexpr double kLeastGain = 0.03;   // of a layer's time: less is within the model's own error
constexpr double kPassedOn = 2;   // what later layers may make of an error, relative to their own range

constexpr Algorithm kFast[] = {Algorithm::winograd_f2, Algorithm::winograd_f4, Algorithm::winograd_f6, Algorithm::strassen};

struct Option {
  Algorithm algorithm;
  AlgorithmEstimate estimate;
};

struct Choice {
  Group* group;
  std::vector<Option> options;   // the direct one first
  size_t taken = 0;
  const AlgorithmEstimate& now() const { return options[taken].estimate; }
};

bool has_constant_weights(const Graph& graph, const Node& node) {
  bool product = std::holds_alternative<op::Conv>(node.attrs) || std::holds_alternative<op::MatMul>(node.attrs);
  return product && node.inputs.size() > 1 && node.inputs[1].valid() && graph.is_constant(node.inputs[1]);
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
        if (v.valid() && graph.is_constant(v) && seen.insert(v.index).second) bytes += static_cast<double>(graph.value(v).constant->bytes.size());
  return bytes;
}

// The best step that the budgets allow: most cycles saved a byte, those that cost none first.
struct Upgrade { Choice* choice = nullptr; size_t option = 0; double gain = 0, bytes = 0; };

bool better(const Upgrade& a, const Upgrade& b) {
  if (!b.choice) return true;
  if ((a.bytes <= 0) != (b.bytes <= 0)) return a.bytes <= 0;
  if (a.bytes <= 0) return a.gain > b.gain;
  return a.gain * b.bytes > b.gain * a.bytes;
}

// Errors of different layers know nothing of each other: their squares add.
double square_added(const Choice& c, size_t option) {
  const double now = c.now().error, then = c.options[option].estimate.error;
  return then * then - now * now;
}

Upgrade best_upgrade(std::vector<Choice>& choices, double spare_bytes, double spare_square) {
  Upgrade best;
  for (Choice& c : choices)
    for (size_t i = 0; i < c.options.size(); ++i) {
      const AlgorithmEstimate& e = c.options[i].estimate;
      Upgrade u{&c, i, c.now().cycles - e.cycles, e.weight_bytes - c.now().weight_bytes};
      if (u.gain <= kLeastGain * c.now().cycles || u.bytes > spare_bytes || square_added(c, i) > spare_square) continue;
      if (better(u, best)) best = u;
    }
  return best;
}

}  // namespace

const char* algorithm_name(Algorithm a) {
  switch (a) {
    case Algorithm::direct: return "direct";
    case Algorithm::winograd_f2: return "winograd_f2";
    case Algorithm::winograd_f4: return "winograd_f4";
    case Algorithm::winograd_f6: return "winograd_f6";
    case Algorithm::strassen: return "strassen";
  }
  TW_UNREACHABLE("bad algorithm");
}

std::optional<Algorithm> algorithm_from_name(std::string_view name) {
  for (int i = 0; i < kAlgorithmCount; ++i)
    if (name == algorithm_name(static_cast<Algorithm>(i))) return static_cast<Algorithm>(i);
  return std::nullopt;
}

int winograd_tile(Algorithm a) {
  switch (a) {
    case Algorithm::winograd_f2: return 2;
    case Algorithm::winograd_f4: return 4;
    case Algorithm::winograd_f6: return 6;
    case Algorithm::direct:
    case Algorithm::strassen: return 0;
  }
  TW_UNREACHABLE("bad algorithm");
}

AlgorithmSummary choose_algorithms(const Graph& graph, std::vector<Group>& groups, const Target& target, const AlgorithmOptions& options) {
  const double model_bytes = constant_bytes(graph, groups);
  AlgorithmSummary total;
  double squares = 0;
  std::vector<Choice> choices;
  for (Group& group : groups) {
    group.algorithm = Algorithm::direct;
    const Node& node = graph.node(group.anchor);
    if (!has_constant_weights(graph, node) || is_attention(graph, group)) continue;
    Choice c{&group, {{Algorithm::direct, *estimate_algorithm(graph, node, Algorithm::direct, target, model_bytes)}}};
    for (Algorithm algorithm : kFast) {
      if (options.only && *options.only != algorithm) continue;
      if (auto e = estimate_algorithm(graph, node, algorithm, target, model_bytes)) c.options.push_back({algorithm, *e});
    }
    if (options.only) c.taken = c.options.size() - 1;
    total.direct_bytes += c.options[0].estimate.weight_bytes;
    squares += c.now().error * c.now().error;
    choices.push_back(std::move(c));
  }
  double spare = std::max(model_bytes, total.direct_bytes) * (options.max_weight_growth - 1);
  while (!options.only) {
    const double budget = target.accuracy / kPassedOn;
    const Upgrade u = best_upgrade(choices, spare, budget * budget - squares);
    if (!u.choice) break;
    squares += square_added(*u.choice, u.option);
    spare -= u.bytes;
    u.choice->taken = u.option;
  }
  for (const Choice& c : choices) {
    c.group->algorithm = c.options[c.taken].algorithm;
    total.weight_bytes += c.now().weight_bytes;
  }
  total.error = kPassedOn * std::sqrt(squares);
  return total;
}

}  // namespace tw
