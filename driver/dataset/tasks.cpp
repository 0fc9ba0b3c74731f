#include "driver/dataset/tasks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "autotune/dataset/prior.h"
#include "autotune/explorers/seen.h"
#include "autotune/measure/place.h"
#include "driver/tune/model_tasks.h"
#include "frontend/frontend.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "support/hash.h"

namespace tw {
namespace {

// A network's task before it is added to the set
struct Found {
  LearningTask task;
  std::optional<Layer> layer;
};

// A target to lower for; with a device, the back end that knows the kernels it runs
struct LoweringTarget {
  Target target;
  std::shared_ptr<const DeviceBackend> device;
};

Expected<LoweringTarget> lowering_target(const std::string& name,
                                         const std::vector<std::string>& folders) {
  LoweringTarget one;
  TW_ASSIGN(one.target, load_target(name, folders));
  one.target.name = name;
  if (one.target.devices.empty()) return one;
  TW_ASSIGN(std::unique_ptr<DeviceBackend> made, make_device_backend(one.target.main_device()));
  one.device = std::move(made);
  return one;
}

Expected<LearningTask> learning_task(const ParsedTask& parsed, const std::string& text,
                                     const std::string& network, const LoweringTarget& for_target,
                                     Algorithm algorithm = Algorithm::direct) {
  const Target& target = for_target.target;
  TW_ASSIGN(const Task task, lower_task(parsed, target.main_device(), algorithm));
  const LoweredGroup& lowered = task.variants.front().lowered;
  if (for_target.device) TW_TRY(runs_on(*for_target.device, target.main_device(), lowered));
  LearningTask out;
  out.key = task.key, out.name = task.name, out.kind = family_name(lowered.stages);
  out.algorithm = algorithm;
  if (algorithm != Algorithm::direct) out.name += std::string(", ") + algorithm_name(algorithm);
  out.network = network, out.lowered_for = target.name, out.text = text;
  out.kernel = kernel_hash(lowered.kernel), out.kernel_text = print(lowered.kernel);
  out.flops = task.flops;
  return out;
}

class Collector {
 public:
  Collector(DataSet& set, const TaskRequest& request, std::vector<LoweringTarget> targets)
      : set_(set), request_(request), targets_(std::move(targets)), random_(request.seed) {}

  Expected<TaskOutcome> run() {
    for (const std::string& path : request_.networks) {
      tell(path);
      if (Error error = read(path))
        out_.skipped.push_back(path + ": " + error_text(std::move(error)));
    }
    if (families_.empty() && request_.from_networks > 0)
      return make_error(DiagCode::invalid_argument, "no network gives a task{0}",
                        out_.skipped.empty() ? "" : ": " + out_.skipped.front());
    TW_TRY(add_from_networks());
    tell("sampling");
    TW_TRY(add_sampled());
    TW_TRY(mark_splits(set_, request_.rule).takeError());
    return std::move(out_);
  }

 private:
  void tell(const std::string& what) const {
    if (request_.watch) request_.watch(what);
  }
  // A layer's target: the key selects it, so it is the same in every network.
  const LoweringTarget& target_of(const std::string& key) const {
    return targets_[std::stoull(key.substr(0, 8), nullptr, 16) % targets_.size()];
  }
  bool held_out(const std::string& family) const {
    return request_.rule.test.contains(family) || request_.rule.validation.contains(family);
  }

  Error read(const std::string& path) {
    const std::string family = network_family(path);
    std::map<std::string, std::vector<Task>> by_target;
    for (const LoweringTarget& target : targets_) {
      TW_ASSIGN(const std::vector<Task> tasks, model_tasks(path, {}, target.target));
      for (const Task& task : tasks) {
        if (task.text.empty() || &target_of(task.key) != &target ||
            task.flops < request_.least_flops || task.flops > request_.most_flops ||
            !seen_.insert(task.key).second)
          continue;
        TW_ASSIGN(const ParsedTask parsed, parse_task(task.text));
        if (!parsed.graph.symbols.empty()) continue;
        Expected<LearningTask> made = learning_task(parsed, task.text, family, target);
        if (!made) {
          llvm::consumeError(made.takeError());
          continue;
        }
        families_[family].push_back({std::move(*made), layer_of(parsed)});
      }
    }
    return Error::success();
  }

  // Adds tasks of the families in turns. Test families take two at a time, since they are few.
  Error add_from_networks() {
    std::map<std::string, size_t> taken;
    for (auto& [family, found] : families_) shuffle(found, random_);
    const auto wanted = static_cast<size_t>(request_.from_networks);
    size_t count = 0, before = 0;
    do {
      before = count;
      for (const auto& [family, found] : families_)
        for (int turn = 0; turn < (request_.rule.test.contains(family) ? 2 : 1); ++turn) {
          size_t& next = taken[family];
          if (next >= found.size() || count >= wanted) continue;
          ++count;
          TW_ASSIGN(const bool added, set_.add(found[next++].task));
          ++(added ? out_.from_networks : out_.known);
        }
    } while (count > before && count < wanted);
    return Error::success();
  }

  Error add_sampled() {
    std::vector<Layer> table;
    for (const auto& [family, found] : families_)
      if (!held_out(family))
        for (const Found& one : found)
          if (one.layer) table.push_back(*one.layer);
    if (table.empty() || request_.sampled <= 0) return Error::success();
    const Prior prior(std::move(table));
    for (int taken = 0; taken < request_.sampled && out_.drawn < 100 * request_.sampled;) {
      ++out_.drawn;
      const Layer layer = prior.sample(random_);
      Expected<std::optional<LearningTask>> task = sampled_task(layer);
      if (!task) llvm::consumeError(task.takeError());
      if (!task || !*task) {
        ++out_.impossible;
        continue;
      }
      if (!seen_.insert((*task)->key).second) continue;
      ++taken;
      TW_ASSIGN(const bool added, set_.add(**task));
      ++(added ? out_.sampled : out_.known);
    }
    return Error::success();
  }

  // Sends the layer through the passes like a layer of a network. nullopt: it is too small or too
  // large, or no group is left of it.
  Expected<std::optional<LearningTask>> sampled_task(const Layer& layer) {
    TW_ASSIGN(Graph graph, graph_of(layer));
    const double flops = flops_of(layer);
    if (flops < request_.least_flops || flops > request_.most_flops)
      return std::optional<LearningTask>();
    const LoweringTarget& target = target_of(short_hash(print(graph)));
    PassContext context{target.target.main_device()};
    TW_TRY(run_passes(graph, context, default_pipeline()));
    const std::vector<Group> groups = fuse_groups(graph);
    const Group* group = group_of_layer(graph, groups);
    if (!group) return std::optional<LearningTask>();
    TW_ASSIGN(const std::string text, print_task(graph, *group));
    TW_ASSIGN(const ParsedTask parsed, parse_task(text));
    TW_ASSIGN(LearningTask task, learning_task(parsed, text, kSampledNetwork, target));
    return std::optional(std::move(task));
  }

  DataSet& set_;
  const TaskRequest& request_;
  std::vector<LoweringTarget> targets_;
  std::mt19937_64 random_;
  std::map<std::string, std::vector<Found>> families_;
  std::set<std::string> seen_;  // keys of tasks
  TaskOutcome out_;
};

}  // namespace

std::string network_family(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  const auto end = std::ranges::find_if(
      name, [](char c) { return !std::isalpha(static_cast<unsigned char>(c)); });
  return {name.begin(), end == name.begin() ? name.end() : end};
}

Expected<TaskOutcome> add_tasks(DataSet& set, const TaskRequest& request) {
  std::vector<LoweringTarget> targets;
  for (const std::string& name : request.lowered_for) {
    TW_ASSIGN(LoweringTarget one, lowering_target(name, request.target_folders));
    targets.push_back(std::move(one));
  }
  return Collector(set, request, std::move(targets)).run();
}

Expected<int> add_algorithms(DataSet& set, DataSet& from, std::span<const Algorithm> algorithms,
                             const std::vector<std::string>& target_folders) {
  std::map<std::string, LoweringTarget> targets;
  TW_ASSIGN(const std::vector<LearningTask> tasks, from.tasks());
  int added = 0;
  for (const LearningTask& listed : tasks) {
    if (listed.algorithm != Algorithm::direct) continue;
    TW_ASSIGN(const LearningTask task, from.task(listed.id));
    TW_ASSIGN(const ParsedTask parsed, parse_task(task.text, "task " + task.key));
    if (!targets.contains(task.lowered_for)) {
      TW_ASSIGN(targets[task.lowered_for], lowering_target(task.lowered_for, target_folders));
    }
    const LoweringTarget& target = targets.at(task.lowered_for);
    const Target& place = target.target.main_device();
    for (const Algorithm algorithm : applicable_algorithms(parsed.graph, parsed.group, place)) {
      if (algorithm == Algorithm::direct ||
          std::ranges::find(algorithms, algorithm) == algorithms.end() ||
          estimate_algorithm(parsed.graph, parsed.group, algorithm, place, 0)->error >
              place.accuracy)
        continue;
      TW_ASSIGN(LearningTask other,
                learning_task(parsed, task.text, task.network, target, algorithm));
      other.split = task.split;
      TW_ASSIGN(const bool fresh, set.add(other));
      added += fresh;
    }
  }
  return added;
}

Expected<std::vector<int>> mark_splits(DataSet& set, const SplitRule& rule) {
  TW_ASSIGN(const std::vector<LearningTask> tasks, set.tasks());
  std::vector<TaskShape> shapes;
  std::vector<TaskShape> trained;
  const auto by_rule = [&](const LearningTask& task) {
    return rule.test.contains(task.network)         ? Split::test
           : rule.validation.contains(task.network) ? Split::validation
                                                    : Split::train;
  };
  for (const LearningTask& task : tasks) {
    TW_ASSIGN(const LearningTask whole, set.task(task.id));
    TW_ASSIGN(const ParsedTask parsed, parse_task(whole.text, "task " + task.key));
    shapes.push_back(shape_of(parsed));
    if (by_rule(task) == Split::train) trained.push_back(shapes.back());
  }
  std::vector<int> counts(kSplitCount);
  for (size_t i = 0; i < tasks.size(); ++i) {
    Split split = by_rule(tasks[i]);
    if (split == Split::test && std::ranges::any_of(trained, [&](const TaskShape& other) {
          return near_duplicates(shapes[i], other);
        }))
      split = Split::near;
    ++counts[static_cast<size_t>(split)];
    if (split != tasks[i].split) TW_TRY(set.set_split(tasks[i].id, split));
  }
  return counts;
}

}  // namespace tw
