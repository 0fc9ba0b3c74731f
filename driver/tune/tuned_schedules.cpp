#include "driver/tune/tuned_schedules.h"

#include <llvm/ADT/StringExtras.h>

#include <filesystem>
#include <functional>
#include <set>
#include <span>

#include "autotune/log.h"
#include "autotune/measured_layouts.h"
#include "autotune/transfer.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/predicted_schedule.h"
#include "driver/tune/unused_records.h"
#include "ir/kernel/bounds.h"
#include "ir/kernel/sharing.h"
#include "kernels/arranged.h"
#include "kernels/device/attention.h"
#include "passes/choose/product_names.h"
#include "passes/pass.h"
#include "program/not_pinned.h"

namespace tw {
namespace {

constexpr size_t kNearKernels = 4;   // neighbours whose points a kernel without a record tries
constexpr size_t kMostRecords = 64;  // records tried until one leaves no core without work

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

// The first line of an error, to be part of another message
std::string first_line(Error error) {
  const std::string text = error_text(std::move(error));
  return text.substr(0, text.find('\n'));
}

// Schedules the kernel by a pin from a file. Processors run the result, so it is shown to stay
// inside of its buffers.
Expected<RunKernel> scheduled_by(const Pin& pin, const LoweredGroup& lowered, const Target& place,
                                 Schedule& schedule) {
  TW_ASSIGN(schedule, parse_schedule(pin.schedule));
  TW_TRY(check_layouts(lowered, schedule));
  TW_ASSIGN(Kernel scheduled, tw::apply(lowered.kernel, schedule, &place));
  if (place.driver.empty()) TW_TRY(check_bounds(scheduled, Tables::ours));
  return take_out_constant_stages(std::move(scheduled));
}

// Fills in the default schedule's pin: its own record, and the number of schedules that it is the
// best of.
void keep_default(Pin& pin, const Pin* known, size_t trials) {
  if (known) pin = *known;
  pin.tuned = false;
  pin.trials = trials > 1 ? static_cast<int>(trials) : 0;  // the default alone is no search
}

class TunedSchedules final : public ModelSchedules {
 public:
  // place: the compile's section in a lock
  TunedSchedules(ScheduleOptions options, LockSection place, const Target& target)
      : options_(std::move(options)), place_(std::move(place)) {
    places_.push_back(target);
    places_.insert(places_.end(), target.devices.begin(), target.devices.end());
    for (const Target& one : places_) targets_.push_back(target_key(one));
  }
  Error read_lock();

  std::set<std::string> exact_layers() const override { return place_.exact; }
  Expected<std::unique_ptr<CostOracle>> layout_costs(
      const Graph& graph, const Target& target, const AlgorithmOptions& options) const override;
  Expected<AlgorithmOptions> algorithms(const Graph& graph, const std::vector<Group>& groups,
                                        const Target& target,
                                        AlgorithmOptions options) const override;
  Error read(const std::vector<FusedGraph>& fused) override;
  Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const override;
  bool placed_elsewhere(const LoweredKernel& kernel, const Target& device) const override;
  Expected<ScheduleRemarks> review(const std::vector<LoweredKernel>& kernels,
                                   const std::vector<ChosenSchedule>& chosen) const override;

 private:
  using PinKey = std::tuple<std::string, std::string, std::string>;  // task, target, kernel
  struct GroupTask {
    std::string key, name, algorithm;
  };

  Expected<int64_t> read_log(const std::string& path, size_t first, bool keep);
  bool transfer(const LoweredKernel& kernel, const Target& place, const Kernel* shared,
                ChosenSchedule& chosen) const;
  bool transfer_in_part(const std::vector<RecordNote>& notes, const Space& space,
                        const std::function<Error(const Point&)>& accept,
                        ChosenSchedule& chosen) const;
  bool shares(const Kernel& kernel, const Target& place, const Kernel* shared) const;
  std::optional<ChosenSchedule> in_other_tile(const LoweredKernel& kernel, const Target& place,
                                              const Pin& own, double seconds,
                                              std::string& problem) const;
  Expected<bool> predict(const LoweredKernel& kernel, const Target& place,
                         const ChosenSchedule& usual, ChosenSchedule& chosen) const;
  Error check_exact_layers(const std::vector<FusedGraph>& fused) const;
  const GroupTask* task_of(const LoweredKernel& kernel) const;
  size_t trials_of(const Pin& pin) const;  // measured schedules of its task
  // pin: known facts of the kernel
  Expected<ChosenSchedule> by_default(const LoweredKernel& kernel, const Target& place,
                                      Pin pin) const;
  bool predicts() const { return options_.predictors != nullptr; }
  bool in_use() const { return !options_.log.empty() || locked_; }
  const char* source() const { return options_.log.empty() ? "lock" : "log"; }
  std::string does_not_apply(Error error) const {
    return "the " + std::string(source()) + "'s schedule does not apply (" +
           first_line(std::move(error)) + ")";
  }

  ScheduleOptions options_;
  LockSection place_;                 // layouts, algorithms, exact: from the lock
  std::vector<Target> places_;        // the processor and the devices
  std::vector<std::string> targets_;  // their keys
  bool locked_ = false;
  std::map<PinKey, std::vector<Pin>> pins_;  // the best first; a lock has one
  // By task and target: kernels and schedules that were measured and rejected
  std::map<std::pair<std::string, std::string>, std::set<std::string>> rejected_;
  // By target: notes on kernels that have records
  std::map<std::string, std::vector<RecordNote>> notes_of_;
  std::map<const Group*, GroupTask> tasks_;
  std::vector<GroupTask> distinct_;  // one for each key, in the order of the groups
  std::set<std::string> keys_;       // keys of distinct_
  std::vector<std::string> notes_;
};

}  // namespace

namespace {

Error TunedSchedules::read_lock() {
  if (!options_.lock.empty()) {
    TW_ASSIGN(const Lock lock, tw::read_lock(options_.lock));
    if (lock.outdated)
      return make_error(DiagCode::parse,
                        "'{0}' is of another version of the schedule language, and what it pins is "
                        "not known here; 'tilewright lock' writes it anew",
                        options_.lock);
    if (const LockSection* section = lock.find(place_)) {
      locked_ = true;
      place_.layouts = section->layouts;
      place_.algorithms = section->algorithms;
      place_.exact = section->exact;
      for (const Pin& pin : section->pins)
        pins_.emplace(PinKey{pin.task, pin.target, pin.kernel_hash}, std::vector{pin});
    } else if (options_.frozen && !lock.sections.empty()) {
      Diag d{DiagCode::not_pinned,
             "--frozen: '" + options_.lock + "' pins nothing for " + describe(place_) +
                 "; 'tilewright lock' adds it",
             {},
             {}};
      for (const LockSection& s : lock.sections) {
        const bool changed = s.target == place_.target && s.target_hash != place_.target_hash;
        d.notes.push_back("it pins " + describe(s) + (changed ? ", as it was described then" : ""));
      }
      return make_error(std::move(d));
    }
  }
  if (options_.frozen && !locked_)
    return make_error(
        DiagCode::not_pinned,
        "--frozen: there is no 'tilewright.lock' beside the model; 'tilewright lock' writes it");
  return Error::success();
}

// keep: the schedules of each kernel become its pins. Returns how many of the tasks from `first` on
// have a record.
Expected<int64_t> TunedSchedules::read_log(const std::string& path, size_t first, bool keep) {
  TW_ASSIGN(TuningLog log, TuningLog::open(path, TuningLog::Mode::read));
  int64_t found = 0;
  for (const GroupTask& task : std::span(distinct_).subspan(first)) {
    const std::string& key = task.key;
    bool any = false;
    for (const std::string& target : targets_) {
      TW_ASSIGN(const std::vector<Record> records,
                log.all({key, target, "", options_.threads, kLanguageVersion, Status::ok}));
      std::vector<Record> count;  // records that count
      for (const Record& r : records)
        if (!r.rejected) count.push_back(r);
        else if (keep) rejected_[{key, target}].insert(r.kernel_hash + r.schedule);
      for (const Record& r : latest(std::move(count))) {
        if (r.key.regime != RecordKey().regime) continue;
        any = true;
        if (keep)
          pins_[{key, target, r.kernel_hash}].push_back(
              {key, target, r.kernel_hash, task.name, r.algorithm, true, false, false,
               median_seconds(r), r.time, r.tool, r.schedule});
      }
    }
    found += any;
  }
  if (keep && found == 0 && first == 0) {
    TW_ASSIGN(const std::string unused,
              unused_records(log, keys_, {targets_.begin(), targets_.end()}, options_.threads));
    if (!unused.empty()) notes_.push_back(unused);
    else if (!distinct_.empty())
      notes_.push_back("'" + path + "' has no record of any of the model's " +
                       std::to_string(distinct_.size()) + " kernels");
  }
  for (const std::string& target : targets_) {
    if (!keep) break;
    TW_ASSIGN(notes_of_[target], notes_of(log, target, options_.threads));
  }
  return found;
}

// A schedule that was measured on one thread runs on any number of threads. If it leaves a core
// without work where the default does not, it loses more there than it gains. shared: the default
// schedule's kernel; null: any schedule is fine.
bool TunedSchedules::shares(const Kernel& kernel, const Target& place, const Kernel* shared) const {
  return !shared || spreads_as_well(kernel, *shared, place.cores);
}

// Takes over what the space has of a point for the same task in another layout. Tries first the
// point that loses least.
bool TunedSchedules::transfer_in_part(const std::vector<RecordNote>& notes, const Space& space,
                                      const std::function<Error(const Point&)>& accept,
                                      ChosenSchedule& chosen) const {
  std::vector<std::pair<SharedPoint, std::string>> found;
  for (const RecordNote& note : notes)
    if (note.task == chosen.pin.task && !note.by_default)
      if (std::optional<SharedPoint> shared = space.parse_shared(note.point))
        found.emplace_back(std::move(*shared), note.point);
  std::ranges::sort(
      found, {}, [](const auto& one) { return std::pair(one.first.left_out.size(), one.second); });
  for (const auto& [shared, text] : found) {
    Error error = accept(shared.point);
    if (!error) {
      chosen.pin.left_out = llvm::join(shared.left_out, ", ");
      return true;
    }
    llvm::consumeError(std::move(error));
  }
  return false;
}

// Takes over the schedule of the nearest kernel of the family whose point is in this kernel's
// template space, static rules included; else a part of a point of the same task. False: a nearer
// kernel's own default schedule is its best, or no point fits.
bool TunedSchedules::transfer(const LoweredKernel& kernel, const Target& place,
                              const Kernel* shared, ChosenSchedule& chosen) const {
  const LoweredGroup& lowered = kernel.lowered;
  const auto notes = notes_of_.find(chosen.pin.target);
  const std::optional<Algorithm> algorithm = algorithm_from_name(chosen.pin.algorithm);
  if (notes == notes_of_.end() || !algorithm) return false;
  const std::vector<RecordNote> near = nearest_notes(notes->second, shape_of(lowered),
                                                     kNearKernels);
  if (near.empty()) return false;
  Expected<Space> space = search_space(
      {chosen.pin.task, chosen.pin.name, 1, 0, 0, {{*algorithm, lowered}}}, place,
      {.sketches = SketchSource::templates});
  if (!space) {
    llvm::consumeError(space.takeError());
    return false;
  }
  const auto accept = [&](const Point& point) -> Error {
    TW_ASSIGN(chosen.schedule, space->schedule(point));
    TW_ASSIGN(chosen.run, scheduled_run(lowered, chosen.schedule, place));
    return shares(chosen.run.kernel, place, shared)
               ? Error::success()
               : make_error(DiagCode::illegal_schedule, "cores without work");
  };
  for (const RecordNote& note : near) {
    if (note.by_default) return false;
    const std::optional<Point> point = space->parse(note.point);
    if (!point) continue;
    Error error = accept(*point);
    if (!error) return true;
    llvm::consumeError(std::move(error));
  }
  return transfer_in_part(notes->second, *space, accept, chosen);
}

// Takes the schedule that the predictors prefer to the default, if they are sure of it.
Expected<bool> TunedSchedules::predict(const LoweredKernel& kernel, const Target& place,
                                       const ChosenSchedule& usual, ChosenSchedule& chosen) const {
  const std::optional<Algorithm> algorithm = algorithm_from_name(chosen.pin.algorithm);
  if (!algorithm || !usual.fault.empty() || !place.driver.empty()) return false;
  const Task task{chosen.pin.task, chosen.pin.name, 1, 0, 0, {{*algorithm, kernel.lowered}}};
  const bool parallel = options_.threads > 1 || place.cores > 1;
  TW_ASSIGN(
      std::optional<Candidate> found,
      predict_schedule(options_.predictors, options_.caution, options_.threads, task, place,
                       {{-1, {}}, usual.schedule, std::make_shared<const RunKernel>(usual.run), 0},
                       parallel ? &usual.run.kernel : nullptr));
  if (!found) return false;
  chosen.schedule = std::move(found->schedule);
  chosen.run = *found->run;
  chosen.pin.predicted = true;
  chosen.pin.schedule = print(chosen.schedule);
  return true;
}

Expected<AlgorithmOptions> TunedSchedules::algorithms(const Graph& graph,
                                                      const std::vector<Group>& groups,
                                                      const Target& target,
                                                      AlgorithmOptions options) const {
  if (options.only || !in_use()) return options;
  if (locked_) {
    for (const Group& group : groups) {
      auto pinned = place_.algorithms.find(product_name(graph, group));
      if (pinned == place_.algorithms.end())
        pinned = place_.algorithms.find(sized_product_name(graph, group));
      if (pinned != place_.algorithms.end()) options.fixed.emplace(group.anchor, pinned->second);
    }
    return options;
  }
  TW_ASSIGN(TuningLog log, TuningLog::open(options_.log, TuningLog::Mode::read));
  TW_ASSIGN(options.measured, measured_algorithms(graph, groups, target, options,
                                                  RecordedTimes(log, target, options_.threads)));
  return options;
}

Expected<std::unique_ptr<CostOracle>> TunedSchedules::layout_costs(
    const Graph& graph, const Target& target, const AlgorithmOptions& options) const {
  std::unique_ptr<CostOracle> costs;
  if (!in_use()) return costs;
  if (locked_ && place_.layouts) return settled_costs(*place_.layouts);
  if (options_.log.empty()) return costs;
  Graph before = graph;  // values keep their numbers up to the layouts, which come last
  std::vector<std::string> pipeline = default_pipeline();
  TW_CHECK(pipeline.back() == "assign-layouts", "layouts are assigned last");
  pipeline.pop_back();
  PassContext context = pass_context(target.main_device(), before, options);
  TW_TRY(run_passes(before, context, pipeline));
  TW_ASSIGN(TuningLog log, TuningLog::open(options_.log, TuningLog::Mode::read));
  TW_ASSIGN(LayoutSeconds measured, measured_layouts(before, target, options,
                                                     RecordedTimes(log, target, options_.threads)));
  if (!measured.empty()) costs = measured_costs(before, target, std::move(measured));
  return costs;
}

// Errors: layers of the lock that the model does not have.
Error TunedSchedules::check_exact_layers(const std::vector<FusedGraph>& fused) const {
  std::set<std::string> missing = place_.exact;
  for (const FusedGraph& own : fused)
    for (const NodeId id : own.graph->order())
      missing.erase(own.graph->value(own.graph->node(id).output).name);
  if (missing.empty()) return Error::success();
  return make_error(DiagCode::invalid_argument,
                    "'{0}' keeps layers exact that '{1}' does not have: {2}; 'tilewright lock "
                    "--max-error' writes it anew",
                    options_.lock, place_.model, llvm::join(missing, ", "));
}

Error TunedSchedules::read(const std::vector<FusedGraph>& fused) {
  TW_TRY(check_exact_layers(fused));
  const size_t known_tasks = distinct_.size();
  for (const FusedGraph& own : fused)
    for (const Group& group : own.groups) {
      if (is_extern(*own.graph, group)) continue;
      GroupTask task{task_key(*own.graph, group), task_name(*own.graph, group),
                     algorithm_name(group.algorithm)};
      tasks_[&group] = task;
      if (keys_.insert(task.key).second) distinct_.push_back(std::move(task));
    }
  if (!options_.log.empty()) TW_TRY(read_log(options_.log, known_tasks, true).takeError());
  if (!options_.log.empty()) return Error::success();
  if (known_tasks > 0 || locked_ || options_.unused_log.empty() || !exists(options_.unused_log))
    return Error::success();
  Expected<int64_t> known = read_log(options_.unused_log, 0, false);
  if (!known) llvm::consumeError(known.takeError());  // nobody asked for that file
  else if (*known > 0)
    notes_.push_back(std::to_string(*known) + " of " + std::to_string(distinct_.size()) +
                     " tasks have tuning records in '" + options_.unused_log +
                     "'; --log uses them");
  return Error::success();
}

const TunedSchedules::GroupTask* TunedSchedules::task_of(const LoweredKernel& kernel) const {
  const auto found = tasks_.find(kernel.group);
  return found == tasks_.end() ? nullptr : &found->second;
}

Expected<ChosenSchedule> TunedSchedules::by_default(const LoweredKernel& kernel,
                                                    const Target& place, Pin pin) const {
  TW_ASSIGN(ChosenSchedule chosen, ModelSchedules::choose(kernel, place));
  pin.schedule = std::move(chosen.pin.schedule);
  chosen.pin = std::move(pin);
  return chosen;
}

Expected<ChosenSchedule> TunedSchedules::choose(const LoweredKernel& kernel,
                                                const Target& place) const {
  const LoweredGroup& lowered = kernel.lowered;
  ChosenSchedule chosen;
  chosen.pin.target = target_key(place);
  chosen.pin.kernel_hash = definition_hash(lowered);
  const GroupTask* task = task_of(kernel);
  if (!task) return by_default(kernel, place, std::move(chosen.pin));
  chosen.pin.task = task->key;
  chosen.pin.name = task->name;
  chosen.pin.algorithm = task->algorithm;
  std::optional<ChosenSchedule> usual;  // records of measured times compete with it
  if (!options_.log.empty() && place.driver.empty()) {
    TW_ASSIGN(usual, by_default(kernel, place, chosen.pin));
  }
  const Kernel* shared = usual && options_.threads == 1 && place.cores > 1 ? &usual->run.kernel
                                                                           : nullptr;
  const auto known = pins_.find({chosen.pin.task, chosen.pin.target, chosen.pin.kernel_hash});
  const std::span<const Pin> pins = known == pins_.end() ? std::span<const Pin>()
                                                         : std::span<const Pin>(known->second);
  std::string other_problem;
  if (auto other = in_other_tile(kernel, place, chosen.pin,
                                 pins.empty() ? kInfiniteSeconds : pins.front().seconds,
                                 other_problem))
    return std::move(*other);
  if (pins.empty()) chosen.problem = std::move(other_problem);
  const auto default_pin = usual ? std::ranges::find(pins, usual->pin.schedule, &Pin::schedule)
                                 : pins.end();
  for (const Pin& pin : pins.first(std::min(kMostRecords, pins.size()))) {
    if (default_pin != pins.end() && !is_gain(pin.seconds, default_pin->seconds)) break;
    Schedule schedule;
    Expected<RunKernel> scheduled = scheduled_by(pin, lowered, place, schedule);
    if (!scheduled) {
      chosen.problem = does_not_apply(scheduled.takeError());
      break;
    }
    if (!shares(scheduled->kernel, place, shared)) continue;
    chosen.schedule = std::move(schedule);
    chosen.run = std::move(*scheduled);
    chosen.pin = pin;
    return chosen;
  }
  // True: the log measured more than the default schedule.
  const bool searched = default_pin == pins.end() ? !pins.empty() : pins.size() > 1;
  if (!searched && transfer(kernel, place, shared, chosen)) {
    chosen.pin.transferred = true;
    chosen.pin.schedule = print(chosen.schedule);
    return chosen;
  }
  if (!usual) { TW_ASSIGN(usual, by_default(kernel, place, chosen.pin)); }
  if (!searched && predicts() && !locked_) {
    TW_ASSIGN(const bool predicted, predict(kernel, place, *usual, chosen));
    if (predicted) return chosen;
  }
  if (chosen.problem.empty())
    keep_default(usual->pin, default_pin == pins.end() ? nullptr : &*default_pin,
                 trials_of(chosen.pin));
  usual->problem = chosen.problem;
  return std::move(*usual);
}

// The kernel lowered in another tile, if it has a pin faster than `seconds`; nullopt: none has
std::optional<ChosenSchedule> TunedSchedules::in_other_tile(const LoweredKernel& kernel,
                                                            const Target& place, const Pin& own,
                                                            double seconds,
                                                            std::string& problem) const {
  std::optional<ChosenSchedule> best;
  const auto first = pins_.lower_bound({own.task, own.target, ""});
  const bool known = first != pins_.end() && std::get<0>(first->first) == own.task &&
                     std::get<1>(first->first) == own.target;
  if (!known || !kernel.group) return best;
  for (const LoweredGroup other : attention_in_other_blocks(*kernel.graph, *kernel.group, place)) {
    const auto found = pins_.find({own.task, own.target, definition_hash(other)});
    if (found == pins_.end() || found->second.front().seconds >= seconds) continue;
    const Pin& pin = found->second.front();
    Schedule schedule;
    Expected<RunKernel> scheduled = scheduled_by(pin, other, place, schedule);
    if (!scheduled) {
      problem = does_not_apply(scheduled.takeError());
      continue;
    }
    best = ChosenSchedule{std::move(schedule), std::move(*scheduled), pin};
    seconds = pin.seconds;
  }
  return best;
}

// Counts all algorithms and layouts of the task, and what was rejected.
size_t TunedSchedules::trials_of(const Pin& pin) const {
  const auto rejected = rejected_.find({pin.task, pin.target});
  size_t count = rejected == rejected_.end() ? 0 : rejected->second.size();
  for (auto own = pins_.lower_bound({pin.task, pin.target, ""});
       own != pins_.end() && std::get<0>(own->first) == pin.task &&
       std::get<1>(own->first) == pin.target;
       ++own)
    count += own->second.size();
  return count;
}

bool TunedSchedules::placed_elsewhere(const LoweredKernel& kernel, const Target& device) const {
  const GroupTask* task = task_of(kernel);
  if (!locked_ || !task) return false;
  const std::string& key = task->key;
  const auto begin = pins_.lower_bound({key, "", ""});
  // The lock knows nothing of the task.
  if (begin == pins_.end() || std::get<0>(begin->first) != key) return false;
  const std::string here = target_key(device);
  const auto there = pins_.lower_bound({key, here, ""});
  return there == pins_.end() || std::get<0>(there->first) != key ||
         std::get<1>(there->first) != here;
}

Expected<ScheduleRemarks> TunedSchedules::review(const std::vector<LoweredKernel>& kernels,
                                                 const std::vector<ChosenSchedule>& chosen) const {
  TW_ASSIGN(ScheduleRemarks remarks, ModelSchedules::review(kernels, chosen));
  remarks.in_use = in_use() || predicts();
  remarks.notes = notes_;
  if (!place_.exact.empty())
    remarks.notes.push_back("layers that stay exact by the lock: " +
                            std::to_string(place_.exact.size()));
  if (predicts()) {
    const auto predicted = std::ranges::count_if(
        chosen, [](const ChosenSchedule& one) { return one.pin.predicted; });
    remarks.notes.push_back(std::to_string(predicted) + " of " + std::to_string(chosen.size()) +
                            " schedules are the predictor's; where it was not sure to gain, the "
                            "default stays");
  }
  std::vector<UnpinnedKernel> missing;
  for (const ChosenSchedule& one : chosen) {
    const Pin& pin = one.pin;
    if (pin.task.empty()) continue;
    const std::string name = "task " + pin.task + " (" + pin.name + ", " + pin.algorithm +
                             ", kernel " + pin.kernel_hash + ")";
    const bool pinned = one.problem.empty() &&
                        pins_.contains({pin.task, pin.target, pin.kernel_hash});
    if (options_.frozen && !pinned)
      missing.push_back({pin.task, pin.algorithm, pin.kernel_hash, pin.name, one.problem});
    else if (!one.problem.empty())
      remarks.warnings.push_back(name + ": " + one.problem + "; the default is used");
    else if (locked_ && !pinned)
      remarks.warnings.push_back(name + " is not in the lock; the default is used");
  }
  if (missing.empty()) return remarks;
  const std::string count = std::to_string(missing.size()) +
                            (missing.size() == 1 ? " kernel" : " kernels");
  return llvm::make_error<NotPinned>(
      Diag{DiagCode::not_pinned,
           "--frozen: '" + options_.lock + "' does not pin " + count + " of " + describe(place_) +
               "; 'tilewright lock' writes it anew",
           {},
           {}},
      std::move(missing));
}

class TunedSource final : public ScheduleSource {
 public:
  explicit TunedSource(ScheduleOptions options) : options_(std::move(options)) {}

  Expected<std::unique_ptr<ModelSchedules>> open(const std::string& model,
                                                 const std::map<std::string, int64_t>& dims,
                                                 const SymbolLimitsOf& limits,
                                                 const Target& target) const override {
    auto schedules = std::make_unique<TunedSchedules>(
        options_, lock_place(model, dims, limits, target, options_.threads), target);
    if (options_.frozen && !options_.log.empty())
      return make_error(DiagCode::invalid_argument,
                        "--frozen takes schedules from the lock alone: leave out --log, or write "
                        "the lock with 'tilewright lock --log'");
    if (options_.log.empty()) TW_TRY(schedules->read_lock());
    return schedules;
  }

 private:
  ScheduleOptions options_;
};

}  // namespace

std::shared_ptr<const ScheduleSource> tuned_schedules(const ScheduleOptions& options) {
  return std::make_shared<TunedSource>(options);
}

}  // namespace tw
