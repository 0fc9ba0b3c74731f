#include "driver/dataset/adapt.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "autotune/candidate.h"
#include "autotune/log.h"
#include "autotune/models/linear_head.h"
#include "driver/dataset/exchange.h"
#include "driver/dataset/set_programs.h"
#include "driver/dataset/task_labels.h"
#include "driver/tune/predictor_files.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

constexpr int kFolds = 4;             // parts of the tasks, each held out once
constexpr size_t kLeastPrograms = 8;  // tasks with fewer programs do not count

// A task's measured programs as the predictor's members see them
struct AdaptedTask {
  std::vector<HeadGroup> by_member;  // rows: the network's score, then its embedding
  std::vector<double> seconds;
};

class Adapter {
 public:
  explicit Adapter(const AdaptRequest& request)
      : request_(request), targets_(request.target_folders) {
    stop_ = [this] { return request_.stop && *request_.stop; };
  }

  Expected<AdaptOutcome> run() {
    TW_ASSIGN(predictors_, load_predictors(request_.kind, request_.predictor_folders));
    TW_ASSIGN(const Target target, load_target(request_.target, request_.target_folders));
    if (!target.devices.empty())
      return make_error(DiagCode::unsupported,
                        "target '{0}' has a device, and the programs that adapt measures are for "
                        "processors",
                        request_.target);
    if (!request_.log.empty()) {
      TW_TRY(read_log(target.main_device()));
      return fit(target.main_device());
    }
    TW_ASSIGN(place_, label_place(target, request_.threads, request_.jobs, request_.worker));
    if (place_.kind() == LabelKind::estimate)
      return make_error(DiagCode::unsupported,
                        "target '{0}' is for {1}, which this machine is not: it would be "
                        "estimated, and predictors are fitted to times; another machine measures "
                        "with --worker",
                        target.name, arch_name(target.arch()));
    TW_ASSIGN(DataSet set, DataSet::open(request_.measured, sql::Mode::write));
    TW_ASSIGN(const std::vector<LearningTask> there, set.tasks());
    if (there.empty()) TW_TRY(import_data(set));
    TW_ASSIGN(place_.platform, set.platform({0, request_.target, target_key(target.main_device()),
                                             place_.machine(), place_.threads, place_.kind()}));
    TW_TRY(measure(set));
    return fit(place_.target());
  }

 private:
  Error import_data(DataSet& set) const {
    return import_set(set, request_.data, {request_.target_folders, request_.jobs}).takeError();
  }

  using Kernels = std::map<std::pair<std::string, std::string>, std::vector<Record>>;

  // Takes the log's records, kernel by kernel.
  Error read_log(const Target& target) {
    TW_ASSIGN(TuningLog log, TuningLog::open(request_.log, TuningLog::Mode::read));
    Kernels kernels;
    TW_TRY(log.each({.target = target_key(target),
                     .threads = request_.threads,
                     .language = kLanguageVersion,
                     .status = Status::ok},
                    [&](const Record& record) {
                      kernels[{record.key.task, record.kernel_hash}].push_back(record);
                      return Error::success();
                    }));
    for (auto& [key, records] : kernels) {
      if (stop_() || out_.samples >= request_.samples) break;
      TW_ASSIGN(const std::optional<std::string> text,
                log.text(TuningLog::Text::kernel, key.second));
      if (text) TW_TRY(add_records(target, *text, latest(std::move(records))));
    }
    return tasks_.empty()
               ? make_error(DiagCode::invalid_argument,
                            "'{0}' has no kernel with {1} records of '{2}' on {3} "
                            "thread(s)",
                            request_.log, kLeastPrograms, request_.target, request_.threads)
               : Error::success();
  }

  // A search measures many records of few kinds: a fair sample counts, by their identities.
  Error add_records(const Target& target, const std::string& text, std::vector<Record> records) {
    std::ranges::sort(records, {}, [](const Record& r) { return record_id(r); });
    TW_ASSIGN(const Kernel kernel, parse_kernel(text));
    std::vector<Candidate> candidates;
    std::vector<double> seconds;
    for (const Record& record : records) {
      if (static_cast<int>(candidates.size()) == request_.each) break;
      TW_ASSIGN(Schedule schedule, parse_schedule(record.schedule));
      Expected<Candidate> candidate = candidate_of(kernel, target, std::move(schedule));
      if (!candidate) {  // the log may be of another version
        llvm::consumeError(candidate.takeError());
        continue;
      }
      candidates.push_back(std::move(*candidate));
      seconds.push_back(median_seconds(record));
    }
    if (candidates.size() < kLeastPrograms) return Error::success();
    return add_task(kernel, target, request_.threads, candidates, std::move(seconds));
  }

  // Measures training tasks, in an order that the seed alone decides, until there are enough
  // samples.
  Error measure(DataSet& set) {
    TW_ASSIGN(std::vector<LearningTask> tasks, set.tasks());
    std::erase_if(tasks, [](const LearningTask& t) { return t.split != Split::train; });
    order_by_seed(tasks, request_.seed);
    for (const LearningTask& task : tasks) {
      if (stop_() || out_.samples >= request_.samples) break;
      if (request_.watch)
        request_.watch(std::to_string(out_.samples) + " of " + std::to_string(request_.samples) +
                       ", " + task.name);
      TW_TRY(measure_task(set, task));
    }
    return tasks_.empty() ? make_error(DiagCode::invalid_argument,
                                       "'{0}' has no programs of training that run on '{1}'",
                                       request_.data, request_.target)
                          : Error::success();
  }

  Error measure_task(DataSet& set, const LearningTask& listed) {
    TW_ASSIGN(std::vector<LearningProgram> programs, set.programs(listed.id));
    // Programs are sorted by hash: the first ones are a fair sample, the same in every call.
    programs.resize(std::min(programs.size(), static_cast<size_t>(request_.each)));
    if (programs.size() < kLeastPrograms) return Error::success();
    TW_ASSIGN(const Target* lowered, targets_.find(listed.lowered_for));
    TW_ASSIGN(const std::vector<Label> before, set.labels(place_.platform, listed.id, 0));
    std::vector<LearningProgram> missing;
    for (const LearningProgram& p : programs)
      if (std::ranges::find(before, p.id, &Label::program) == before.end()) missing.push_back(p);
    if (!missing.empty()) {
      Expected<std::unique_ptr<TaskLabels>> labels = TaskLabels::create(set, place_, listed.id,
                                                                        *lowered, false, nullptr);
      if (!labels) {  // a kernel that this chip cannot run says nothing about it
        llvm::consumeError(labels.takeError());
        return Error::success();
      }
      TW_TRY((*labels)->measure_new(missing, 0, stop_));
    }
    TW_ASSIGN(const std::vector<Label> measured, set.labels(place_.platform, listed.id, 0));
    const std::map<int64_t, double> times = times_of(measured);
    std::erase_if(programs, [&](const LearningProgram& p) { return !times.contains(p.id); });
    if (programs.size() < kLeastPrograms) return Error::success();
    TW_ASSIGN(const LearningTask task, set.task(listed.id));
    TW_ASSIGN(const std::vector<Candidate> candidates,
              program_candidates(task, programs, lowered->main_device(), request_.jobs));
    std::vector<double> seconds;
    for (const LearningProgram& p : programs) seconds.push_back(times.at(p.id));
    TW_ASSIGN(const Kernel kernel, parse_kernel(task.kernel_text));
    return add_task(kernel, place_.target(), place_.threads, candidates, std::move(seconds));
  }

  Error add_task(const Kernel& kernel, const Target& target, int threads,
                 const std::vector<Candidate>& candidates, std::vector<double> seconds) {
    AdaptedTask out;
    out.seconds = std::move(seconds);
    const PredictedTask about = predicted_task({std::make_shared<const Kernel>(kernel)}, target,
                                               threads);
    for (size_t m = 0; m < predictors_->size(); ++m) {
      TW_ASSIGN(const std::vector<Prediction> all,
                predictors_->by_member(m, about, candidates, request_.jobs));
      HeadGroup& group = out.by_member.emplace_back();
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].embedding.empty())
          return make_error(DiagCode::unsupported,
                            "predictor '{0}' has no embedding that a head could read",
                            request_.kind);
        std::vector<double>& row = group.rows.emplace_back(1, all[i].score);
        row.insert(row.end(), all[i].embedding.begin(), all[i].embedding.end());
        group.values.push_back(-std::log2(out.seconds[i]));
      }
    }
    out_.samples += static_cast<int64_t>(candidates.size()), ++out_.tasks;
    tasks_.push_back(std::move(out));
    return Error::success();
  }

  std::vector<HeadGroup> groups(size_t member, int left_out) const {
    std::vector<HeadGroup> list;
    for (size_t t = 0; t < tasks_.size(); ++t)
      if (static_cast<int>(t % kFolds) != left_out) list.push_back(tasks_[t].by_member[member]);
    return list;
  }

  // Weights that change nothing: the network's score counts once, its embedding not at all
  std::vector<double> alone(size_t member) const {
    std::vector<double> weights(tasks_.front().by_member[member].rows.front().size(), 0);
    weights.front() = 1;
    return weights;
  }

  // Fits weights; the penalty draws them to those of `alone`.
  std::vector<double> fitted(size_t member, double penalty, int left_out) const {
    return fit_within_groups(groups(member, left_out), penalty, alone(member));
  }

  HeldOut held_out(
      const std::function<std::vector<double>(size_t member, int fold)>& weights) const {
    HeldOut out;
    double squares = 0, count = 0;
    std::map<std::pair<size_t, int>, std::vector<double>> of;
    for (size_t m = 0; m < predictors_->size(); ++m)
      for (int fold = 0; fold < kFolds; ++fold) of[{m, fold}] = weights(m, fold);
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const AdaptedTask& task = tasks_[t];
      std::vector<double> scores(task.seconds.size(), 0);
      for (size_t m = 0; m < predictors_->size(); ++m) {
        const std::vector<double>& w = of[{m, static_cast<int>(t % kFolds)}];
        for (size_t i = 0; i < scores.size(); ++i)
          scores[i] += std::inner_product(w.begin(), w.end(), task.by_member[m].rows[i].begin(),
                                          0.0) /
                       static_cast<double>(predictors_->size());
      }
      const auto chosen = std::ranges::max_element(scores) - scores.begin();
      out.top1 += std::ranges::min(task.seconds) / task.seconds[static_cast<size_t>(chosen)] /
                  static_cast<double>(tasks_.size());
      HeadGroup left{{}, {}};
      for (size_t i = 0; i < scores.size(); ++i) {
        left.rows.push_back({scores[i]});
        left.values.push_back(-std::log2(task.seconds[i]));
      }
      const double error = error_within_groups({left}, {1});
      squares += error * error * static_cast<double>(scores.size());
      count += static_cast<double>(scores.size());
    }
    out.spread = std::sqrt(squares / std::max(1.0, count));
    return out;
  }

  Expected<AdaptOutcome> fit(const Target& target) {
    constexpr std::array kPenalties = {1.0, 10.0, 100.0, 1000.0};
    out_.before = held_out([&](size_t member, int) { return alone(member); });
    double penalty = 0;
    for (const double p : kPenalties) {
      const HeldOut with = held_out([&](size_t m, int fold) { return fitted(m, p, fold); });
      if (penalty > 0 && with.spread >= out_.after.spread) continue;
      out_.after = with, penalty = p;
    }
    out_.kept = out_.after.spread < out_.before.spread && out_.after.top1 >= out_.before.top1;
    if (!out_.kept) return out_;
    ChipHeads chip;
    chip.kind = request_.kind, chip.target = target_key(target);
    chip.members = predictors_->networks();
    chip.heads.spread = out_.after.spread;
    for (size_t m = 0; m < predictors_->size(); ++m) {
      const std::vector<double> w = fitted(m, penalty, -1);
      chip.heads.own_shares.push_back(w.front());
      chip.heads.weights.emplace_back(w.begin() + 1, w.end());
    }
    TW_TRY(write_heads(chip, request_.heads));
    return out_;
  }

  const AdaptRequest& request_;
  StopAsked stop_;
  std::shared_ptr<const PredictorSet> predictors_;
  LabelPlace place_;
  NamedTargets targets_;  // targets that kernels are lowered for
  std::vector<AdaptedTask> tasks_;
  AdaptOutcome out_;
};

}  // namespace

Expected<AdaptOutcome> adapt_predictors(const AdaptRequest& request) {
  return Adapter(request).run();
}

}  // namespace tw
