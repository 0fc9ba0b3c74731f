#include "cli/tune_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autotune/measure/local.h"
#include "autotune/measure/session.h"
#include "autotune/spaces/space.h"
#include "cli/candidate.h"
#include "cli/model_tasks.h"

namespace tw {
namespace {

// Of a kernel: the libraries of both schedules.
struct Pair { MeasureJob by_default, tuned; };

struct Best { size_t variant = 0; Record record; };

// What a compile takes of the records: the best, or the default schedule of the algorithm in use where that is as good.
std::optional<Best> best_of(const Task& task, const std::vector<Record>& records, const std::string& usual) {
  std::optional<Best> best, by_default;
  const std::string used = kernel_hash(task.variants.front().lowered.kernel);
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const std::string hash = kernel_hash(task.variants[v].lowered.kernel);
    for (const Record& r : records) {
      if (r.kernel_hash != hash || r.status != Status::ok) continue;
      if (!best || median_seconds(r) < median_seconds(best->record)) best = Best{v, r};
      if (hash == used && r.schedule == usual && (!by_default || median_seconds(r) < median_seconds(by_default->record))) by_default = Best{v, r};
    }
  }
  return by_default && !is_gain(median_seconds(best->record), median_seconds(by_default->record)) ? by_default : best;
}

Expected<MeasureJob> job_for(const LoweredGroup& lowered, const Schedule& schedule, const Target& target, const CandidateBuilder& builder, int threads) {
  TW_ASSIGN(const Kernel kernel, apply(lowered.kernel, schedule, &target));
  TW_ASSIGN(MeasureJob job, job_of(kernel, {std::vector<int64_t>(lowered.kernel.symbols.size(), 1), 1, {}, 1e-4, threads}));
  TW_ASSIGN(const std::string object, builder.compile(kernel));
  TW_ASSIGN(job.library, builder.link(object));
  job.symbol = builder.symbol;
  return job;
}

Expected<Pair> pair_of(const Task& task, const Schedule& usual, const Best& best, const Target& target, const CandidateBuilder& builder, int threads) {
  const LoweredGroup &used = task.variants.front().lowered, &found = task.variants[best.variant].lowered;
  TW_ASSIGN(const Schedule tuned, parse_schedule(best.record.schedule));
  Pair pair;
  TW_ASSIGN(pair.by_default, job_for(used, usual, target, builder, threads));
  TW_ASSIGN(pair.tuned, job_for(found, tuned, target, builder, threads));
  return pair;
}

}  // namespace

Expected<std::vector<CheckedKernel>> check_records(const TuneRequest& request, const Target& target, int processes) {
  if (!target.devices.empty()) return make_error(DiagCode::unsupported, "--check times processors; what device '{0}' takes is in its cycles", target.main_device().name);
  const int threads = request.network.threads;
  TW_ASSIGN(TuningLog log, TuningLog::open(request.log, TuningLog::Mode::read));
  TW_ASSIGN(const std::vector<Task> tasks, chosen_tasks(request, target));
  TW_ASSIGN(const CandidateBuilder builder, candidate_builder(target, threads));
  std::vector<CheckedKernel> kernels;
  std::vector<Pair> pairs;
  for (const Task& task : tasks) {
    TW_ASSIGN(const std::vector<Record> records, log.all({task.key, target_key(target), "", threads, kLanguageVersion, Status::ok}));
    const LoweredGroup& used = task.variants.front().lowered;
    TW_ASSIGN(const Schedule usual, default_schedule(used.kernel, used.family, target));
    const std::optional<Best> best = best_of(task, records, print(usual));
    if (!best) continue;
    TW_ASSIGN(Pair pair, pair_of(task, usual, *best, target, builder, threads));
    pairs.push_back(std::move(pair));
    kernels.push_back({task.key, task.name, best->record.algorithm, median_seconds(best->record), {}, {}, {}});
  }
  for (int p = 0; p < processes; ++p) {
    TW_ASSIGN(const std::unique_ptr<LocalTransport> process, LocalTransport::create({.threads = threads}));
    for (size_t k = 0; k < kernels.size(); ++k) {
      const std::vector<MeasureJob> jobs = {pairs[k].by_default, pairs[k].tuned, pairs[k].by_default};
      const std::vector<MeasureResult> results = process->run(jobs);
      kernels[k].first.push_back(seconds_of(results[0]));
      kernels[k].tuned.push_back(seconds_of(results[1]));
      kernels[k].again.push_back(seconds_of(results[2]));
    }
  }
  return kernels;
}

Json to_json(const CheckedKernel& kernel) {
  return Json::Object{{"task", kernel.key}, {"name", kernel.name}, {"algorithm", kernel.algorithm}, {"recorded", kernel.recorded},
                      {"tuned", json_array(kernel.tuned)}, {"default", json_array(kernel.first)}, {"default_again", json_array(kernel.again)}};
}

std::string check_table(const std::vector<CheckedKernel>& kernels) {
  std::string text;
  int same = 0;
  for (const CheckedKernel& kernel : kernels) {
    std::vector<double> gains, noise;
    for (size_t p = 0; p < kernel.tuned.size(); ++p) {
      gains.push_back(std::sqrt(kernel.first[p] * kernel.again[p]) / kernel.tuned[p]);
      noise.push_back(std::max(kernel.first[p], kernel.again[p]) / std::min(kernel.first[p], kernel.again[p]));
    }
    const auto [low, high] = std::ranges::minmax(gains);
    const bool kept = low >= 1 || high <= 1;
    same += kept;
    char line[160];
    std::snprintf(line, sizeof line, "%-44.44s %10.4f ms %6.3f x (%.3f .. %.3f), to itself %.3f%s\n", kernel.name.c_str(), median_of(kernel.tuned) * 1e3,
                  median_of(gains), low, high, std::ranges::max(noise), kept ? "" : "  rank changes");
    text += line;
  }
  return text + std::to_string(same) + " of " + std::to_string(kernels.size()) + " kernels keep their rank in all processes\n";
}

}  // namespace tw
