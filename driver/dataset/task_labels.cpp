#include "driver/dataset/task_labels.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "autotune/candidate.h"
#include "autotune/explorers/seen.h"
#include "autotune/median.h"
#include "autotune/task_text.h"
#include "driver/dataset/program_maker.h"
#include "ir/kernel/code_size.h"
#include "kernels/default_schedule.h"
#include "support/hash.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr size_t kBatch = 32;                           // programs between two looks at the clock
constexpr double kBestShare = 0.2, kOtherShare = 0.05;  // shares of the second pass
MeasureLimits label_limits() {
  MeasureLimits limits;
  limits.timeout = 4, limits.least_time = 0.01, limits.most_samples = 24;
  return limits;
}

}  // namespace

uint64_t seed_for(const LearningTask& task, const char* what) {
  const std::string algorithm = task.algorithm == Algorithm::direct
                                    ? ""
                                    : algorithm_name(task.algorithm);
  return std::stoull(short_hash(task.key + algorithm + what), nullptr, 16);
}

LabelKind LabelPlace::kind() const {
  if (timed()) return LabelKind::time;
  return estimated ? LabelKind::estimate : LabelKind::cycles;
}

std::string LabelPlace::machine() const {
  if (timed()) return own_process->device();
  return estimated ? model : "any machine";
}

Expected<LabelPlace> label_place(const Target& target, int threads, int jobs,
                                 const std::string& worker) {
  TW_ASSIGN(MeasuringPlace place,
            measuring_place(
                target, {.threads = threads, .jobs = jobs, .worker = worker, .estimates = true}));
  LabelPlace out{std::move(place)};
  TW_ASSIGN(out.own_process, out.process());
  return out;
}

Expected<std::unique_ptr<TaskLabels>> TaskLabels::create(DataSet& set, LabelPlace& place,
                                                         int64_t task, const Target& lowered_for,
                                                         bool extends,
                                                         std::function<Error()> after_batch) {
  std::unique_ptr<TaskLabels> out(new TaskLabels(set, place, extends, std::move(after_batch)));
  TW_TRY(out->load(task, lowered_for));
  return out;
}

Error TaskLabels::load(int64_t task, const Target& lowered_for) {
  lowered_for_ = lowered_for.main_device();
  TW_ASSIGN(task_, set_.task(task));
  TW_ASSIGN(kernel_, parse_kernel(task_.kernel_text, "the kernel of task " + task_.key));
  TW_TRY(verify(kernel_));
  TW_ASSIGN(const ParsedTask parsed, parse_task(task_.text, "task " + task_.key));
  if (!task_.complete || extends_ || place_.device) {  // a device's code depends on constants
    TW_ASSIGN(lowered_, lower_task(parsed, *lowered_for_, task_.algorithm));
    if (kernel_hash(lowered_.variants.front().lowered.kernel) != kernel_hash(kernel_))
      return make_error(DiagCode::unsupported,
                        "task {0} was lowered in another way when it was added", task_.key);
  }
  TW_ASSIGN(const std::vector<LearningProgram> programs, set_.programs(task));
  for (const LearningProgram& p : programs) programs_.emplace(p.id, p);
  TW_ASSIGN(const std::vector<Label> labels, set_.labels(place_.platform, task, 0));
  for (const Label& l : labels) labels_.emplace(l.program, l);

  TW_ASSIGN(const Schedule standard, standard_schedule());
  TW_ASSIGN(const Candidate usual, candidate(standard));
  most_code_ = place_.device ? std::numeric_limits<int64_t>::max()
                             : most_operations(usual.run->kernel, lowered_for_->lanes(4));
  lowered_.weights_between = parsed.weights_between;
  measurer_ = std::make_unique<TaskMeasurer>(
      place_, place_.own_process, lowered_,
      MeasureSettings{.limits = label_limits(), .together = kBatch});
  return measurer_->compare_with(0, *usual.run);
}

Expected<Candidate> TaskLabels::candidate(Schedule schedule, const Point& point) const {
  return candidate_of(kernel_, place_.target(), std::move(schedule), point);
}

Expected<Schedule> TaskLabels::standard_schedule() const {
  for (const auto& [id, program] : programs_)
    if (program.source == ProgramSource::standard) return parse_schedule(program.schedule);
  if (lowered_.variants.empty())
    return make_error(DiagCode::invalid_argument, "task {0} has no default program", task_.key);
  return default_schedule(lowered_.variants.front().lowered, *lowered_for_);
}

Label TaskLabels::label_of(const LearningProgram& program, const MeasureResult& result,
                           int pass) const {
  Label label;
  label.program = program.id, label.pass = pass, label.status = result.status;
  if (result.status == Status::ok && !result.seconds.empty()) {
    label.least = std::ranges::min(result.seconds);
    label.median = median_of(result.seconds);
  }
  label.samples = static_cast<int>(result.seconds.size());
  label.contended = result.contended;
  label.code = result.code;
  label.time = static_cast<int64_t>(std::time(nullptr));
  return label;
}

TaskLabels::Results TaskLabels::results_of(std::span<const LearningProgram> programs,
                                           const StopAsked& stop) {
  Results out(programs.size());
  std::vector<std::optional<Candidate>> made(programs.size());
  llvm::cantFail(parallel_for(place_.jobs, programs.size(), [&](size_t i) -> Error {
    Expected<Schedule> schedule = parse_schedule(programs[i].schedule);
    Expected<Candidate> one = schedule
                                  ? tw::candidate_of(kernel_, place_.target(), std::move(*schedule))
                                  : Expected<Candidate>(schedule.takeError());
    if (one) made[i] = std::move(*one);
    else out[i] = {Status::illegal, {}, error_text(one.takeError()), "", false};
    return Error::success();
  }));
  std::vector<Candidate> candidates;
  for (std::optional<Candidate>& one : made)
    if (one) candidates.push_back(std::move(*one));
  const std::vector<MeasureResult> results = measurer_->measure(candidates, stop);
  size_t next = 0;
  for (size_t i = 0; i < made.size() && next < results.size(); ++i)
    if (made[i]) out[i] = results[next++];
  return out;
}

Expected<std::vector<Label>> TaskLabels::measure(const std::vector<LearningProgram>& programs,
                                                 const StopAsked& stop) {
  std::vector<Label> out;
  measurer_->forget();
  for (size_t at = 0; at < programs.size(); at += kBatch) {
    const size_t end = std::min(programs.size(), at + kBatch);
    const Results results = results_of(std::span(programs).subspan(at, end - at), stop);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) return out;  // stopped
      if (results[i]->status == Status::illegal)
        return make_error(DiagCode::illegal_schedule, "{0}", results[i]->error);
      out.push_back(label_of(programs[at + i], *results[i], 1));
    }
  }
  return out;
}

Error TaskLabels::measure_new(const std::vector<LearningProgram>& programs, int pass,
                              const StopAsked& stop) {
  if (pass > 0) measurer_->forget();
  for (size_t at = 0; at < programs.size() && !(stop && stop()); at += kBatch) {
    const std::vector<LearningProgram> batch(
        programs.begin() + static_cast<std::ptrdiff_t>(at),
        programs.begin() + static_cast<std::ptrdiff_t>(std::min(programs.size(), at + kBatch)));
    std::vector<Label> labels;
    const Results results = results_of(batch, stop);
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!results[i]) continue;  // stopped
      if (results[i]->lost) return make_error(DiagCode::io, "{0}", results[i]->error);
      labels.push_back(label_of(batch[i], *results[i], pass));
    }
    TW_TRY(set_.add_programs(task_.id, batch));
    TW_TRY(set_.add_labels(place_.platform, labels));
    stored_ += static_cast<int64_t>(labels.size());
    for (const LearningProgram& program : batch) programs_.emplace(program.id, program);
    if (pass == 0)
      for (const Label& label : labels) labels_.emplace(label.program, label);
    if (after_batch_) TW_TRY(after_batch_());
  }
  return Error::success();
}

Error TaskLabels::first_pass(int programs, const StopAsked& stop) {
  if (!task_.complete) TW_TRY(ProgramMaker(*this, stop).make(programs));
  std::vector<LearningProgram> missing;
  for (const auto& [id, program] : programs_)
    if (!labels_.contains(id)) missing.push_back(program);
  // The default program comes first: the measurer leaves programs early that are clearly slower
  // than the best. The others are sorted by id, a hash, so the first ones are a fair sample, the
  // same on every platform.
  std::ranges::stable_partition(
      missing, [](const LearningProgram& p) { return p.source == ProgramSource::standard; });
  const size_t most = static_cast<size_t>(programs) - std::min<size_t>(programs, labels_.size());
  if (missing.size() > most) missing.resize(most);
  return measure_new(missing, 0, stop);
}

Error TaskLabels::second_pass(const StopAsked& stop) {
  if (!place_.timed()) return Error::success();  // labels would be the same
  std::vector<const Label*> good;
  for (const auto& [id, label] : labels_)
    if (label.status == Status::ok) good.push_back(&label);
  std::ranges::sort(good, {}, [](const Label* l) { return std::pair(l->seconds(), l->program); });
  const auto best = static_cast<size_t>(std::ceil(kBestShare * static_cast<double>(good.size())));
  std::mt19937_64 random(seed_for(task_, "again"));
  TW_ASSIGN(const std::vector<Label> done, set_.labels(place_.platform, task_.id, 1));
  std::vector<LearningProgram> programs;
  for (size_t i = 0; i < good.size(); ++i) {
    const bool drawn = unit(random) < kOtherShare;
    const bool known = std::ranges::any_of(
        done, [&](const Label& l) { return l.program == good[i]->program; });
    if ((i < best || drawn) && !known) programs.push_back(programs_.at(good[i]->program));
  }
  return measure_new(programs, 1, stop);
}

}  // namespace tw
