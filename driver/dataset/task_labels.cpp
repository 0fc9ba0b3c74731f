#include "driver/dataset/task_labels.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "autotune/candidate.h"
#include "autotune/explorers/explorers.h"
#include "autotune/explorers/seen.h"
#include "autotune/features/features.h"
#include "autotune/median.h"
#include "autotune/models/corrected.h"
#include "autotune/models/gbt.h"
#include "autotune/task_text.h"
#include "autotune/tuner.h"
#include "ir/kernel/code_size.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "support/hash.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr size_t kBatch = 32;                           // programs between two looks at the clock
constexpr int kTriesEach = 200;                         // most points drawn for a legal one
constexpr double kBestShare = 0.2, kOtherShare = 0.05;  // shares of the second pass
constexpr int kSearchBatch = 16;
// Short chains: a point costs as much as a measurement, and the set needs the programs that a
// search meets on its way.
constexpr int kChains = 16, kSteps = 16;

MeasureLimits label_limits() {
  MeasureLimits limits;
  limits.timeout = 4, limits.least_time = 0.01, limits.most_samples = 24;
  return limits;
}

}  // namespace

LabelKind LabelPlace::kind() const {
  if (timed()) return LabelKind::time;
  return estimated ? LabelKind::estimate : LabelKind::cycles;
}

std::string LabelPlace::machine() const {
  if (timed()) return own_process->device();
  return estimated ? model : "any machine";
}

ProgramCounts shares_of(int programs) {
  ProgramCounts c;
  c.search = programs * 3 / 10, c.neighbours = programs * 3 / 20, c.product = programs / 20;
  c.uniform = std::max(0, programs - 1 - c.search - c.neighbours - c.product);
  return c;
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
    LoweredGroup& lowered = lowered_.variants.front().lowered;
    TW_ASSIGN(lowered, arranged_group(lowered, *lowered_for_));
    if (kernel_hash(lowered.kernel) != kernel_hash(kernel_))
      return make_error(DiagCode::unsupported,
                        "task {0} was lowered in another way when it was added", task_.key);
  }
  TW_ASSIGN(const std::vector<LearningProgram> programs, set_.programs(task));
  for (const LearningProgram& p : programs) programs_.emplace(p.id, p);
  TW_ASSIGN(const std::vector<Label> labels, set_.labels(place_.platform, task, 0));
  for (const Label& l : labels) labels_.emplace(l.program, l);

  TW_ASSIGN(const Schedule standard, standard_schedule());
  TW_ASSIGN(const Candidate usual, tw::candidate_of(kernel_, place_.target(), standard));
  most_code_ = place_.device ? std::numeric_limits<int64_t>::max()
                             : most_operations(usual.run->kernel, lowered_for_->lanes(4));
  lowered_.weights_between = parsed.weights_between;
  measurer_ = std::make_unique<TaskMeasurer>(
      place_, place_.own_process, lowered_,
      MeasureSettings{.limits = label_limits(), .together = kBatch});
  return measurer_->compare_with(0, *usual.run);
}

Expected<Schedule> TaskLabels::standard_schedule() const {
  for (const auto& [id, program] : programs_)
    if (program.source == ProgramSource::standard) return parse_schedule(program.schedule);
  if (lowered_.variants.empty())
    return make_error(DiagCode::invalid_argument, "task {0} has no default program", task_.key);
  return default_schedule(lowered_.variants.front().lowered, *lowered_for_);
}

// Errors: an illegal point, or one whose unrolled loops are much longer than the default's.
Expected<Candidate> TaskLabels::candidate_of(const Space& space, const Point& point) const {
  TW_ASSIGN(FilledSketch filled, space.filled(point));
  Candidate made{point, std::move(filled.schedule), std::move(filled.run), 0};
  if (!made.run) {
    TW_ASSIGN(made, tw::candidate_of(kernel_, place_.target(), std::move(made.schedule), point));
  }
  TW_TRY(check_code_size(made, *lowered_for_, most_code_));
  return made;
}

uint64_t TaskLabels::seed_for(const char* what) const {
  const std::string algorithm = task_.algorithm == Algorithm::direct
                                    ? ""
                                    : algorithm_name(task_.algorithm);
  return std::stoull(short_hash(task_.key + algorithm + what), nullptr, 16);
}

int TaskLabels::count_of(ProgramSource source) const {
  return static_cast<int>(std::ranges::count_if(
      programs_, [&](const auto& one) { return one.second.source == source; }));
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
  if (!task_.complete) TW_TRY(make_programs(shares_of(programs), stop));
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

// The space without rules: generated for a processor, from the schedule template for a device
Expected<Space> TaskLabels::space_of() const {
  return place_.device ? template_space(lowered_, *lowered_for_, {false})
                       : generated_space(lowered_, *lowered_for_, {false});
}

Error TaskLabels::make_programs(const ProgramCounts& counts, const StopAsked& stop) {
  TW_ASSIGN(const Schedule standard, standard_schedule());
  const std::string text = print(standard);
  if (count_of(ProgramSource::standard) == 0)
    TW_TRY(measure_new({{program_id(task_, text), ProgramSource::standard, text}}, 0, stop));
  TW_ASSIGN(const Space space, space_of());
  TW_TRY(make_uniform(space, counts.uniform, stop));
  if (stop && stop()) return Error::success();
  TW_TRY(make_search(space, counts.search, stop));
  if (stop && stop()) return Error::success();
  TW_TRY(make_neighbours(space, counts.neighbours, stop));
  TW_TRY(make_product(counts.product, stop));
  if (stop && stop()) return Error::success();
  task_.complete = true;
  return set_.set_complete(task_.id);
}

std::vector<LearningProgram> TaskLabels::legal(const Space& space, int count, ProgramSource source,
                                               const std::function<Point()>& draw) {
  constexpr size_t kTogether = 32;  // points that are built at once, so that all cores have work
  std::vector<LearningProgram> found;
  std::set<int64_t> ids;
  for (int tries = 0; tries < kTriesEach * count && static_cast<int>(found.size()) < count;
       tries += static_cast<int>(kTogether)) {
    std::vector<Point> points;
    while (points.size() < kTogether) points.push_back(draw());
    std::vector<std::string> texts(points.size());
    llvm::cantFail(parallel_for(place_.jobs, points.size(), [&](size_t i) -> Error {
      if (Expected<Candidate> made = candidate_of(space, points[i]))
        texts[i] = print(made->schedule);
      else llvm::consumeError(made.takeError());
      return Error::success();
    }));
    for (size_t i = 0; i < points.size() && static_cast<int>(found.size()) < count; ++i) {
      if (texts[i].empty()) continue;
      const int64_t id = program_id(task_, texts[i]);
      if (source != ProgramSource::product) points_.emplace(id, points[i]);
      const auto known = programs_.find(id);
      // Earlier programs of this source count, those of other sources do not.
      if (known != programs_.end() && known->second.source != source) continue;
      if (ids.insert(id).second) found.push_back({id, source, texts[i]});
    }
  }
  return found;
}

Error TaskLabels::make_uniform(const Space& space, int count, const StopAsked& stop) {
  std::mt19937_64 random(seed_for("uniform"));
  std::vector<LearningProgram> programs = legal(space, count, ProgramSource::uniform,
                                                [&] { return space.sample(random); });
  std::erase_if(programs, [&](const LearningProgram& p) { return labels_.contains(p.id); });
  return measure_new(programs, 0, stop);
}

// Searches by annealing with gradient-boosted trees over Ansor's features, beginning with known
// labels.
Error TaskLabels::make_search(const Space& space, int count, const StopAsked& stop) {
  count -= count_of(ProgramSource::search);
  if (count <= 0) return Error::success();
  GbtOptions gbt;
  gbt.top = kSearchBatch, gbt.seed = seed_for("trees") & 0x7fffffff, gbt.jobs = place_.jobs;
  GbtModel model(loop_features(), gbt);
  AnnealingOptions annealing;
  annealing.random_first = 0, annealing.chains = kChains, annealing.iterations = kSteps;
  const MakeCandidate make = [&](const Point& point) { return candidate_of(space, point); };
  const std::unique_ptr<Explorer> explorer = annealing_explorer(
      space, seed_for("annealing"), annealing, score_points(make, model, place_.jobs));
  return search(space, *explorer, model, ProgramSource::search, count, stop);
}

Error TaskLabels::extend(const std::shared_ptr<const PredictorSet>& predictors, int count,
                         const StopAsked& stop) {
  count -= count_of(ProgramSource::predicted);
  if (count <= 0 || !task_.complete) return Error::success();
  TW_ASSIGN(const Space space, space_of());
  CorrectedModel model(predict_by(
      predictors,
      predicted_task({std::make_shared<const Kernel>(kernel_)}, place_.target(), place_.threads),
      place_.jobs));
  const MakeCandidate make = [&](const Point& point) { return candidate_of(space, point); };
  const std::unique_ptr<Explorer> explorer = corrected_explorer(
      space, seed_for("predicted"), {.again = 1}, make, model, place_.jobs);
  return search(space, *explorer, model, ProgramSource::predicted, count, stop);
}

// Every point that a search measures gets a label.
class TaskLabels::Trials final : public TaskTrials {
 public:
  Trials(TaskLabels& labels, const Space& space, ProgramSource source, const StopAsked& stop)
      : labels_(labels), space_(space), source_(source), stop_(stop) {}

  Expected<Candidate> make(const Point& point) const override {
    return labels_.candidate_of(space_, point);
  }
  Expected<Candidate> adopt(int, const Schedule& schedule) const override {
    return tw::candidate_of(labels_.kernel_, labels_.place_.target(), schedule);
  }
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates) override {
    std::vector<LearningProgram> programs;
    for (const Candidate& c : candidates) {
      const std::string text = print(c.schedule);
      programs.push_back({program_id(labels_.task_, text), source_, text});
      labels_.points_.emplace(programs.back().id, c.point);
    }
    if (!storing_) storing_ = labels_.measure_new(programs, 0, stop_);
    std::vector<MeasureResult> results;
    for (const LearningProgram& p : programs) {
      const auto label = labels_.labels_.find(p.id);
      if (label == labels_.labels_.end()) break;  // stopped
      MeasureResult& r = results.emplace_back();
      r.status = label->second.status;
      if (r.status == Status::ok) r.seconds = {label->second.seconds()};
    }
    return results;
  }
  // The error of storing labels
  Error take_error() { return std::move(storing_); }

 private:
  TaskLabels& labels_;
  const Space& space_;
  ProgramSource source_;
  const StopAsked& stop_;
  Error storing_ = Error::success();
};

Error TaskLabels::search(const Space& space, Explorer& explorer, CostModel& model,
                         ProgramSource source, int count, const StopAsked& stop) {
  Trials trials(*this, space, source, stop);
  TuneOptions options;
  options.batch = kSearchBatch, options.jobs = place_.jobs;
  TaskTuner tuner(task_.name, space, explorer, &model, trials, options);
  std::vector<KnownResult> known;
  for (const auto& [id, label] : labels_) {
    const LearningProgram& program = programs_.at(id);
    if (program.source == ProgramSource::product) continue;
    KnownResult& r = known.emplace_back();
    r.schedule = program.schedule;
    r.result.status = label.status;
    if (label.status == Status::ok) r.result.seconds = {label.seconds()};
  }
  tuner.know(std::move(known));
  // A space without further legal points is no failure of the set.
  llvm::consumeError(tuner.run(count, stop).takeError());
  return trials.take_error();
}

Error TaskLabels::make_neighbours(const Space& space, int count, const StopAsked& stop) {
  count -= count_of(ProgramSource::neighbour);
  const Label* best = nullptr;
  for (const auto& [id, label] : labels_)
    if (label.status == Status::ok && points_.contains(id) &&
        (!best || label.seconds() < best->seconds()))
      best = &label;
  if (!best || count <= 0) return Error::success();
  std::mt19937_64 random(seed_for("neighbours"));
  const Point from = points_.at(best->program);
  std::vector<LearningProgram> programs = legal(space, count, ProgramSource::neighbour,
                                                [&] { return space.mutate(from, random); });
  std::erase_if(programs, [&](const LearningProgram& p) { return labels_.contains(p.id); });
  return measure_new(programs, 0, stop);
}

Error TaskLabels::make_product(int count, const StopAsked& stop) {
  Expected<Space> space = template_space(lowered_, *lowered_for_, {true});
  if (!space) return space.takeError();
  std::mt19937_64 random(seed_for("product"));
  std::vector<LearningProgram> programs = legal(*space, count, ProgramSource::product,
                                                [&] { return space->sample(random); });
  std::erase_if(programs, [&](const LearningProgram& p) { return labels_.contains(p.id); });
  return measure_new(programs, 0, stop);
}

Error TaskLabels::second_pass(const StopAsked& stop) {
  if (!place_.timed()) return Error::success();  // labels would be the same
  std::vector<const Label*> good;
  for (const auto& [id, label] : labels_)
    if (label.status == Status::ok) good.push_back(&label);
  std::ranges::sort(good, {}, [](const Label* l) { return std::pair(l->seconds(), l->program); });
  const auto best = static_cast<size_t>(std::ceil(kBestShare * static_cast<double>(good.size())));
  std::mt19937_64 random(seed_for("again"));
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
