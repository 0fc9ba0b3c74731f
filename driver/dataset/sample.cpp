#include "driver/dataset/sample.h"

#include <algorithm>
#include <random>
#include <set>

#include "autotune/dataset/prior.h"

namespace tw {
namespace {

bool has_fresh_size(const Layer& layer, const std::vector<Layer>& table) {
  for (size_t i = 0; i < layer.values.size(); ++i)
    if (is_size(layer.kind, i) && std::ranges::none_of(table, [&](const Layer& other) {
          return other.kind == layer.kind && other.values[i] == layer.values[i];
        }))
      return true;
  return false;
}

}  // namespace

Expected<Sampled> sample_layers(DataSet& set, int count, uint64_t seed) {
  Sampled out;
  TW_ASSIGN(const std::vector<LearningTask> tasks, set.tasks());
  for (const LearningTask& listed : tasks) {
    if (listed.split != Split::train || listed.network == kSampledNetwork) continue;
    TW_ASSIGN(const LearningTask task, set.task(listed.id));
    TW_ASSIGN(const ParsedTask parsed, parse_task(task.text, "task " + task.key));
    if (const std::optional<Layer> layer = layer_of(parsed)) out.table.push_back(*layer);
  }
  if (out.table.empty())
    return make_error(DiagCode::invalid_argument, "'{0}' has no layer of a network to sample from",
                      set.path());
  const Prior prior(out.table);
  std::mt19937_64 random(seed);
  std::set<std::pair<LayerKind, std::vector<int64_t>>> different;
  for (int i = 0; i < count; ++i) {
    const Layer& layer = out.drawn.emplace_back(prior.sample(random));
    Expected<Graph> graph = graph_of(layer);
    if (!graph) {
      llvm::consumeError(graph.takeError());
      continue;
    }
    ++out.possible;
    different.emplace(layer.kind, layer.values);
    if (std::ranges::count(out.table, layer) > 0) continue;
    ++out.fresh;
    out.fresh_sizes += has_fresh_size(layer, out.table);
  }
  out.different = static_cast<int>(different.size());
  return out;
}

}  // namespace tw
