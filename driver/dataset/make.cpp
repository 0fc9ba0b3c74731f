#include "driver/dataset/make.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "autotune/task.h"
#include "driver/dataset/program_maker.h"
#include "driver/dataset/set_programs.h"
#include "driver/dataset/task_labels.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

constexpr int64_t kClaimSeconds = 300;  // longer than a batch takes
constexpr int64_t kPassDistance = 30;   // seconds between the passes of a task

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string holder_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(::getpid()) + ":" +
         std::to_string(std::time(nullptr));
}

class Maker {
 public:
  Maker(DataSet& set, const MakeRequest& request)
      : set_(set),
        request_(request),
        holder_(holder_name()),
        start_(now()),
        targets_(request.target_folders) {
    stop_ = [this] {
      return (request_.stop && *request_.stop) ||
             (request_.seconds > 0 && now() - start_ > request_.seconds);
    };
  }

  Expected<MakeOutcome> run() {
    for (const PlatformChoice& choice : request_.platforms) {
      TW_ASSIGN(const Target target, load_target(choice.target, request_.target_folders));
      TW_ASSIGN(LabelPlace place,
                label_place(target, choice.threads, request_.jobs, request_.worker));
      TW_ASSIGN(place.platform, set_.platform({0, choice.target, target_key(target.main_device()),
                                               place.machine(), choice.threads, place.kind()}));
      places_.push_back(std::move(place));
    }
    TW_ASSIGN(std::vector<LearningTask> tasks, set_.tasks());
    if (!request_.splits.empty())
      std::erase_if(tasks, [&](const LearningTask& task) {
        return std::ranges::find(request_.splits, task.split) == request_.splits.end();
      });
    order_by_seed(tasks, request_.seed);
    for (const LearningTask& task : tasks)
      for (LabelPlace& place : places_) {
        if (stop_()) break;
        TW_TRY(visit(task, place, 0));
        TW_TRY(catch_up(false));
      }
    if (!stop_()) TW_TRY(catch_up(true));
    TW_TRY(count_left(tasks));
    out_.seconds = now() - start_;
    return std::move(out_);
  }

 private:
  // Runs the second passes whose first pass ended some time ago; with `all`, every second pass.
  Error catch_up(bool all) {
    while (!waiting_.empty() && !stop_() &&
           (all || now() - waiting_.front().since > kPassDistance)) {
      const Waiting next = waiting_.front();
      waiting_.erase(waiting_.begin());
      TW_TRY(visit(next.task, *next.place, 1));
    }
    return Error::success();
  }

  Error visit(const LearningTask& listed, LabelPlace& place, int pass) {
    const auto claim = [&] {
      return set_.claim(place.platform, listed.id, holder_, std::time(nullptr), kClaimSeconds);
    };
    TW_ASSIGN(const bool ours, claim());
    if (!ours) return Error::success();
    Error error = work(listed, place, pass, [&]() -> Error { return claim().takeError(); });
    TW_TRY(set_.release(place.platform, listed.id, holder_));
    if (!error) return error;
    // A task that fails ends only itself. A set that cannot be written ends the whole call.
    Error broken = Error::success();
    for (Diag& d : take_diags(std::move(error))) {
      if (d.code == DiagCode::io) broken = make_error(d.code, "{0}", d.message);
      out_.failures.push_back(listed.name + ": " + d.message);
    }
    return broken;
  }

  Error work(const LearningTask& listed, LabelPlace& place, int pass,
             const std::function<Error()>& after_batch) {
    TW_ASSIGN(const bool fitting, fits(listed, place));
    if (!fitting) return Error::success();
    TW_ASSIGN(const bool labelled, is_labelled(listed, place));
    if (pass == 0 && request_.predictors) {
      TW_ASSIGN(const LearningTask task, set_.task(listed.id));
      if (!task.complete) return Error::success();
    } else if (pass == 0 && labelled) {
      // An earlier call labelled the task. It may have ended before the second pass.
      TW_ASSIGN(const std::vector<Label> again, set_.labels(place.platform, listed.id, 1));
      if (again.empty()) wait_for_second(listed, place, 0);
      return Error::success();
    }
    if (request_.watch)
      request_.watch(listed.name + " on " + place.target().name +
                     (place.threads > 1 ? ", " + std::to_string(place.threads) + " threads" : ""));
    TW_ASSIGN(const Target* lowered, targets_.find(listed.lowered_for));
    TW_ASSIGN(const std::unique_ptr<TaskLabels> labels,
              TaskLabels::create(set_, place, listed.id, *lowered, pass == 0 && request_.predictors,
                                 after_batch));
    Error error =
        pass > 0 ? labels->second_pass(stop_)
        : request_.predictors
            ? ProgramMaker(*labels, stop_).extend(request_.predictors, request_.extended_by)
            : labels->first_pass(wanted(listed), stop_);
    (pass == 0 ? out_.labels : out_.again) += labels->stored();
    if (error) return error;
    if (pass > 0 || stop_()) return Error::success();
    ++out_.tasks;
    wait_for_second(listed, place, now());
    return Error::success();
  }

  // True if the task is lowered for such a place: a processor, or a device of the same kind.
  Expected<bool> fits(const LearningTask& task, const LabelPlace& place) {
    TW_ASSIGN(const Target* lowered, targets_.find(task.lowered_for));
    return same_driver(lowered->main_device(), place.target());
  }

  // The number of the task's programs that get labels
  int wanted(const LearningTask& task) const {
    const bool test = task.split == Split::test || task.split == Split::near;
    return test ? request_.for_test : request_.for_training;
  }

  // True if all programs are made, and every one, or as many as are wanted, has a first-pass label.
  Expected<bool> is_labelled(const LearningTask& listed, const LabelPlace& place) {
    TW_ASSIGN(const LearningTask task, set_.task(listed.id));  // reads the current state
    if (!task.complete) return false;
    TW_ASSIGN(const int64_t missing, set_.unlabelled(place.platform, task.id));
    if (missing == 0) return true;
    TW_ASSIGN(const std::vector<Label> labels, set_.labels(place.platform, task.id, 0));
    return labels.size() >= static_cast<size_t>(wanted(task));
  }

  void wait_for_second(const LearningTask& task, LabelPlace& place, double since) {
    if (place.timed()) waiting_.push_back({task, &place, since});  // others are the same each time
  }

  Error count_left(const std::vector<LearningTask>& tasks) {
    for (const LearningTask& task : tasks)
      for (const LabelPlace& place : places_) {
        TW_ASSIGN(const bool fitting, fits(task, place));
        TW_ASSIGN(const bool labelled, is_labelled(task, place));
        out_.left += fitting && !labelled;
      }
    return Error::success();
  }

  struct Waiting {  // a task that waits for its second pass
    LearningTask task;
    LabelPlace* place;
    double since;
  };
  DataSet& set_;
  const MakeRequest& request_;
  std::string holder_;
  double start_;
  StopAsked stop_;
  std::vector<LabelPlace> places_;
  NamedTargets targets_;  // targets that kernels are lowered for
  std::vector<Waiting> waiting_;
  MakeOutcome out_;
};

}  // namespace

Expected<PlatformChoice> parse_platform(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return PlatformChoice{text, 1};
  const std::string threads = text.substr(colon + 1);
  if (threads.empty() || threads.size() > 3 ||
      threads.find_first_not_of("0123456789") != std::string::npos || std::stoi(threads) < 1)
    return make_error(DiagCode::invalid_argument,
                      "--platform '{0}': a target, or a target and a number of threads, as "
                      "x86-64-v3:2",
                      text);
  return PlatformChoice{text.substr(0, colon), std::stoi(threads)};
}

std::vector<std::string> usual_platforms(const std::vector<std::string>& target_folders) {
  std::vector<std::string> out;
  const Target host = host_target();
  for (const char* name : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    Expected<Target> target = load_target(name, target_folders);
    if (!target) {
      llvm::consumeError(target.takeError());
      continue;
    }
    if (target->arch() == host.arch() &&
        std::ranges::all_of(target->features, [&](const std::string& f) { return host.has(f); }))
      out.emplace_back(name);
  }
  if (out.empty()) out.emplace_back("host");
  if (host.cores > 1) out.push_back(out.front() + ":2");
  return out;
}

Expected<MakeOutcome> make_labels(DataSet& set, const MakeRequest& request) {
  return Maker(set, request).run();
}

}  // namespace tw
