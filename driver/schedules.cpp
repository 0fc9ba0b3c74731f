#include "driver/schedules.h"

#include <llvm/Support/MemoryBuffer.h>

#include <filesystem>
#include <set>
#include <span>

#include "autotune/task.h"
#include "ir/kernel/sharing.h"
#include "kernels/default_schedule.h"

namespace tw {
namespace {

constexpr size_t kNearKernels = 4;   // whose points are tried where a kernel has no record
constexpr size_t kMostRecords = 64;  // of a kernel, until one leaves no core without work

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

// What a group's kernel makes; invalid: a copy that no node asks for.
ValueId output_of(const LoweredGroup& lowered) {
  for (size_t i = 0; i < lowered.arguments.size(); ++i)
    if (lowered.kernel.buffers[i].role == BufferRole::output) return lowered.arguments[i].value;
  return {};
}

// The first line of an error, for a message that it is part of.
std::string first_line(Error error) {
  const std::string text = error_text(std::move(error));
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string lock_beside(const std::string& model) {
  return (std::filesystem::path(model).parent_path() / "tilewright.lock").string();
}

Expected<Lock> read_lock(const std::string& path) {
  if (!exists(path)) return Lock();
  auto buffer = llvm::MemoryBuffer::getFile(path, true, false);
  if (!buffer)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", path, buffer.getError().message());
  return parse_lock((*buffer)->getBuffer(), path);
}

LockSection lock_place(const std::string& model, const std::map<std::string, int64_t>& dims,
                       const SymbolLimitsOf& limits, const Target& target, int threads) {
  return {std::filesystem::path(model).filename().string(),
          dims,
          limits,
          target.name,
          codegen_hash(target),
          threads};
}

Expected<ScheduleChooser> ScheduleChooser::make(const ScheduleOptions& options,
                                                const std::string& model,
                                                const std::map<std::string, int64_t>& dims,
                                                const SymbolLimitsOf& limits,
                                                const Target& target) {
  ScheduleChooser chooser(options, lock_place(model, dims, limits, target, options.threads));
  chooser.targets_.push_back(target_key(target));
  for (const Target& device : target.devices) chooser.targets_.push_back(target_key(device));
  if (options.frozen && !options.log.empty())
    return make_error(DiagCode::invalid_argument,
                      "--frozen takes schedules from the lock alone: leave out --log, or write the "
                      "lock with 'tilewright lock --log'");
  if (options.log.empty()) TW_TRY(chooser.read_lock());
  return chooser;
}

Error ScheduleChooser::read_lock() {
  if (!options_.lock.empty()) {
    TW_ASSIGN(const Lock lock, tw::read_lock(options_.lock));
    if (lock.outdated)
      return make_error(DiagCode::parse,
                        "'{0}' is of another version of tilewright, and what it pins is not known "
                        "here; 'tilewright lock' writes it anew",
                        options_.lock);
    if (const LockSection* section = lock.find(place_)) {
      locked_ = true;
      place_.layouts = section->layouts;
      place_.algorithms = section->algorithms;
      for (const Pin& pin : section->pins)
        pins_.emplace(PinKey{pin.task, pin.target, pin.kernel_hash}, std::vector{pin});
    } else if (options_.frozen && !lock.sections.empty()) {
      Diag d{DiagCode::invalid_argument,
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
        DiagCode::invalid_argument,
        "--frozen: there is no 'tilewright.lock' beside the model; 'tilewright lock' writes it");
  return Error::success();
}

// keep: the schedules of each kernel become its pins. The result: how many of the model's tasks
// have a record.
Expected<int64_t> ScheduleChooser::read_log(const std::string& path, bool keep) {
  TW_ASSIGN(TuningLog log, TuningLog::open(path, TuningLog::Mode::read));
  std::map<std::string, const GroupTask*> distinct;
  for (const auto& [made, task] : tasks_) distinct.emplace(task.key, &task);
  int64_t found = 0;
  for (const auto& [key, task] : distinct) {
    bool any = false;
    for (const std::string& target : targets_) {
      TW_ASSIGN(const std::vector<Record> records,
                log.all({key, target, "", options_.threads, kLanguageVersion, Status::ok}));
      for (const Record& r : latest(records)) {
        if (r.key.regime != RecordKey().regime) continue;
        any = true;
        if (keep)
          pins_[{key, target, r.kernel_hash}].push_back(
              {key, target, r.kernel_hash, task->name, r.algorithm, true, false, median_seconds(r),
               r.time, r.tool, r.schedule});
      }
    }
    found += any;
  }
  for (const std::string& target : targets_) {
    if (!keep) break;
    TW_ASSIGN(notes_of_[target], notes_of(log, target, options_.threads));
  }
  return found;
}

// What was measured on one thread runs on any number: a schedule that leaves a core without work,
// where the default does not, loses there more than it gains. shared: the default schedule's
// kernel; null: anything goes.
bool ScheduleChooser::shares(const Kernel& kernel, const Target& place,
                             const Kernel* shared) const {
  return !shared || spreads_as_well(sharing(kernel, place.cores), sharing(*shared, place.cores));
}

// The default schedule. Where it does not apply, which is a bug, the processor gets the plain one.
Error ScheduleChooser::use_default(const LoweredGroup& lowered, const Target& place,
                                   ChosenSchedule& chosen) {
  const auto use = [&](Expected<Schedule> schedule) -> Error {
    TW_ASSIGN(chosen.schedule, std::move(schedule));
    TW_ASSIGN(chosen.kernel, tw::apply(lowered.kernel, chosen.schedule, &place));
    return Error::success();
  };
  Error error = use(default_schedule(lowered.kernel, lowered.stages, place));
  if (!error || !place.driver.empty()) return error;
  chosen.fault = first_line(std::move(error));
  return use(plain_schedule(lowered.kernel, place));
}

// The schedule of the nearest kernel of the family whose point the template space of this one has,
// by its static rules too. None where a nearer one's own default schedule is the best.
bool ScheduleChooser::transfer(const LoweredGroup& lowered, const Target& place,
                               const Kernel* shared, ChosenSchedule& chosen) const {
  const auto notes = notes_of_.find(chosen.pin.target);
  const std::optional<Algorithm> algorithm = algorithm_from_name(chosen.pin.algorithm);
  if (notes == notes_of_.end() || !algorithm) return false;
  const std::vector<RecordNote> near = nearest_notes(notes->second, shape_of(lowered),
                                                     kNearKernels);
  if (near.empty()) return false;
  const auto accept = [&](const Space& space, const std::string& text) -> Error {
    const std::optional<Point> point = space.parse(text);
    if (!point) return make_error(DiagCode::illegal_schedule, "the space has no such point");
    TW_ASSIGN(chosen.schedule, space.schedule(*point));
    TW_ASSIGN(chosen.kernel, tw::apply(lowered.kernel, chosen.schedule, &place));
    return shares(chosen.kernel, place, shared)
               ? Error::success()
               : make_error(DiagCode::illegal_schedule, "cores without work");
  };
  Expected<Space> space = template_space(
      {chosen.pin.task, chosen.pin.name, 1, 0, 0, {{*algorithm, lowered}}}, place, {});
  if (!space) {
    llvm::consumeError(space.takeError());
    return false;
  }
  for (const RecordNote& note : near) {
    if (note.by_default) return false;
    Error error = accept(*space, note.point);
    if (!error) return true;
    llvm::consumeError(std::move(error));
  }
  return false;
}

Expected<AlgorithmOptions> ScheduleChooser::algorithms(const Graph& graph,
                                                       const std::vector<Group>& groups,
                                                       const Target& target,
                                                       AlgorithmOptions options) const {
  if (options.only || !in_use()) return options;
  if (locked_) {
    for (const Group& group : groups) {
      const auto pinned = place_.algorithms.find(graph.value(graph.node(group.anchor).output).name);
      if (pinned != place_.algorithms.end()) options.fixed.emplace(group.anchor, pinned->second);
    }
    return options;
  }
  TW_ASSIGN(TuningLog log, TuningLog::open(options_.log, TuningLog::Mode::read));
  TW_ASSIGN(options.measured,
            measured_algorithms(graph, groups, target, options, measured_by(log, target)));
  return options;
}

KernelSeconds ScheduleChooser::measured_by(TuningLog& log, const Target& target) const {
  return
      [&log, place = target_key(target), threads = options_.threads](
          const std::string& task, const std::string& kernel) -> Expected<std::optional<double>> {
        TW_ASSIGN(const std::optional<Record> record, log.best({task, place, threads}, kernel));
        return record ? std::optional(median_seconds(*record)) : std::nullopt;
      };
}

Expected<std::unique_ptr<CostOracle>> ScheduleChooser::layout_costs(
    const Graph& graph, const Target& target, const AlgorithmOptions& options) const {
  std::unique_ptr<CostOracle> costs;
  if (locked_ && place_.layouts) return settled_costs(*place_.layouts);
  if (options_.log.empty()) return costs;
  TW_ASSIGN(TuningLog log, TuningLog::open(options_.log, TuningLog::Mode::read));
  TW_ASSIGN(LayoutSeconds measured,
            measured_layouts(graph, target, options, measured_by(log, target)));
  if (!measured.empty()) costs = measured_costs(graph, target, std::move(measured));
  return costs;
}

Error ScheduleChooser::see(const Graph& graph, const std::vector<Group>& groups) {
  std::set<std::string> distinct;
  for (const Group& group : groups) {
    if (is_extern(graph, group)) continue;
    const GroupTask task{task_key(graph, group), task_name(graph, group),
                         algorithm_name(group.algorithm)};
    for (NodeId id : group.nodes) tasks_[graph.node(id).output] = task;
    distinct.insert(task.key);
  }
  if (!options_.log.empty()) return read_log(options_.log, true).takeError();
  if (locked_ || options_.unused_log.empty() || !exists(options_.unused_log))
    return Error::success();
  Expected<int64_t> known = read_log(options_.unused_log, false);
  if (!known) llvm::consumeError(known.takeError());  // nobody asked for that file
  else if (*known > 0)
    notes_.push_back(std::to_string(*known) + " of " + std::to_string(distinct.size()) +
                     " tasks have tuning records in '" + options_.unused_log +
                     "'; --log uses them");
  return Error::success();
}

Expected<ChosenSchedule> ScheduleChooser::choose(const LoweredGroup& lowered, const Target& place,
                                                 bool plain) const {
  ChosenSchedule chosen;
  chosen.pin.target = target_key(place);
  chosen.pin.kernel_hash = kernel_hash(lowered.kernel);
  if (const auto task = tasks_.find(output_of(lowered));
      task != tasks_.end() && !lowered.in_region) {
    chosen.pin.task = task->second.key;
    chosen.pin.name = task->second.name;
    chosen.pin.algorithm = task->second.algorithm;
  }
  std::optional<ChosenSchedule> usual;  // what records of measured times compete with
  if (!plain && !options_.log.empty() && place.driver.empty() && !chosen.pin.task.empty()) {
    usual = chosen;
    TW_TRY(use_default(lowered, place, *usual));
  }
  const Kernel* shared = usual && options_.threads == 1 && place.cores > 1 ? &usual->kernel
                                                                           : nullptr;
  const auto known = chosen.pin.task.empty()
                         ? pins_.end()
                         : pins_.find({chosen.pin.task, chosen.pin.target, chosen.pin.kernel_hash});
  const std::span<const Pin> pins = known == pins_.end() ? std::span<const Pin>()
                                                         : std::span<const Pin>(known->second);
  const auto by_default = usual ? std::ranges::find(pins, print(usual->schedule), &Pin::schedule)
                                : pins.end();
  for (const Pin& pin : pins.first(std::min(kMostRecords, pins.size()))) {
    if (by_default != pins.end() && !is_gain(pin.seconds, by_default->seconds)) break;
    Expected<Schedule> schedule = parse_schedule(pin.schedule);
    Expected<Kernel> kernel = schedule ? tw::apply(lowered.kernel, *schedule, &place)
                                       : Expected<Kernel>(schedule.takeError());
    if (!kernel) {
      chosen.problem = "the " + std::string(source()) + "'s schedule does not apply (" +
                       first_line(kernel.takeError()) + ")";
      break;
    }
    if (!shares(*kernel, place, shared)) continue;
    chosen.schedule = std::move(*schedule);
    chosen.kernel = std::move(*kernel);
    chosen.pin = pin;
    return chosen;
  }
  // For more than what the default takes
  const bool searched = by_default == pins.end() ? !pins.empty() : pins.size() > 1;
  if (!plain && !chosen.pin.task.empty() && !searched && transfer(lowered, place, shared, chosen)) {
    chosen.pin.transferred = true;
    chosen.pin.schedule = print(chosen.schedule);
    return chosen;
  }
  if (by_default != pins.end() && chosen.problem.empty()) {
    usual->pin = *by_default;
    return std::move(*usual);
  }
  if (plain) {
    TW_ASSIGN(chosen.schedule, plain_schedule(lowered.kernel, place));
    TW_ASSIGN(chosen.kernel, tw::apply(lowered.kernel, chosen.schedule, &place));
  } else {
    TW_TRY(use_default(lowered, place, chosen));
  }
  chosen.pin.schedule = print(chosen.schedule);
  return chosen;
}

bool ScheduleChooser::placed_elsewhere(const LoweredGroup& lowered, const Target& place) const {
  const auto task = tasks_.find(output_of(lowered));
  if (!locked_ || task == tasks_.end()) return false;
  const std::string& key = task->second.key;
  const auto begin = pins_.lower_bound({key, "", ""});
  // It knows nothing of the task
  if (begin == pins_.end() || std::get<0>(begin->first) != key) return false;
  const std::string here = target_key(place);
  const auto there = pins_.lower_bound({key, here, ""});
  return there == pins_.end() || std::get<0>(there->first) != key ||
         std::get<1>(there->first) != here;
}

Expected<ChosenSchedule> ScheduleChooser::take(const LoweredGroup& lowered, const Target& place,
                                               bool plain) {
  TW_ASSIGN(ChosenSchedule chosen, choose(lowered, place, plain));
  if (!chosen.fault.empty())
    faults_.push_back("kernel " + lowered.kernel.name +
                      (chosen.pin.name.empty() ? "" : " (" + chosen.pin.name + ")") +
                      ": the default schedule does not apply (" + chosen.fault +
                      "), the plain one is used, which is slower; this is a bug of tilewright: "
                      "please report it with 'tilewright reduce'");
  if (chosen.pin.task.empty()) return chosen;
  const std::string name = "task " + chosen.pin.task + " (" + chosen.pin.name + ", " +
                           chosen.pin.algorithm + ", kernel " + chosen.pin.kernel_hash + ")";
  const bool pinned = chosen.problem.empty() &&
                      pins_.contains({chosen.pin.task, chosen.pin.target, chosen.pin.kernel_hash});
  if (options_.frozen && !pinned)
    missing_.push_back(name + (chosen.problem.empty() ? "" : ": " + chosen.problem));
  else if (!chosen.problem.empty())
    warnings_.push_back(name + ": " + chosen.problem + "; the default is used");
  else if (locked_ && !pinned)
    warnings_.push_back(name + " is not in the lock; the default is used");
  return chosen;
}

Error ScheduleChooser::complete() const {
  if (missing_.empty()) return Error::success();
  const std::string count = std::to_string(missing_.size()) +
                            (missing_.size() == 1 ? " kernel" : " kernels");
  return make_error(Diag{DiagCode::invalid_argument,
                         "--frozen: '" + options_.lock + "' does not pin " + count + " of " +
                             describe(place_) + "; 'tilewright lock' writes it anew",
                         {},
                         missing_});
}

}  // namespace tw
