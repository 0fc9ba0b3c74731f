#include "autotune/network.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "support/temporary_folder.h"
#include "tests/autotune/synthetic.h"
#include "tests/ir/parsed.h"

using namespace tw;
using namespace tw::test;

namespace {

// A product of n x 64 x 64. Its default schedule is empty, and tiles() is its space.
Task product(const std::string& key, int64_t n, int64_t calls) {
  const std::string rows = std::to_string(n);
  Task task{key, "product " + rows, calls, 2.0 * static_cast<double>(n) * 64 * 64, 0, {}};
  const Kernel kernel = parsed_kernel(
      "kernel @m(x: in f32[" + rows + ", 64], w: const f32[64, 64], y: out f32[" + rows +
      ", 64]) {"
      "  for i in " +
      rows +
      " { for j in 64 { for k in 64 reduce { y: y[i, j] += x[i, k] * w[k, j] init 0 } } } }");
  MatMulStages stages;
  stages.arranged = true;
  task.variants.push_back({Algorithm::direct, Lowered<MatMulStages>{{kernel, {}}, stages}});
  return task;
}

Space tiles() {
  Sketch sketch{"tiles", 0, {{"i", {}}, {"j", {}}, {"k", {}}}, nullptr, std::vector<int>{0, 0, 0}};
  for (Knob& knob : sketch.knobs)
    for (const int64_t v : {1, 2, 4, 8, 16, 32}) knob.values.push_back({v});
  sketch.fill = [knobs = sketch.knobs](const std::vector<int>& choice) -> Expected<Schedule> {
    Schedule s;
    std::vector<std::string> outer, inner;
    for (size_t k = 0; k < 3; ++k) {
      const std::string loop = knobs[k].name;
      s.steps.push_back(step::Split{loop, knobs[k].values[static_cast<size_t>(choice[k])][0],
                                    Tail::guard, loop + "0", loop + "1"});
      outer.push_back(loop + "0");
      inner.push_back(loop + "1");
    }
    outer.insert(outer.end(), inner.begin(), inner.end());
    s.steps.push_back(step::Reorder{outer});
    return s;
  };
  return Space({sketch});
}

double seconds_of_schedule(const Task& task, const Schedule& schedule) {
  double cost = 1;
  const double best[] = {3, 4, 1};
  for (size_t k = 0; k < 3; ++k) {
    const double off =
        std::log2(static_cast<double>(std::get<step::Split>(schedule.steps[k]).factor)) - best[k];
    cost += off * off;
  }
  return cost * task.flops * 1e-9;
}

// Measures by a known cost, with a log of its own.
struct Lab {
  TemporaryFolder folder = require_value(TemporaryFolder::create());
  TuningLog log = require_value(TuningLog::open(folder.path() + "/log.db", TuningLog::Mode::write));
  std::vector<std::string> order = {};  // task and schedule, in the order measured
  std::string broken = {};              // task whose candidates all fail
  std::string device = "here";
  double speed = 1, speeds_up = 1;  // the machine's, and its factor from one batch to the next

  std::vector<SearchedTask> tasks(const std::vector<Task>& list);
  // Adds records without notes on points to start from.
  void know(std::vector<Record> records) {
    for (Record& r : records) r.about.clear();
    require_value(log.add_all(records));
  }
  // The records that this lab measured, in their order
  std::vector<Record> records() {
    std::map<std::string, Record> all;
    for (Record& r : require_value(log.all())) all.emplace(r.key.task + r.schedule, std::move(r));
    std::vector<Record> out;
    for (const std::string& one : order)
      if (const auto found = all.find(one); found != all.end()) out.push_back(found->second);
    return out;
  }
};

class LabMeasurer final : public CandidateMeasurer {
 public:
  LabMeasurer(Lab& lab, std::shared_ptr<const Task> task) : lab_(lab), task_(std::move(task)) {}
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates,
                                     const StopAsked& stop) override {
    std::vector<MeasureResult> out;
    for (const Candidate& c : candidates) {
      if (stop()) break;
      REQUIRE(c.run != nullptr);
      lab_.order.push_back(task_->key + print(c.schedule));
      if (task_->key == lab_.broken)
        out.push_back({Status::crashed, {}, "signal 4", lab_.device, false});
      else
        out.push_back({Status::ok,
                       {seconds_of_schedule(*task_, c.schedule) / lab_.speed},
                       "",
                       lab_.device,
                       false});
    }
    lab_.speed *= lab_.speeds_up;
    return out;
  }
  std::optional<PairedGain> in_turns(const Candidate& by_default, const Candidate& tuned) override {
    const double first = seconds_of_schedule(*task_, by_default.schedule),
                 second = seconds_of_schedule(*task_, tuned.schedule);
    return paired_gain(std::vector<double>(6, first), std::vector<double>(6, second));
  }

 private:
  Lab& lab_;
  std::shared_ptr<const Task> task_;
};

std::vector<SearchedTask> Lab::tasks(const std::vector<Task>& list) {
  std::vector<SearchedTask> out;
  for (const Task& task : list) {
    const auto own = std::make_shared<const Task>(task);
    out.push_back({own, tiles(), std::make_unique<LabMeasurer>(*this, own)});
  }
  return out;
}

struct NoClock : SearchWatch {
  double now() const override { return 0; }
};
// A second a measurement
struct TrialClock : SearchWatch {
  explicit TrialClock(const Lab& l) : lab(l) {}
  double now() const override { return static_cast<double>(lab.order.size()); }
  const Lab& lab;
};

struct Outcome {
  double seconds = 0, first = 0;
  int measured = 0;
  StopReason reason = StopReason::trials;
};

NetworkOptions options_of(const char* tuner, int trials) {
  NetworkOptions options;
  options.tuner = tuner_named(tuner);
  options.scheduler.trials = trials;
  options.scheduler.batch = 16;
  return options;
}

Outcome run(Lab& lab, const NetworkOptions& options) {
  const Target target = baseline_target(Arch::x86_64);
  auto tuner = NetworkTuner::create(
      lab.tasks({product("00000000000000aa", 64, 1), product("00000000000000bb", 128, 3)}), target,
      &lab.log, options);
  REQUIRE(bool(tuner));
  NoClock clock;
  auto reason = (*tuner)->run(clock);
  REQUIRE_MESSAGE(bool(reason), error_text(reason.takeError()));
  CHECK((*tuner)->row(1).task->name == "product 128");
  CHECK((*tuner)->row(0).space == 216);
  CHECK((*tuner)->row(0).measured + (*tuner)->row(1).measured == (*tuner)->measured());
  return {(*tuner)->network_seconds(), (*tuner)->first_seconds(), (*tuner)->measured(), *reason};
}

}  // namespace

TEST_CASE("a network is tuned from its default schedules on") {
  for (const Tuner& tuner : tuners()) {
    if (tuner.predicted) continue;
    CAPTURE(tuner.name);
    Lab lab;
    const Outcome done = run(lab, options_of(tuner.name, 200));
    const Schedule usual = require_value(tiles().schedule({0, {0, 0, 0}}));
    // The defaults come first, and the task with the most work leads.
    CHECK(lab.order[0] == "00000000000000bb" + print(usual));
    CHECK(lab.order[1] == "00000000000000aa" + print(usual));
    // The cost of the default schedule: 1 + 3^2 + 4^2 + 1^2 = 27
    CHECK(done.first == doctest::Approx(27 * (1 + 6) * 2 * 64 * 64 * 64 * 1e-9));
    CHECK(done.measured == 200);
    CHECK(lab.records().size() == 200);
    CHECK(done.seconds < done.first / 4);
    std::sort(lab.order.begin(), lab.order.end());
    // No schedule is measured twice.
    CHECK(std::adjacent_find(lab.order.begin(), lab.order.end()) == lab.order.end());
  }
}

TEST_CASE("every feature leads trees to good schedules of a network") {
  for (const NamedFeatures& features : feature_sets()) {
    CAPTURE(features.name);
    Lab lab;
    NetworkOptions options = options_of("gbt", 160);
    options.features = &features;
    CHECK(run(lab, options).seconds <= 8.001 * 2 * 64 * 64 * 64 * 1e-9);  // the least is 7
  }
}

TEST_CASE("a task begins with the best schedule of the nearest one of its family") {
  Lab lab;
  run(lab, options_of("gbt", 48));
  std::string best;
  double least = kFailed;
  const std::vector<Record> records = lab.records();
  REQUIRE(records.size() == 48);
  // The other task's first record after the defaults
  const auto other = std::find_if(records.begin() + 2, records.end(),
                                  [](const Record& r) { return r.key.task == "00000000000000aa"; });
  REQUIRE(other != records.end());
  for (auto r = records.begin(); r != other; ++r)
    if (r->key.task == "00000000000000bb" && r->seconds.front() < least)
      least = r->seconds.front(), best = r->schedule;
  CHECK(other->schedule == best);
}

TEST_CASE("a network's tuning goes on from its records") {
  for (const char* kind : {"gbt", "genetic"}) {
    CAPTURE(kind);
    Lab whole, first;
    const Outcome expected = run(whole, options_of(kind, 120));
    run(first, options_of(kind, 53));
    Lab second;
    second.know(first.records());
    CHECK(run(second, options_of(kind, 67)).seconds == expected.seconds);
    std::vector<std::string> both = first.order;
    both.insert(both.end(), second.order.begin(), second.order.end());
    std::sort(both.begin(), both.end());
    std::sort(whole.order.begin(), whole.order.end());
    CHECK(both == whole.order);
  }
}

TEST_CASE("a record that was measured again is worth what it took the last time") {
  Lab first, second, slower;
  run(first, options_of("random", 40));
  std::vector<Record> again = first.records();
  second.know(again);
  for (Record& r : again) {  // all measurements were lucky
    r.seconds = {10 * r.seconds.front()};
    r.time += 60;
  }
  second.know(again);
  slower.know(again);
  const Outcome both = run(second, options_of("random", 20)),
                alone = run(slower, options_of("random", 20));
  CHECK(second.order == slower.order);
  CHECK(both.seconds == alone.seconds);
}

TEST_CASE("records of a kernel that is lowered in another way are left out") {
  Lab first, second, third;
  run(first, options_of("random", 40));
  std::vector<Record> others = first.records();
  for (Record& r : others) r.kernel_hash = "0000000000000000";
  second.know(others);
  CHECK(run(second, options_of("random", 40)).seconds ==
        run(third, options_of("random", 40)).seconds);
  CHECK(second.order == first.order);  // measured again
}

TEST_CASE("records that cannot be stored end the tuning with their error") {
  Lab lab;
  lab.device = "two\nlines";
  const Target target = baseline_target(Arch::x86_64);
  auto tuner = NetworkTuner::create(lab.tasks({product("00000000000000aa", 64, 1)}), target,
                                    &lab.log, options_of("random", 40));
  REQUIRE(bool(tuner));
  NoClock clock;
  auto reason = (*tuner)->run(clock);
  REQUIRE_FALSE(bool(reason));
  CHECK(error_text(reason.takeError()).find("messages are one line") != std::string::npos);
  CHECK(lab.order.size() <= 17);
}

TEST_CASE("a task of which nothing works has a line that says so, and the others are tuned") {
  const Target target = baseline_target(Arch::x86_64);
  Lab lab;
  lab.broken = "00000000000000aa";
  auto tuner = NetworkTuner::create(
      lab.tasks({product("00000000000000aa", 64, 1), product("00000000000000bb", 128, 3)}), target,
      &lab.log, options_of("random", 64));
  REQUIRE(bool(tuner));
  NoClock clock;
  REQUIRE(bool((*tuner)->run(clock)));
  CHECK((*tuner)->reached() == 1);
  REQUIRE((*tuner)->failures().size() == 1);
  const NetworkTuner::Row row = (*tuner)->row(0);
  CHECK((*tuner)->failures()[0] == "product 64: no candidate of " +
                                       std::to_string(row.measured + row.known) +
                                       " works; the default schedule: crashed, signal 4");
  CHECK((*tuner)->row(1).error.empty());
}

TEST_CASE("names of methods and features") {
  for (const Tuner& tuner : tuners()) CHECK(tuner_named(tuner.name) == &tuner);
  for (const NamedFeatures& set : feature_sets()) CHECK(features_named(set.name) == &set);
  CHECK(tuner_named("gbm") == nullptr);
}

TEST_CASE("the time ends a round in its middle, and the next run goes on there") {
  const Target target = baseline_target(Arch::x86_64);
  Lab lab;
  NetworkOptions options = options_of("random", 0);
  options.scheduler.seconds = 5;
  auto tuner = NetworkTuner::create(lab.tasks({product("00000000000000aa", 64, 1)}), target,
                                    &lab.log, options);
  REQUIRE(bool(tuner));
  TrialClock clock(lab);
  auto reason = (*tuner)->run(clock);
  REQUIRE(bool(reason));
  CHECK(*reason == StopReason::time);
  CHECK(lab.order.size() == 5);  // the rest of the batch of 16 is left
  CHECK(lab.records().size() == 5);
  Lab whole, rest;
  run(whole, options_of("random", 40));
  rest.know(lab.records());
  run(rest, options_of("random", 40));
  const auto of_the_task = [](std::vector<std::string> order) {
    std::erase_if(order,
                  [](const std::string& text) { return !text.starts_with("00000000000000aa"); });
    return order;
  };
  CHECK(of_the_task(rest.order).front() == of_the_task(whole.order)[5]);
}

TEST_CASE(
    "however short the time, the default schedules come first, and the totals are of all that were "
    "reached") {
  const Target target = baseline_target(Arch::x86_64);
  for (const int seconds : {1, 2, 3}) {
    Lab lab;
    NetworkOptions options = options_of("gbt", 0);
    options.scheduler.seconds = seconds;
    auto tuner = NetworkTuner::create(
        lab.tasks({product("00000000000000aa", 64, 1), product("00000000000000bb", 128, 3),
                   product("00000000000000cc", 32, 1)}),
        target, &lab.log, options);
    REQUIRE(bool(tuner));
    TrialClock clock(lab);
    REQUIRE(bool((*tuner)->run(clock)));
    CHECK((*tuner)->measured() == seconds);
    CHECK((*tuner)->reached() == static_cast<size_t>(seconds));
    CHECK(std::isfinite((*tuner)->row(1).best));  // the costliest task
    CHECK((*tuner)->network_seconds() == (*tuner)->first_seconds());
    CHECK((*tuner)->gains() == 0);
  }
  // The search leaves the time that `kept` asks for.
  Lab lab;
  NetworkOptions options = options_of("random", 0);
  options.scheduler.seconds = 40;
  auto tuner = NetworkTuner::create(
      lab.tasks({product("00000000000000aa", 64, 1), product("00000000000000bb", 128, 3)}), target,
      &lab.log, options);
  REQUIRE(bool(tuner));
  struct Kept : TrialClock {
    Kept(const Lab& l, const NetworkTuner& t) : TrialClock(l), tuner(t) {}
    double kept() const override { return 4.0 * static_cast<double>(tuner.gains()); }
    void task_begins(size_t task) override { begun.push_back(task); }
    void task_ends(size_t task) override { ended.push_back(task); }
    const NetworkTuner& tuner;
    std::vector<size_t> begun, ended;
  } watch(lab, **tuner);
  auto reason = (*tuner)->run(watch);
  REQUIRE(bool(reason));
  CHECK(*reason == StopReason::time);
  CHECK((*tuner)->gains() == 2);
  CHECK(lab.order.size() == 32);
  CHECK(watch.begun == watch.ended);
  CHECK(std::vector<size_t>(watch.begun.begin(), watch.begun.begin() + 3) ==
        std::vector<size_t>{1, 0, 1});
}

TEST_CASE("a table answers, counts as trials, and begins with no default schedule") {
  Lab first, second;
  NetworkOptions options = options_of("random", 48);
  options.table = true;
  CHECK(run(first, options).measured == 48);
  second.know(first.records());
  const Outcome again = run(second, options);
  CHECK(again.measured == 0);
  CHECK(again.reason == StopReason::trials);
  CHECK(again.first == 0);
}

TEST_CASE("kernels of other numbers are of another family, and learn nothing from each other") {
  LoweredGroup exact = product("00000000000000aa", 64, 1).variants.front().lowered, brief = exact;
  brief.kernel.buffers[0].dtype = DType::bf16;
  CHECK(family_of(exact) == "matmul");
  CHECK(family_of(brief) == "matmul:bf16");
  CHECK(std::isinf(distance(shape_of(exact), shape_of(brief))));
  const std::optional<RecordNote> note = parse_note(print(RecordNote{shape_of(brief), "t{i=1}"}));
  REQUIRE(note);
  CHECK(note->shape.family == "matmul:bf16");
  CHECK(note->point == "t{i=1}");
}

TEST_CASE("the best points of other networks' kernels are tried first, where the space has them") {
  const Target target = baseline_target(Arch::x86_64);
  Lab lab;
  const Task task = product("00000000000000aa", 64, 1);
  KernelShape like = shape_of(task.variants.front().lowered), unlike = like;
  like.sizes[1] += 1;
  unlike.sizes[1] += 9;
  const std::vector<RecordNote> notes = {{unlike, "tiles{i=1, j=1, k=2}"},
                                         {like, "tiles{i=8, j=16, k=2}"},
                                         {like, "tiles{i=3, j=16, k=2}"},
                                         {{"conv", like.sizes}, "tiles{i=2, j=2, k=2}"}};
  for (const RecordNote& note : notes) {
    Record record;
    record.key = {"00000000000000b" + std::to_string(&note - notes.data()), target_key(target)};
    record.algorithm = "direct", record.kernel_hash = "0000000000000000";
    record.schedule = "schedule {\n}\n", record.seconds = {1}, record.about = print(note);
    require_value(lab.log.add(record));
  }
  auto tuner = NetworkTuner::create(lab.tasks({task}), target, &lab.log, options_of("genetic", 16));
  REQUIRE(bool(tuner));
  NoClock clock;
  REQUIRE(bool((*tuner)->run(clock)));
  REQUIRE(lab.order.size() == 16);
  CHECK(lab.order[1].find("split i 8 ") != std::string::npos);
  CHECK(lab.order[1].find("split j 16 ") != std::string::npos);
  const std::vector<Record> records = lab.records();
  REQUIRE(records.size() == 16);
  const std::optional<RecordNote> note = parse_note(records[1].about);
  REQUIRE(note);
  CHECK(note->shape.family == "matmul");
  CHECK(distance(note->shape, shape_of(task.variants.front().lowered)) < 0.05);
  CHECK(note->point == "tiles{i=8, j=16, k=2}");
  CHECK(!note->by_default);
  const std::optional<RecordNote> usual = parse_note(records[0].about);
  REQUIRE(usual);
  CHECK(usual->by_default);
}

TEST_CASE("notes of records: what is not one is nothing") {
  for (const char* text : {"", "conv", "conv 1,2", "conv 1,x p{}", "conv 1,,2 p{}", "conv inf p{}"})
    CHECK_FALSE(parse_note(text));
  CHECK(parse_note("conv 1.50,2 p{a=1, b=2}")->point == "p{a=1, b=2}");
  for (const char* text : {"conv 1.50,2.00 p{a=1, b=2} default", "conv 1.50,2.00 default"}) {
    const std::optional<RecordNote> note = parse_note(text);
    REQUIRE(note);
    CHECK(note->by_default);
    CHECK(note->shape.sizes == std::vector{1.5, 2.0});
    CHECK(print(*note) == text);
  }
  CHECK(parse_note("conv 1.50,2 default")->point.empty());
  CHECK(parse_note("conv 1.50,2 p{a=1, b=2} default")->point == "p{a=1, b=2}");
  const Space space = tiles();
  for (const char* text : {"", "tiles", "tiles{}", "other{i=1, j=1, k=1}",
                           "tiles{i=1, j=1, k=1, l=1}", "tiles{i=5, j=1, k=1}"})
    CHECK_FALSE(space.parse(text));
  const Point point{0, {3, 0, 5}};
  CHECK(space.parse(space.print(point)) == point);
  CHECK(space.parse("tiles{j=1}") == Point{0, {0, 0, 0}});  // of a space without the other knobs
}

TEST_CASE("of a point of another space a space shares the values that it has") {
  const Space space({{"tiles", 0, {{"i", {{4}, {1}, {2}}}, {"j", {{1}, {8, 2}}}}, {}}});
  const std::optional<SharedPoint> shared = space.parse_shared("tiles{i=3, j=8x2, unroll_pad=2}");
  REQUIRE(shared);
  CHECK(space.print(shared->point) == "tiles{i=4, j=8x2}");  // the usual value is 4
  CHECK(shared->left_out == std::vector<std::string>{"i=3", "unroll_pad=2"});
  const std::optional<SharedPoint> fewer = space.parse_shared("tiles{i=2}");
  REQUIRE(fewer);
  CHECK(space.print(fewer->point) == "tiles{i=2, j=1}");
  CHECK(fewer->left_out.empty());
  for (const char* text : {"tiles{}", "tiles{k=1}", "tiles{i=3}", "other{i=1}", "tiles", "}", ""})
    CHECK_FALSE(space.parse_shared(text));
}

TEST_CASE("a gain is that of measurements in turns: a machine that becomes faster gains nothing") {
  Lab lab;
  lab.speeds_up = 1.1;
  const Target target = baseline_target(Arch::x86_64);
  const Task task = product("00000000000000aa", 64, 2);
  auto tuner = NetworkTuner::create(lab.tasks({task}), target, &lab.log, options_of("random", 64));
  REQUIRE(bool(tuner));
  NoClock clock;
  require_value((*tuner)->run(clock));
  const TaskRow row = (*tuner)->row(0);
  REQUIRE(row.gain);
  Expected<Schedule> best = parse_schedule((*tuner)->change(0).best),
                     first = parse_schedule((*tuner)->change(0).first);
  REQUIRE(bool(best));
  REQUIRE(bool(first));
  const double gain = seconds_of_schedule(task, *first) / seconds_of_schedule(task, *best);
  CHECK(row.gain->ratio == doctest::Approx(gain));
  CHECK(row.gain->interval.low == doctest::Approx(gain));
  CHECK(row.first / row.best == doctest::Approx(gain));
  CHECK((*tuner)->first_seconds() / (*tuner)->network_seconds() == doctest::Approx(gain));

  // Measuring again has the last word: the default stays.
  (*tuner)->settle({{task.key, {{0.99, {0.97, 1.01}}, 3e-3, 3.1e-3, false}}});
  CHECK((*tuner)->row(0).best == 3e-3);
  CHECK((*tuner)->network_seconds() == doctest::Approx(6e-3));
  CHECK((*tuner)->gains() == 0);
}
