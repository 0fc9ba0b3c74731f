#include "autotune/scheduler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/autotune/synthetic.h"

using namespace tw;
using namespace tw::test;

namespace {

// Tasks whose best time after n trials is known. Counts the trials that each task gets.
struct Network {
  std::vector<std::function<double(int trials)>> best;
  std::vector<int> trials = std::vector<int>(best.size(), 0);

  ScheduledTask task(size_t i, double weight = 1, double flops = 0) {
    const auto round = [this, i](int most) -> Expected<TaskRound> {
      trials[i] += most;
      return TaskRound{most, 0, best[i](trials[i]), false};
    };
    return {"task" + std::to_string(i), "g" + std::to_string(i), weight, flops, round};
  }
};

struct TestWatch : SearchWatch {
  double now() const override { return seconds += step; }
  bool asked_to_stop() const override { return stop; }
  double step = 0;  // seconds between two looks at the clock
  mutable double seconds = 5;
  bool stop = false;
};

StopReason run(TaskScheduler& scheduler, SearchWatch&& watch = TestWatch()) {
  auto reason = scheduler.run(watch);
  REQUIRE_MESSAGE(bool(reason), error_text(reason.takeError()));
  return *reason;
}

SchedulerOptions with_trials(int trials) {
  SchedulerOptions options;
  options.trials = trials;
  options.batch = 8;
  return options;
}

}  // namespace

TEST_CASE("trials go to the task that the network gains by") {
  Network net{{[](int) { return 1e-3; },                     // at its limit
               [](int n) { return 1e-3 * (1 + 40.0 / n); },  // gains
               [](int) { return 1e-6; }}};                   // counts for nothing
  TaskScheduler scheduler({net.task(0), net.task(1), net.task(2)}, with_trials(240));
  CHECK(run(scheduler) == StopReason::trials);
  CHECK(net.trials[0] + net.trials[1] + net.trials[2] == 240);
  CHECK(net.trials[1] > net.trials[0]);
  CHECK(net.trials[2] == 8);
  CHECK(scheduler.network_seconds() == doctest::Approx(2e-3 + 1e-6 + 1e-3 * 40 / net.trials[1]));
}

TEST_CASE(
    "defaults come first, the task with most to do before the others, then the costliest, and none "
    "that counts is left out") {
  std::vector<size_t> order;
  const std::vector<double> seconds = {1e-3, 5e-3, 3e-3, 1e-5};
  std::vector<ScheduledTask> tasks;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const auto round = [&, i](int most) -> Expected<TaskRound> {
      return order.push_back(i), TaskRound{most, 0, seconds[i], false};
    };
    tasks.push_back({"t", "g" + std::to_string(i), 1, static_cast<double>(i), round,
                     [round] { return round(1); }});
  }
  // The default of task 2 does not work, so a round tries other schedules.
  tasks[2].first = [&]() -> Expected<TaskRound> {
    return order.push_back(2), TaskRound{1, 0, kFailed, false};
  };
  TaskScheduler scheduler(tasks, with_trials(4 + 3 * 8));
  CHECK(run(scheduler) == StopReason::trials);
  CHECK(order == std::vector<size_t>{3, 2, 1, 0, 2, 1, 0});
  // The network's time covers all tasks, also the one that has run its default alone.
  CHECK(scheduler.network_seconds() == doctest::Approx(9.01e-3));
}

TEST_CASE("calls weigh, and a group's best rate says how much there is to gain") {
  const auto flat = [](int) { return 1e-3; };
  Network calls{{flat, flat}};
  TaskScheduler weighted({calls.task(0, 1), calls.task(1, 8)}, with_trials(160));
  run(weighted);
  CHECK(calls.trials[1] > 2 * calls.trials[0]);

  // Two tasks of equal work, but one is 5 times slower, so it has more to gain.
  Network group{{[](int) { return 1e-3; }, [](int) { return 5e-3; }}};
  ScheduledTask fast = group.task(0, 5, 1e9), slow = group.task(1, 1, 1e9);
  fast.group = slow.group = similar_group("conv", 1e9);
  TaskScheduler grouped({fast, slow}, with_trials(80));
  run(grouped);
  CHECK(group.trials[1] > group.trials[0]);
  CHECK(similar_group("conv", 1e9) == similar_group("conv", 1.1e9));
  CHECK(similar_group("conv", 1e9) != similar_group("conv", 4e9));
  CHECK(similar_group("conv", 1e9) != similar_group("pool", 1e9));
}

TEST_CASE("a scheduler stops by time, by gain, when all is done, and on request") {
  const auto flat = [](int) { return 1e-3; };
  TestWatch clock;
  clock.step = 1;
  Network a{{flat, flat}};
  SchedulerOptions timed;
  timed.seconds = 20;
  TaskScheduler by_time({a.task(0), a.task(1)}, timed);
  CHECK(run(by_time, std::move(clock)) == StopReason::time);

  Network b{{[](int n) { return 1e-3 * (1 + 10.0 / n); }, flat}};
  SchedulerOptions gain;
  gain.until = 0.02;
  gain.batch = 8;
  TaskScheduler by_gain({b.task(0), b.task(1)}, gain);
  CHECK(run(by_gain) == StopReason::converged);
  CHECK(b.trials[0] > 40);

  TaskScheduler finished(
      {{"t", "g", 1, 0, [](int) -> Expected<TaskRound> { return TaskRound{1, 0, 1e-3, true}; }}},
      {});
  CHECK(run(finished) == StopReason::finished);

  TestWatch watch;
  Network c{{flat, [&](int) {
               watch.stop = true;
               return 1e-3;
             }}};
  TaskScheduler interrupted({c.task(0), c.task(1)}, {});
  CHECK(run(interrupted, std::move(watch)) == StopReason::interrupted);
  CHECK(interrupted.measured() == 128);
}

TEST_CASE("a task that fails leaves the others, all of them are an error") {
  const auto failing = [](int) -> Expected<TaskRound> {
    return make_error(DiagCode::illegal_schedule, "conv: none of the 9 points tried is legal");
  };
  const auto hopeless = [](int most) -> Expected<TaskRound> {
    return TaskRound{most, 0, kFailed, false};
  };
  Network net{{[](int) { return 1e-3; }}};
  TaskScheduler one({net.task(0), {"a", "a", 1, 0, failing}, {"b", "b", 1, 0, hopeless}},
                    with_trials(100));
  CHECK(run(one) == StopReason::trials);
  CHECK(one.states()[1].error == "conv: none of the 9 points tried is legal");
  CHECK(one.states()[2].error == "b: no candidate has worked");
  CHECK(one.states()[2].measured == 24);  // three rounds
  CHECK(one.network_seconds() == 1e-3);

  TaskScheduler all({{"a", "a", 1, 0, failing}, {"b", "b", 1, 0, hopeless}}, {});
  TestWatch watch;
  auto reason = all.run(watch);
  REQUIRE_FALSE(bool(reason));
  const std::string text = error_text(reason.takeError());
  CHECK(text.find("none of the 9 points") != std::string::npos);
  CHECK(text.find("b: no candidate has worked") != std::string::npos);
}

TEST_CASE("a network's search that goes on from records ends where one in one go does") {
  const Space small = power_space(3, 4), large = power_space(5, 6);
  struct Part {
    Search search;
    std::unique_ptr<Explorer> explorer;
    std::unique_ptr<TaskTuner> tuner;
  };
  const auto run_network = [&](int trials, const std::vector<std::vector<KnownResult>>& known,
                               std::vector<std::vector<KnownResult>>& records) {
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<ScheduledTask> tasks;
    for (const Space* space : {&small, &large}) {
      parts.push_back(
          std::make_unique<Part>(Part{{*space, tiled_cost}, random_explorer(*space, 3), nullptr}));
      Part& part = *parts.back();
      TuneOptions options;
      options.batch = 8;
      part.tuner = std::make_unique<TaskTuner>("task", *space, *part.explorer, nullptr, part.search,
                                               options);
      if (!known.empty()) part.tuner->know(known[parts.size() - 1]);
      TaskTuner* tuner = part.tuner.get();
      tasks.push_back({"t", "g", 1, 0, [tuner](int most) -> Expected<TaskRound> {
                         TW_ASSIGN(const TuneStep step, tuner->step(most));
                         return TaskRound{step.measured, step.known, tuner->best_seconds(),
                                          tuner->done()};
                       }});
    }
    TaskScheduler scheduler(std::move(tasks), with_trials(trials));
    run(scheduler);
    records.clear();
    for (const auto& part : parts) records.push_back(part->search.records);
    return scheduler.network_seconds();
  };
  std::vector<std::vector<KnownResult>> whole, first, second;
  const double expected = run_network(100, {}, whole);
  run_network(37, {}, first);
  CHECK(run_network(63, first, second) == expected);
  for (size_t i = 0; i < whole.size(); ++i)
    CHECK(first[i].size() + second[i].size() == whole[i].size());
}

TEST_CASE(
    "trials follow the share of the time and what the roof leaves; none that counts starves") {
  // One kernel at 92 % of its peak with a third of the time, twenty at a quarter of their peak that
  // can gain, and five with little of the time at 4 % of their peak, where no trial gains.
  std::vector<double> roofs;
  Network net;
  const auto add = [&](double seconds, double of_peak, std::function<double(int)> best) {
    net.best.push_back(std::move(best));
    net.trials.push_back(0);
    roofs.push_back(seconds * of_peak);
  };
  add(8e-3, 0.92, [](int) { return 8e-3; });
  for (int i = 0; i < 20; ++i)
    add(0.7e-3, 0.25, [](int n) { return 0.7e-3 * (0.4 + 0.6 * std::exp(-n / 40.0)); });
  for (int i = 0; i < 5; ++i) add(0.3e-3, 0.04, [](int) { return 0.3e-3; });
  std::vector<ScheduledTask> tasks;
  for (size_t i = 0; i < roofs.size(); ++i) {
    tasks.push_back(net.task(i));
    tasks.back().roof = [roof = roofs[i]] { return roof; };
  }
  SchedulerOptions options = with_trials(669);
  options.batch = 4;
  TaskScheduler scheduler(tasks, options);
  run(scheduler);
  const auto sum = [&](size_t from, size_t to) {
    return std::accumulate(net.trials.begin() + static_cast<std::ptrdiff_t>(from),
                           net.trials.begin() + static_cast<std::ptrdiff_t>(to), 0);
  };
  CHECK(net.trials[0] < 40);  // it has most of the time and little to win
  CHECK(sum(1, 21) > 500);    // the kernels that gain
  for (size_t i = 21; i < 26; ++i) {
    CHECK(net.trials[i] >= 6);  // a quarter of an equal part
    CHECK(net.trials[i] <= 30);
  }
}

TEST_CASE("a claim falls as trials gain nothing, and where all is won trials are shared equally") {
  Network net{{[](int) { return 4e-3; }, [](int) { return 1e-3; }}};
  TaskScheduler idle({net.task(0), net.task(1)}, with_trials(400));
  run(idle);
  CHECK(net.trials[0] > 2 * net.trials[1]);  // in proportion to what the network could win
  CHECK(net.trials[1] >= 60);

  Network won{{[](int) { return 4e-3; }, [](int) { return 1e-3; }}};
  ScheduledTask one = won.task(0), two = won.task(1);
  one.roof = [] { return 5e-3; };  // faster than the peaks allow
  two.roof = [] { return 1e-3; };
  TaskScheduler equal({one, two}, with_trials(160));
  run(equal);
  CHECK(won.trials[0] == won.trials[1]);
}
