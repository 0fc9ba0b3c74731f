#include "driver/dataset/rank.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "autotune/dataset/split.h"
#include "autotune/features/features.h"
#include "autotune/models/gbt.h"
#include "driver/dataset/set_programs.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

// Programs of a task that worked on the platform.
struct Pool {
  LearningTask task;
  TaskShape shape;
  std::vector<LearningProgram> programs;
  std::vector<double> seconds;
  std::optional<size_t> standard;
  double best() const { return std::ranges::min(seconds); }
};

// Programs come in the order of their hashes, so the first ones are a sample.
void keep_first(Pool& pool, int most) {
  const auto count = std::min(pool.programs.size(), static_cast<size_t>(most));
  pool.programs.resize(count), pool.seconds.resize(count);
  if (pool.standard && *pool.standard >= count) pool.standard.reset();
}

Expected<Pool> pool_of(DataSet& set, const LearningTask& listed, int64_t platform) {
  Pool pool;
  TW_ASSIGN(pool.task, set.task(listed.id));
  TW_ASSIGN(const std::vector<Label> labels, set.labels(platform, listed.id, 0));
  const std::map<int64_t, double> times = times_of(labels);
  if (times.empty()) return pool;
  TW_ASSIGN(const ParsedTask parsed, parse_task(pool.task.text, "task " + pool.task.key));
  pool.shape = shape_of(parsed);
  TW_ASSIGN(const std::vector<LearningProgram> programs, set.programs(listed.id));
  for (const LearningProgram& p : programs) {
    const auto time = times.find(p.id);
    if (time == times.end()) continue;
    if (p.source == ProgramSource::standard) pool.standard = pool.programs.size();
    pool.programs.push_back(p);
    pool.seconds.push_back(time->second);
  }
  return pool;
}

// The Jaccard index of two sets of steps: the size of the intersection over that of the union
double similarity(const std::set<std::string>& a, const std::set<std::string>& b) {
  size_t both = 0;
  for (const std::string& word : a) both += b.contains(word);
  const size_t either = a.size() + b.size() - both;
  return either == 0 ? 1 : static_cast<double>(both) / static_cast<double>(either);
}
std::set<std::string> steps_of(const std::string& schedule) {
  std::set<std::string> lines;
  for (size_t at = 0; at < schedule.size();) {
    const size_t end = std::min(schedule.find('\n', at), schedule.size());
    lines.insert(schedule.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

double distance(const TaskShape& a, const TaskShape& b) {
  if (a.kind != b.kind || a.log_extents.size() != b.log_extents.size()) return 1e9;
  double sum = 0;
  for (size_t i = 0; i < a.log_extents.size(); ++i)
    sum += std::abs(a.log_extents[i] - b.log_extents[i]);
  return sum;
}

// Scores of the pool's programs: how like each is to the best program of the nearest training task
std::vector<double> by_nearest(const Pool& pool, const std::vector<Pool>& training) {
  const auto nearest = std::ranges::min_element(
      training, {}, [&](const Pool& other) { return distance(pool.shape, other.shape); });
  const auto best = std::ranges::min_element(nearest->seconds) - nearest->seconds.begin();
  const std::set<std::string> wanted = steps_of(
      nearest->programs[static_cast<size_t>(best)].schedule);
  std::vector<double> scores;
  for (const LearningProgram& p : pool.programs)
    scores.push_back(similarity(wanted, steps_of(p.schedule)));
  return scores;
}

// The best time of the pool over the best time of the `count` programs with the highest scores
double top(const Pool& pool, const std::vector<double>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t i) { return scores[i]; });
  double chosen = pool.seconds[order[0]];
  for (size_t i = 0; i < std::min(count, order.size()); ++i)
    chosen = std::min(chosen, pool.seconds[order[i]]);
  return pool.best() / chosen;
}

class Table {
 public:
  void add(const std::string& method, double top1, double top5, double top10) {
    auto& rows = rows_[method];
    if (rows.empty()) order_.push_back(method);
    rows.push_back({top1, top5, top10});
  }
  std::vector<RankScore> scores() const {
    std::vector<RankScore> out;
    for (const std::string& method : order_) {
      const auto& rows = rows_.at(method);
      RankScore score{method, 0, 0, 0, 1};
      for (const auto& row : rows) {
        const auto share = 1 / static_cast<double>(rows.size());
        score.top1 += row[0] * share, score.top5 += row[1] * share, score.top10 += row[2] * share;
        score.least = std::min(score.least, row[0]);
      }
      out.push_back(score);
    }
    return out;
  }

 private:
  std::map<std::string, std::vector<std::array<double, 3>>> rows_;
  std::vector<std::string> order_;
};

void add_scores(Table& table, const std::string& method, const Pool& pool,
                const std::vector<double>& scores) {
  table.add(method, top(pool, scores, 1), top(pool, scores, 5), top(pool, scores, 10));
}

// Adds the mean result of one, five and ten programs drawn at random.
void add_random(Table& table, const Pool& pool, std::mt19937_64& random) {
  constexpr int kDraws = 200;
  std::array<double, 3> sums{};
  for (int draw = 0; draw < kDraws; ++draw) {
    double chosen = 1e300;
    for (int i = 0; i < 10; ++i) {
      chosen = std::min(chosen, pool.seconds[random() % pool.seconds.size()]);
      if (i == 0) sums[0] += pool.best() / chosen;
      if (i == 4) sums[1] += pool.best() / chosen;
    }
    sums[2] += pool.best() / chosen;
  }
  table.add("random", sums[0] / kDraws, sums[1] / kDraws, sums[2] / kDraws);
}

using Watch = std::function<void(const std::string&)>;

// Inputs of the ways to choose in the pools of one split
struct Ways {
  const std::vector<Pool>& training;
  GbtModel* trees;  // null: nothing was learned
  const std::vector<std::shared_ptr<const PredictorSet>>& predictors;
  const Target& target;
  int threads, jobs;
};

Error add_learned(Table& table, const Pool& pool, const Ways& ways) {
  if (!ways.trees && ways.predictors.empty()) return Error::success();
  TW_ASSIGN(const std::vector<Candidate> candidates,
            program_candidates(pool.task, pool.programs, ways.target, ways.jobs));
  if (ways.trees) add_scores(table, "XGBoost", pool, ways.trees->score(candidates));
  TW_ASSIGN(const Kernel kernel, parse_kernel(pool.task.kernel_text));
  const PredictedTask about = predicted_task({std::make_shared<const Kernel>(kernel)}, ways.target,
                                             ways.threads);
  for (const std::shared_ptr<const PredictorSet>& predictors : ways.predictors) {
    PredictorModel model(predictors, about, ways.jobs);
    add_scores(table, predictors->kind(), pool, model.score(candidates));
  }
  return Error::success();
}

Expected<RankTable> table_of(Split split, const std::vector<Pool>& pools, const Ways& ways,
                             std::mt19937_64& random, const Watch& watch) {
  Table table;
  double size = 0;
  for (const Pool& pool : pools) {
    if (watch) watch(pool.task.name);
    size += static_cast<double>(pool.programs.size());
    add_random(table, pool, random);
    if (pool.standard) {
      const double standard = pool.best() / pool.seconds[*pool.standard];
      table.add("default", standard, standard, standard);
    }
    add_scores(table, "nearest task's best", pool, by_nearest(pool, ways.training));
    TW_TRY(add_learned(table, pool, ways));
  }
  return RankTable{split_name(split), static_cast<int>(pools.size()),
                   size / static_cast<double>(pools.size()), table.scores()};
}

}  // namespace

Expected<std::vector<RankTable>> rank_tasks(DataSet& set, const RankRequest& request) {
  constexpr size_t kLeastPool = 16;
  TW_ASSIGN(const std::vector<Platform> platforms, set.platforms());
  const auto platform = std::ranges::find(platforms, request.platform, &Platform::id);
  if (platform == platforms.end())
    return make_error(DiagCode::invalid_argument, "'{0}' has no platform {1}", set.path(),
                      request.platform);
  TW_ASSIGN(const Target whole, load_target(platform->name, request.target_folders));
  const Target& target = whole.main_device();
  TW_ASSIGN(const std::vector<LearningTask> tasks, set.tasks());
  std::mt19937_64 random(request.seed);
  std::vector<Pool> training;
  std::map<Split, std::vector<Pool>> others;
  std::vector<MeasuredSet> measured;
  for (const LearningTask& task : tasks) {
    TW_ASSIGN(Pool pool, pool_of(set, task, request.platform));
    if (pool.programs.size() < kLeastPool) continue;
    if (request.watch) request.watch(task.name);
    if (task.split != Split::train) {
      if (request.of_pool > 0) keep_first(pool, request.of_pool);
      others[task.split].push_back(std::move(pool));
      continue;
    }
    if (request.trees) {
      Pool part = pool;
      keep_first(part, request.of_training);
      TW_ASSIGN(std::vector<Candidate> candidates,
                program_candidates(part.task, part.programs, target, request.jobs));
      measured.push_back({std::move(candidates), part.seconds});
    }
    training.push_back(std::move(pool));
  }
  if (training.empty())
    return make_error(DiagCode::invalid_argument, "'{0}' has no labels of training on {1}",
                      set.path(), platform_text(*platform));
  GbtOptions options;
  options.jobs = request.jobs, options.seed = request.seed & 0x7fffffff;
  GbtModel trees(loop_features(), options);
  if (request.watch) request.watch("training");
  const bool learned = request.trees && trees.transfer(measured);
  measured.clear();
  const Ways ways{training, learned ? &trees : nullptr, request.predictors,
                  target,   platform->threads,          request.jobs};
  std::vector<RankTable> out;
  for (const auto& [split, pools] : others) {
    TW_ASSIGN(RankTable table, table_of(split, pools, ways, random, request.watch));
    out.push_back(std::move(table));
  }
  return out;
}

}  // namespace tw
