// The end of a search by the time of the whole network, which a function stands in for here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "cli/targets.h"
#include "cli/tune_text.h"
#include "cli_test_util.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/network_proof.h"
#include "tests/cli/pins.h"

using namespace tw;

namespace {

const std::string kDigits = TW_SOURCE_DIR "/examples/digits/digits.onnx";
const std::string kTarget = TW_SOURCE_DIR "/tests/cli/one_core.yaml";

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}

Comparison timed(double before, double after) {
  const double ratio = before / after;
  return {before, after, ratio, {0.995 * ratio, 1.005 * ratio}};
}

// A network of 100 ms, and the ms that each task's new records take besides, or save
struct FakeNetwork {
  std::map<std::string, double> costs;
  int most = 100;  // comparisons that there is time for
  int made = 0;

  double ms(const TaskSet& kept) const {
    double sum = 100;
    for (const std::string& task : kept) sum += costs.at(task);
    return sum;
  }
  TimeTasks timer() {
    return
        [this](const TaskSet& before, const TaskSet& after) -> Expected<std::optional<Comparison>> {
          if (made == most) return std::nullopt;
          ++made;
          return timed(ms(before), ms(after));
        };
  }
};

// All claim to save, the first the most.
std::vector<TaskClaim> claims_of(const FakeNetwork& network, const TaskSet& unsure = {}) {
  std::vector<TaskClaim> out;
  double saved = 9;
  for (const auto& [task, cost] : network.costs)
    out.push_back({task, "kernel " + task, saved--, !unsure.contains(task)});
  return out;
}

}  // namespace

TEST_CASE("a network that gains keeps all, and is timed once") {
  FakeNetwork network{.costs = {{"a", -5}, {"b", 1}, {"c", -1}}};
  const KeptTasks kept = must(choose_kept(claims_of(network, {"c"}), network.timer()));
  CHECK(kept.kept == TaskSet{"a", "b", "c"});
  CHECK(network.made == 1);
  CHECK(kept.all->second_is_faster());
  CHECK(!kept.some);
}

TEST_CASE("a slower network keeps only what gains") {
  FakeNetwork one{.costs = {{"a", 20}, {"b", -5}, {"c", -6}, {"d", -3}}};
  const KeptTasks without_a = must(choose_kept(claims_of(one), one.timer()));
  CHECK(without_a.kept == TaskSet{"b", "c", "d"});
  CHECK(without_a.all->first_is_faster());
  REQUIRE(bool(without_a.some));
  CHECK(without_a.some->ratio == doctest::Approx(100.0 / 86));

  FakeNetwork unsure{.costs = {{"a", -5}, {"b", 20}, {"c", -6}}};
  const KeptTasks sure = must(choose_kept(claims_of(unsure, {"b"}), unsure.timer()));
  CHECK(sure.kept == TaskSet{"a", "c"});
  CHECK(unsure.made == 2);  // what is unsure goes first, and nothing is halved

  FakeNetwork hidden{.costs = {{"a", 9}, {"b", -8}, {"c", 5}, {"d", 5}}};
  CHECK(must(choose_kept(claims_of(hidden), hidden.timer())).kept == TaskSet{"b"});

  FakeNetwork all{.costs = {{"a", 3}, {"b", 4}}};
  const KeptTasks none = must(choose_kept(claims_of(all), all.timer()));
  CHECK(none.kept.empty());
  CHECK(!none.some);
}

TEST_CASE("where no difference can be seen, sure gains stay") {
  FakeNetwork network{.costs = {{"a", -0.1}, {"b", 0.1}}};
  CHECK(must(choose_kept(claims_of(network), network.timer())).kept == TaskSet{"a", "b"});
  CHECK(must(choose_kept(claims_of(network, {"a"}), network.timer())).kept == TaskSet{"b"});
  network.most = network.made + 1;
  CHECK(must(choose_kept(claims_of(network, {"b"}), network.timer())).kept == TaskSet{"a"});
}

TEST_CASE("without time for more, nothing of a slower network is kept") {
  FakeNetwork network{.costs = {{"a", 20}, {"b", -5}}, .most = 1};
  CHECK(must(choose_kept(claims_of(network), network.timer())).kept.empty());
  network = {.costs = {{"a", 20}, {"b", -5}}, .most = 0};
  const KeptTasks untimed = must(choose_kept(claims_of(network), network.timer()));
  CHECK(untimed.kept == TaskSet{"a", "b"});
  CHECK(!untimed.all);
}

namespace {

// The digits model, and a search whose records say that schedules are twice as fast as the defaults
struct Searched {
  Searched() : model(folder.write("model.onnx", slurp(kDigits))) {
    REQUIRE(cli({"lock", model, "-t", kTarget}).code == kExitOk);
    const Lock lock = must(read_lock(lock_beside(model)));
    std::filesystem::remove(lock_beside(model));
    for (const Pin& pin : lock.sections.at(0).pins) {
      if (pin.name.starts_with("pool") || pin.name.starts_with("reshape")) continue;
      const std::vector<Record> own = {record_of(pin, pin.schedule, 2e-6),
                                       record_of(pin, no_steps(pin), 1e-6)};
      log = folder / (pin.kernel_hash + ".db");
      must(must(TuningLog::open(log, TuningLog::Mode::write)).add_all(own));
      if (compiled() != TaskSet{pin.task}) continue;  // the kernel cannot do without its steps
      records.insert(records.end(), own.begin(), own.end());
      end.claims.push_back(
          {pin.task, pin.name, 1e-6 * static_cast<double>(end.claims.size()), true});
    }
    log = folder / "t.db";
    REQUIRE(end.claims.size() > 1);
    end.clock = [] { return 0.0; };
  }

  // Ends the search. `compare` has the tasks that are tuned in the second library.
  NetworkVerdict judge(const std::function<Expected<Comparison>(const TaskSet&)>& compare) {
    const Target target = must(load_target(kTarget, config_dirs()));
    CompileOptions options;
    options.model = model, options.output = "network.so";
    NetworkProof proof = must(NetworkProof::begin(
        {.options = options,
         .schedules = {.log = log},
         .compare = [&](const std::string&, const std::string& second,
                        const CompareOptions&) { return compare(tuned_in(second)); }},
        target, nullptr));
    TuningLog opened = must(TuningLog::open(log, TuningLog::Mode::write));
    if (must(opened.count()) == 0) must(opened.add_all(records));
    end.added = opened.added();
    return must(proof.judge(opened, end));
  }
  // The tasks that are tuned in a library. Kernels of all libraries are in the same order.
  TaskSet tuned_in(const std::string& library) const {
    TaskSet out;
    const Json built = must(parse_json(cli({"inspect", library, "--json"}).out, "out"));
    const Json::Array& kernels = built["manifest"]["kernels"].items();
    REQUIRE(kernels.size() == tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i)
      if (kernels[i]["schedule"].text_or_empty() == "tuned") out.insert(tasks[i]);
    return out;
  }
  // The tasks that a compile takes schedules of the log for
  TaskSet compiled() {
    const CliResult r = cli(
        {"compile", model, "-t", kTarget, "--log", log, "-o", folder / "model.so", "--json"});
    REQUIRE_MESSAGE(r.code == kExitOk, r.err);
    tasks.clear();
    const Json report = must(parse_json(r.out, "out"));
    for (const Json& kernel : report["kernel_reports"].items())
      tasks.push_back(kernel["task"].text_or_empty());
    return tuned_in(folder / "model.so");
  }
  int64_t rejected() {
    TuningLog opened = must(TuningLog::open(log, TuningLog::Mode::read));
    CHECK(must(opened.count()) == static_cast<int64_t>(records.size()));  // nothing is lost
    return static_cast<int64_t>(must(opened.all({.rejected = true})).size());
  }

  TestFolder folder;
  std::string model, log;
  std::vector<std::string> tasks;  // by kernel
  std::vector<Record> records;
  SearchEnd end;
};

TaskSet all_of(const Searched& searched) {
  TaskSet out;
  for (const TaskClaim& claim : searched.end.claims) out.insert(claim.task);
  return out;
}

}  // namespace

TEST_CASE("a search whose kernels gain and whose network is slower keeps nothing") {
  Searched searched;
  const NetworkVerdict verdict = searched.judge([](const TaskSet& tuned) {
    return Expected<Comparison>(timed(10, tuned.empty() ? 10 : 12));
  });
  CHECK(verdict.proved == Proved::slower);
  CHECK(verdict.rejected.size() == searched.end.claims.size());
  CHECK(verdict.records == static_cast<int64_t>(searched.records.size()));
  CHECK(searched.rejected() == verdict.records);
  CHECK(searched.compiled().empty());
  const std::string said = to_string(verdict);
  CHECK(said.find("whole network 0.833 x (0.829 to 0.837), 10 -> 12 ms: slower\n") == 0);
  CHECK(said.find("not kept: ") != std::string::npos);

  // Who wants them all the same takes the marks back.
  const CliResult shown = cli({"log", "show", "--log", searched.log});
  CHECK(shown.out.find("2 rejected") != std::string::npos);
  CHECK(cli({"log", "best", "--log", searched.log, "--json"}).out.find("\"algorithm\"") ==
        std::string::npos);
  const CliResult accepted = cli({"log", "accept", "--log", searched.log});
  CHECK(accepted.code == kExitOk);
  CHECK(searched.rejected() == 0);
  CHECK(searched.compiled() == all_of(searched));
}

TEST_CASE("a search whose network gains keeps what it found") {
  Searched searched;
  const NetworkVerdict verdict = searched.judge(
      [](const TaskSet&) { return Expected<Comparison>(timed(10, 9)); });
  CHECK(verdict.proved == Proved::faster);
  CHECK(to_string(verdict) == "whole network 1.111 x (1.106 to 1.117), 10 -> 9 ms\n");
  CHECK(searched.rejected() == 0);
  CHECK(searched.compiled() == all_of(searched));
  // Without another record the network is what it was.
  CHECK(searched.judge([](const TaskSet&) { return Expected<Comparison>(timed(10, 99)); }).proved ==
        Proved::unchanged);
  CHECK(searched.rejected() == 0);
}

TEST_CASE("the kernel that makes the network slower is found, and the others are kept") {
  Searched searched;
  const std::string slow = searched.end.claims.front().task;
  const NetworkVerdict verdict = searched.judge([&](const TaskSet& tuned) {
    return Expected<Comparison>(timed(10, tuned.contains(slow) ? 12 : 9));
  });
  CHECK(verdict.proved == Proved::slower);
  REQUIRE(verdict.rejected.size() == 1);
  CHECK(verdict.rejected.front().task == slow);
  CHECK(searched.rejected() == 2);
  TaskSet others = all_of(searched);
  others.erase(slow);
  CHECK(searched.compiled() == others);
  REQUIRE(bool(verdict.left()));
  CHECK(verdict.left()->second_is_faster());
}

TEST_CASE("a network that cannot be timed keeps nothing, an interrupted search what it has") {
  Searched searched;
  searched.end.stop = [] { return true; };
  const NetworkVerdict verdict = searched.judge(
      [](const TaskSet&) { return Expected<Comparison>(timed(10, 12)); });
  CHECK(verdict.proved == Proved::untimed);
  CHECK(to_string(verdict) == "whole network: not timed, the search was interrupted\n");
  CHECK(searched.rejected() == 0);

  Searched crashes;
  const Target target = must(load_target(kTarget, config_dirs()));
  CompileOptions options;
  options.model = crashes.model, options.output = "network.so";
  NetworkProof proof = must(NetworkProof::begin(
      {.options = options,
       .schedules = {.log = crashes.log},
       .compare = [](const std::string&, const std::string&, const CompareOptions&)
           -> Expected<Comparison> { return make_error(DiagCode::io, "the process died"); }},
      target, nullptr));
  TuningLog log = must(TuningLog::open(crashes.log, TuningLog::Mode::write));
  must(log.add_all(crashes.records));
  crashes.end.added = log.added();
  CHECK(error_text(proof.judge(log, crashes.end).takeError()).find("the process died") !=
        std::string::npos);
  CHECK(crashes.compiled().empty());
}

TEST_CASE("tune says what the whole network gains, or why it was not timed") {
  const TestFolder folder;
  const std::string log = folder / "t.db";
  const auto whole = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"tune", kDigits, "--log", log, "--tuner", "random", "--json"});
    const CliResult r = cli(flags);
    REQUIRE_MESSAGE(r.code == kExitOk, r.err);
    const Json last = must(
        parse_json(r.out.substr(r.out.rfind('\n', r.out.size() - 2) + 1), "out"));
    return last["whole_network"];
  };
  const Json timed = whole({"--trials", "12"});
  const std::string verdict = timed["verdict"].text_or_empty();
  CHECK(std::ranges::count(std::vector<std::string>{"unchanged", "faster", "same", "slower"},
                           verdict) == 1);
  CHECK((timed["found"]["ratio"].number_or(0) > 0) == (verdict != "unchanged"));
  const Json untimed = whole({"--trials", "1", "--no-prove"});
  CHECK(untimed["verdict"].text_or_empty() == "not-timed");
  CHECK(untimed["reason"].text_or_empty() == "as --no-prove says");
  const Json short_time = whole({"--time", "0.5s"});
  CHECK(short_time["reason"].text_or_empty().find("over a third") != std::string::npos);
  CHECK(cli({"tune", kDigits, "--log", log, "--trials", "1"}).out.find("\nwhole network") !=
        std::string::npos);
  CHECK(cli({"tune", kDigits, "--log", log, "--prove", "--no-prove"}).code == kExitUser);
  CHECK(!whole({"--trials", "1", "--kernel", "1", "--table"}).object());
}
