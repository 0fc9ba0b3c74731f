// Schedules from a log and from a lock, end to end on the digits model.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <set>

#include "autotune/log.h"
#include "autotune/space.h"
#include "autotune/transfer.h"
#include "cli/targets.h"
#include "cli_test_util.h"
#include "driver/compile/compile.h"
#include "driver/tune/lock_file.h"
#include "driver/tune/model_tasks.h"
#include "driver/tune/tuned_schedules.h"
#include "frontend/frontend.h"
#include "tests/cli/graphs.h"
#include "tests/cli/pins.h"

using namespace tw;

namespace {

const std::string kDigits = TW_SOURCE_DIR "/examples/digits/digits.onnx";
const std::string kDigitsBatch = TW_SOURCE_DIR "/examples/digits/digits_batch.onnx";
// A target whose schedules are the same on every machine
const std::string kTarget = TW_SOURCE_DIR "/tests/cli/one_core.yaml";
const std::string kFourCores = "x86-64-v2";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}

Json json_of(const CliResult& r) { return must(parse_json(r.out, "out")); }

// A folder with the model and a home without a log.
class Workplace {
 public:
  explicit Workplace(const std::string& from = kDigits)
      : model(folder.write("model.onnx", slurp(from))) {
    ::setenv("XDG_DATA_HOME", (folder / "data").c_str(), 1);
  }
  ~Workplace() { ::unsetenv("XDG_DATA_HOME"); }

  CliResult compile(std::vector<std::string> flags, const std::string& output = "model.so",
                    const std::string& target = kTarget) const {
    flags.insert(flags.begin(), {"compile", model, "-t", target, "-o", folder / output});
    return cli(flags);
  }
  CliResult lock(std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"lock", model, "-t", kTarget});
    return cli(flags);
  }
  std::vector<Pin> pins() const {
    const Lock lock = must(read_lock(lock_beside(model)));
    REQUIRE(lock.sections.size() == 1);
    return lock.sections[0].pins;
  }
  Json::Array kernels(const std::string& library = "model.so") const {
    return json_of(cli({"inspect", folder / library, "--json"}))["manifest"]["kernels"].items();
  }

  TestFolder folder;
  std::string model;
};

std::string log_of(const Workplace& place, const std::vector<Record>& records,
                   const std::string& name = "tuned.db") {
  TuningLog log = must(TuningLog::open(place.folder / name, TuningLog::Mode::write));
  must(log.add_all(records));
  return place.folder / name;
}

int count_tuned(const Json::Array& kernels) {
  return static_cast<int>(std::count_if(kernels.begin(), kernels.end(), [](const Json& k) {
    return k["schedule"].text_or_empty() == "tuned";
  }));
}

// The task of the model's convolution, and the note that a record has of its default point
Task convolution_of(const Workplace& place, const Target& target) {
  const std::vector<Task> tasks = must(model_tasks(place.model, {}, target));
  const auto conv = std::ranges::find_if(
      tasks, [](const Task& task) { return task.name.starts_with("conv"); });
  REQUIRE(conv != tasks.end());
  return *conv;
}
RecordNote note_of(const Task& task, const Target& target) {
  const Space space = must(search_space(task, target, {.sketches = SketchSource::templates}));
  return {shape_of(task.variants.front().lowered), space.print(*space.default_point())};
}

}  // namespace

TEST_CASE("a record changes its kernel, and no results") {
  const Workplace place;
  REQUIRE_MESSAGE(place.lock().code == kExitOk, place.lock().err);
  const std::vector<Pin> pins = place.pins();
  std::filesystem::remove(lock_beside(place.model));
  REQUIRE(place.compile({}, "plain.so").code == kExitOk);
  const Json::Array plain = place.kernels("plain.so");
  CHECK(count_tuned(plain) == 0);

  const auto conv = std::ranges::find_if(
      pins, [](const Pin& pin) { return pin.name.starts_with("conv"); });
  REQUIRE(conv != pins.end());
  CHECK(conv->schedule != no_steps(*conv));
  const std::string log = log_of(place, {record_of(*conv, no_steps(*conv)),
                                         record_of(*conv, "schedule {\n  unroll nothing\n}\n", 1)});
  const CliResult compiled = place.compile({"--log", log, "--json"});
  REQUIRE_MESSAGE(compiled.code == kExitOk, compiled.out);
  const Json report = json_of(compiled);
  CHECK(report["warnings"].items().empty());
  CHECK(count_tuned(report["kernel_reports"].items()) == 1);
  for (const Json& kernel : report["kernel_reports"].items())
    if (kernel["schedule"].text_or_empty() == "tuned") {
      CHECK(kernel["task"].text_or_empty() == conv->task);
      CHECK(kernel["tuned"].text_or_empty() == "2025-11-22");
      CHECK(kernel["tuned_seconds"].number_or(0) == 1e-6);
    }
  const Json::Array tuned = place.kernels();
  REQUIRE(tuned.size() == plain.size());
  int changed = 0;
  for (size_t i = 0; i < tuned.size(); ++i) {
    const bool other = tuned[i]["hash"].text_or_empty() != plain[i]["hash"].text_or_empty();
    CHECK(other == (tuned[i]["schedule"].text_or_empty() == "tuned"));
    changed += other;
  }
  CHECK(changed == 1);
  const CliResult verified = cli(
      {"verify", place.folder / "model.so", place.model, "--random", "3"});
  CHECK_MESSAGE(verified.code == kExitOk, verified.out << verified.err);
  const CliResult text = place.compile({"--log", log});
  CHECK(has(text.out, " 1 taken from the log"));
  CHECK(has(text.out, conv->name.substr(conv->name.size() - 12)));  // the middle may be cut
  CHECK(has(cli({"inspect", place.folder / "model.so"}).out, "tuned on 2025-11-22"));
}

TEST_CASE(
    "a kernel without a record takes the point of one like it, where its space has that, and a "
    "lock keeps it") {
  const Workplace place;
  const Target target = must(load_target(kTarget, config_dirs()));
  const Task conv = convolution_of(place, target);
  RecordNote note = note_of(conv, target);
  note.shape.sizes[0] += 1;  // the record's kernel does twice the work
  Pin other;
  other.task = "0123456789abcdef", other.target = target_key(target),
  other.kernel_hash = "fedcba9876543210";
  Record like = record_of(other, no_steps(other));
  like.algorithm = algorithm_name(conv.variants.front().algorithm);
  like.about = print(note);
  Record strange = like;
  strange.kernel_hash = "0000000000000000";
  strange.about.insert(strange.about.find('{') + 1, "other=1, ");  // a knob unknown here
  const std::string log = log_of(place, {like, strange});
  const CliResult compiled = place.compile({"--log", log});
  REQUIRE_MESSAGE(compiled.code == kExitOk, compiled.err);
  CHECK(has(compiled.out, " 1 taken from a kernel like it"));
  CHECK(has(cli({"inspect", place.folder / "model.so", "--json"}).out, "\"transferred\""));
  CHECK(cli({"verify", place.folder / "model.so", place.model}).code == kExitOk);
  REQUIRE(place.lock({"--log", log}).code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  CHECK(std::ranges::count_if(pins, [](const Pin& pin) { return pin.transferred; }) == 1);
  CHECK(place.compile({"--frozen"}).code == kExitOk);

  note.point.clear();
  note.by_default = true;
  for (const bool gains : {true, false}) {  // in the record's task, over its default schedule
    CAPTURE(gains);
    Record usual = record_of(other, "schedule {\n  unroll nothing\n}\n", gains ? 1.1e-6 : 1.01e-6);
    usual.algorithm = like.algorithm, usual.about = print(note);
    const CliResult again = place.compile(
        {"--log", log_of(place, {like, usual}, gains ? "gains.db" : "equal.db")});
    REQUIRE_MESSAGE(again.code == kExitOk, again.err);
    CHECK(has(again.out, "1 taken from a kernel like it") == gains);
    CHECK(!has(again.out, "from the log"));
  }

  // A measurement of the kernel's own default schedule alone is no search, so the point is still
  // taken.
  const auto taker = std::ranges::find_if(pins, [](const Pin& pin) { return pin.transferred; });
  REQUIRE(place.lock().code == kExitOk);  // pins the defaults
  const std::vector<Pin> defaults = place.pins();
  const auto own = std::ranges::find_if(defaults, [&](const Pin& pin) {
    return pin.task == taker->task && pin.kernel_hash == taker->kernel_hash;
  });
  REQUIRE(own != defaults.end());
  Record measured = record_of(*own, own->schedule);
  measured.about = print(RecordNote{shape_of(conv.variants.front().lowered), "", true});
  CHECK(has(place.compile({"--log", log_of(place, {like, measured}, "default.db")}).out,
            " 1 taken from a kernel like it"));
}

TEST_CASE("a kernel takes what its space has of the point of its task in another layout") {
  const Workplace place;
  const Target target = must(load_target(kTarget, config_dirs()));
  const Task conv = convolution_of(place, target);
  RecordNote note = note_of(conv, target);
  note.point.insert(note.point.find('{') + 1, "unroll_ring=2, ");
  note.point.insert(note.point.size() - 1, ", blocks=4");
  Pin own;
  own.task = conv.key, own.target = target_key(target), own.kernel_hash = "fedcba9876543210";
  Record record = record_of(own, no_steps(own));
  record.algorithm = algorithm_name(conv.variants.front().algorithm);
  record.about = print(note);
  const std::string log = log_of(place, {record});
  const CliResult compiled = place.compile({"--log", log});
  REQUIRE_MESSAGE(compiled.code == kExitOk, compiled.err);
  CHECK(has(compiled.out, " 1 taken from a kernel like it"));
  CHECK(has(compiled.out, " without unroll_ring=2, blocks=4\n"));
  CHECK(cli({"verify", place.folder / "model.so", place.model}).code == kExitOk);
  const CliResult json = place.compile({"--log", log, "--json"});
  CHECK(has(json.out, "\"left_out\": \"unroll_ring=2, blocks=4\""));
  REQUIRE(place.lock({"--log", log}).code == kExitOk);
  CHECK(std::ranges::count(place.pins(), "unroll_ring=2, blocks=4", &Pin::left_out) == 1);
  const CliResult frozen = place.compile({"--frozen", "--json"});
  CHECK(has(frozen.out, "\"left_out\": \"unroll_ring=2, blocks=4\""));

  // The point of another task must fit as a whole, or it is not taken.
  record.key.task = "0123456789abcdef";
  const CliResult other = place.compile({"--log", log_of(place, {record}, "other.db")});
  CHECK(has(other.out, " not tried"));
  CHECK(!has(other.out, "taken from"));
}

TEST_CASE("of one thread's records the best that leaves no core without work is used") {
  const Workplace place;
  REQUIRE(cli({"lock", place.model, "-t", kFourCores}).code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  std::filesystem::remove(lock_beside(place.model));
  const auto conv = std::ranges::find_if(pins, [](const Pin& pin) {
    return pin.name.starts_with("conv") && has(pin.schedule, "parallel");
  });
  REQUIRE(conv != pins.end());
  const std::string log = log_of(
      place, {record_of(*conv, no_steps(*conv)), record_of(*conv, conv->schedule, 0.0025)});
  const auto used = [&](const std::string& target, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all = {"--log", log, "--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    const CliResult compiled = place.compile(all, "model.so", target);
    REQUIRE_MESSAGE(compiled.code == kExitOk, compiled.out);
    const Json report = json_of(compiled);
    for (const Json& kernel : report["kernel_reports"].items())
      if (const double seconds = kernel["tuned_seconds"].number_or(0); seconds > 0)
        return seconds * 1e3;
    return 0.0;
  };
  CHECK(used(kTarget) == doctest::Approx(1e-3));
  CHECK(used(kFourCores) == doctest::Approx(2.5));
  CHECK(used(kFourCores, {"--threads", "2"}) == 0);
  const std::string alone = log_of(place, {record_of(*conv, no_steps(*conv))}, "alone.db");
  REQUIRE(place.compile({"--log", alone}, "model.so", kFourCores).code == kExitOk);
  CHECK(count_tuned(place.kernels()) == 0);
}

TEST_CASE("records of another target, kernel, thread count or language are not used") {
  const Workplace place;
  REQUIRE(place.lock().code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  std::filesystem::remove(lock_beside(place.model));
  std::vector<Record> records(5, record_of(pins[0], no_steps(pins[0])));
  records[0].key.target = "0123456789abcdef";
  records[1].kernel_hash = "0123456789abcdef";
  records[2].key.threads = 2;
  records[3].key.language = kLanguageVersion + 1;
  records[4].key.regime = "warm";
  const std::string log = log_of(place, records);
  REQUIRE(place.compile({"--log", log}).code == kExitOk);
  CHECK(count_tuned(place.kernels()) == 0);
  REQUIRE(place.compile({"--log", log, "--threads", "2"}).code == kExitOk);
  CHECK(count_tuned(place.kernels()) == 1);
  REQUIRE(cli({"compile", place.model, "-t", "x86-64-v3", "-o", place.folder / "model.so", "--log",
               log, "--threads", "2"})
              .code == kExitOk);
  CHECK(count_tuned(place.kernels()) == 0);
}

TEST_CASE("a schedule that does not apply is a warning, and the default is used") {
  const Workplace place;
  REQUIRE(place.lock().code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  std::filesystem::remove(lock_beside(place.model));
  REQUIRE(place.compile({}, "plain.so").code == kExitOk);
  for (const char* wrong : {"schedule {\n  unroll nothing\n}\n", "no schedule"}) {
    const std::string log = log_of(place, {record_of(pins[0], wrong)},
                                   std::string("bad") + wrong[0] + ".db");
    const CliResult compiled = place.compile({"--log", log});
    CHECK(compiled.code == kExitOk);
    CHECK(has(compiled.err, "warning: task " + pins[0].task));
    CHECK(has(compiled.err, "the default is used"));
    CHECK(count_tuned(place.kernels()) == 0);
  }
  CHECK(has(place.compile({"--log", place.folder / "none.db"}).err, "there is no tuning log"));
}

TEST_CASE("compile says that it knows of records it was not told to use") {
  const Workplace place;
  REQUIRE(place.lock().code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  std::filesystem::remove(lock_beside(place.model));
  REQUIRE(place.compile({}, "before.so").code == kExitOk);
  log_of(place, {record_of(pins[0], no_steps(pins[0]))}, "data/tilewright/tilewright.db");
  const CliResult compiled = place.compile({}, "after.so");
  CHECK(has(compiled.err, "note: 1 of "));
  CHECK(has(compiled.err, "--log uses them"));
  CHECK(count_tuned(place.kernels("after.so")) == 0);
  CHECK(json_of(place.compile({"--json"}))["notes"].items().size() == 1);
  const CliResult other = cli(
      {"compile", place.model, "-t", "x86-64-v3", "-o", place.folder / "other.so"});
  CHECK(other.code == kExitOk);
  CHECK(!has(other.err, "note: "));
  place.folder.write("data/tilewright/tilewright.db", "not a log");
  CHECK(place.compile({}).code == kExitOk);  // no flag asked for that file
}

TEST_CASE("lock and --frozen") {
  const Workplace place;
  const CliResult none = place.compile({"--frozen"});
  CHECK(none.code == kExitNotPinned);
  CHECK(has(none.err, "there is no 'tilewright.lock'"));
  REQUIRE(place.lock().code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  CHECK(place.compile({"--frozen"}, "default.so").code == kExitOk);  // defaults are pinned too

  const std::string log = log_of(place, {record_of(pins[0], no_steps(pins[0]))});
  CHECK(has(place.compile({"--frozen", "--log", log}).err, "leave out --log"));
  const CliResult locked = place.lock({"--log", log});
  CHECK(has(locked.out, "1 of " + std::to_string(pins.size()) + " kernels tuned"));
  const std::string bytes = slurp(lock_beside(place.model));
  REQUIRE(place.lock({"--log", log}).code == kExitOk);
  CHECK(slurp(lock_beside(place.model)) == bytes);
  CHECK(print(must(parse_lock(bytes, "lock"))) == bytes);

  REQUIRE(place.compile({"--log", log}, "logged.so").code == kExitOk);
  REQUIRE(place.compile({}, "locked.so").code == kExitOk);
  REQUIRE(place.compile({"--frozen"}, "frozen.so").code == kExitOk);
  CHECK(count_tuned(place.kernels("locked.so")) == 1);
  for (const char* other : {"locked.so", "frozen.so"}) {
    const Json::Array a = place.kernels("logged.so"), b = place.kernels(other);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) CHECK(dump(a[i]) == dump(b[i]));
  }

  // Another target gets a section of its own, and keeps all of it when the first one is written
  // again.
  CHECK(has(
      cli({"compile", place.model, "-t", "x86-64-v3", "--frozen", "-o", place.folder / "x.so"}).err,
      "pins nothing for model.onnx for x86-64-v3"));
  REQUIRE(cli({"lock", place.model, "-t", "x86-64-v3"}).code == kExitOk);
  REQUIRE(place.lock({"--log", log}).code == kExitOk);
  CHECK(must(read_lock(lock_beside(place.model))).sections.size() == 2);
  CHECK(cli({"compile", place.model, "-t", "x86-64-v3", "--frozen", "-o", place.folder / "x.so"})
            .code == kExitOk);
}

// Three convolutions alike, one task.
Model alike() {
  Model model;
  model.name = "alike";
  ValueId value = model.graph.add_input("x", {DType::f32, {1, 32, 24, 24}, {}});
  for (uint64_t i = 0; i < 3; ++i)
    value = test::must(model.graph.add(
        test::conv_attrs(1),
        {value, model.graph.add_constant("w" + std::to_string(i),
                                         test::seeded_tensor({32, 32, 3, 3}, 1 + i, 0.1))}));
  model.graph.add_output(value, "y");
  return model;
}

TEST_CASE(
    "a lock keeps one task by two algorithms: what is frozen is the compile that was locked, byte "
    "for byte") {
  const TestFolder folder;
  Target target = must(load_target("x86-64-v3", config_dirs()));
  CompileOptions options;
  options.model = folder / "alike.onnx";
  const std::string log = folder / "tuned.db";
  {
    TuningLog records = must(TuningLog::open(log, TuningLog::Mode::write));
    for (const auto& [algorithm, seconds] : {std::pair(Algorithm::direct, 9e-4),
                                             {Algorithm::winograd_f2, 6e-4},
                                             {Algorithm::winograd_f4, 3e-4}}) {
      CompileOptions forced = options;
      forced.emit = Emit::scheduled;
      forced.algorithms.only = algorithm;
      forced.schedules = tuned_schedules({});
      for (const Pin& pin : must(compile_graph(alike(), forced, target)).schedules)
        if (!pin.task.empty()) must(records.add(record_of(pin, pin.schedule, seconds)));
    }
  }
  const auto compiled = [&](const std::string& name, const std::string& from,
                            const std::string& lock) {
    CompileOptions own = options;
    std::filesystem::create_directories(folder / name);
    own.output = folder / (name + "/alike.so");
    own.schedules = tuned_schedules({from, lock, !lock.empty()});
    return must(compile_graph(alike(), own, target));
  };
  // Looks for an error budget that lets some layers, but not all, take the fastest algorithm.
  CompileReport logged;
  std::set<Algorithm> used;
  for (target.accuracy = 1e-7; target.accuracy < 1e-3 && used.size() < 2; target.accuracy *= 1.2) {
    logged = compiled("logged", log, "");
    used.clear();
    for (const auto& [value, algorithm] : logged.algorithms) used.insert(algorithm);
    if (used.size() >= 2) break;
  }
  REQUIRE(used.size() == 2);
  CHECK(std::ranges::count_if(logged.schedules, [&](const Pin& pin) {
          return pin.task == logged.schedules[0].task;
        }) >= 2);
  Lock lock;
  lock.set_section(lock_section(options, target, 1, logged));
  const std::string locked = folder.write("tilewright.lock", print(lock));
  CHECK(print(must(parse_lock(print(lock), "lock"))) == print(lock));
  const CompileReport frozen = compiled("frozen", "", locked);
  CHECK(frozen.algorithms == logged.algorithms);
  CHECK(slurp(frozen.output) == slurp(logged.output));
}

TEST_CASE(
    "a lock pins limits of free dimensions and the calls for special sizes, and one of another "
    "version is written anew") {
  const Workplace place(kDigitsBatch);
  const std::vector<std::string> flags = {"--dim", "batch=1..8", "--specialize", "batch=2"};
  const CliResult locked = place.lock(flags);
  REQUIRE_MESSAGE(locked.code == kExitOk, locked.err);
  const std::string path = lock_beside(place.model);
  const Lock lock = must(read_lock(path));
  REQUIRE(lock.sections.size() == 2);
  CHECK(print(lock) == slurp(path));
  CHECK(has(locked.out, "model.onnx (batch=1..8) for"));
  std::vector<std::string> frozen = flags;
  frozen.push_back("--frozen");
  const CliResult made = place.compile(frozen);
  CHECK_MESSAGE(made.code == kExitOk, made.err);
  // The batch is free here, without limits.
  CHECK(has(place.compile({"--frozen"}).err, "it pins model.onnx (batch=1..8) for"));

  std::string old = slurp(path);
  old.replace(old.find("\"tilewright_lock\": 2"), 20, "\"tilewright_lock\": 1");
  place.folder.write("tilewright.lock", old);
  const CliResult refused = place.compile({});
  CHECK(refused.code == kExitUser);
  CHECK(has(refused.err, "is of another version of the schedule language"));
  const CliResult again = place.lock();
  CHECK(has(again.err, "what it pinned is gone"));
  CHECK(must(read_lock(path)).sections.size() == 1);
  CHECK(place.compile({"--frozen"}).code == kExitOk);
}

TEST_CASE("--frozen names everything that the lock lacks") {
  const Workplace place;
  REQUIRE(place.lock().code == kExitOk);
  Lock lock = must(read_lock(lock_beside(place.model)));
  std::vector<Pin>& pins = lock.sections[0].pins;
  REQUIRE(pins.size() >= 3);
  const std::vector<Pin> gone = {pins[0], pins[1]};
  pins.erase(pins.begin(), pins.begin() + 2);
  pins[0].schedule = "schedule {\n  unroll nothing\n}\n";
  place.folder.write("tilewright.lock", print(lock));
  const CliResult refused = place.compile({"--frozen"});
  CHECK(refused.code == kExitNotPinned);
  CHECK(has(refused.err, "does not pin 3 kernels"));
  for (const Pin& pin : gone) {
    CHECK(has(refused.out, pin.task + "  " + pin.algorithm));
    CHECK(has(refused.out, pin.kernel_hash + "  " + pin.name + "\n"));
  }
  CHECK(has(refused.out, "does not apply"));
  const CliResult told = place.compile({"--frozen", "--json"});
  CHECK(told.code == kExitNotPinned);
  Expected<Json> json = parse_json(told.out, "out");
  REQUIRE(bool(json));
  CHECK((*json)["error"].items().at(0)["code"].text_or_empty() == "not-pinned");
  CHECK((*json)["not_pinned"].items().size() == 3);
  CHECK((*json)["not_pinned"].items().at(0)["name"].text_or_empty() != "");
  const CliResult warned = place.compile({});
  CHECK(warned.code == kExitOk);
  CHECK(has(warned.err, "is not in the lock; the default is used"));
  place.folder.write("tilewright.lock", "{}");
  CHECK(has(place.compile({}).err, "is no lock of tilewright"));
}

TEST_CASE("a lock is for one binding of the symbols") {
  const Workplace place(kDigitsBatch);
  REQUIRE(place.lock({"--dim", "batch=2"}).code == kExitOk);
  CHECK(place.compile({"--frozen", "--dim", "batch=2"}).code == kExitOk);
  const CliResult other = place.compile({"--frozen"});
  CHECK(has(other.err, "pins nothing for model.onnx for " + kFourCores));
  CHECK(has(other.err, "it pins model.onnx (batch=2) for " + kFourCores));
}

TEST_CASE("the log command") {
  const Workplace place;
  REQUIRE(place.lock().code == kExitOk);
  const std::vector<Pin> pins = place.pins();
  Record failed = record_of(pins[1], no_steps(pins[1]));
  failed.seconds.clear();
  failed.status = Status::timeout;
  const std::string a = log_of(place, {record_of(pins[0], no_steps(pins[0])),
                                       record_of(pins[0], pins[0].schedule, 2e-6), failed});
  Record again = record_of(pins[0], no_steps(pins[0]), 5e-7);
  again.time += 60;  // the last measurement of a schedule counts
  const std::string b = log_of(place, {again}, "b.db");

  const Json shown = json_of(cli({"log", "show", "--log", a, "--json"}));
  CHECK(shown["records"].integer_or(0) == 3);
  CHECK(shown["keys"].items().size() == 2);
  CHECK(has(cli({"log", "show", "--log", a}).out, "0.0010 ms  "));
  const Json best = json_of(cli({"log", "best", "--log", a, "--task", pins[0].task, "--json"}));
  REQUIRE(best["best"].items().size() == 1);
  CHECK(best["best"].items()[0]["schedule"].text_or_empty() == no_steps(pins[0]));
  CHECK(has(cli({"log", "best", "--log", a}).out, no_steps(pins[0])));

  const std::string lines = place.folder / "records.jsonl";
  REQUIRE(cli({"log", "export", lines, "--log", a}).code == kExitOk);
  CHECK(slurp(lines) == cli({"log", "export", "--log", a}).out);
  const std::string c = place.folder / "c.db";
  CHECK(json_of(cli({"log", "import", lines, lines, "--log", c, "--json"}))["records"].integer_or(
            0) == 3);
  CHECK(cli({"log", "export", "--log", c}).out == slurp(lines));

  CHECK(json_of(cli({"log", "diff", b, "--log", c, "--json"}))["differences"].items().size() == 1);
  CHECK(has(cli({"log", "diff", b, "--log", c}).out, "1 keys differ"));
  CHECK(has(cli({"log", "merge", b, "--log", c}).out, "1 new records"));
  CHECK(has(cli({"log", "merge", b, "--log", c}).out, "0 new records"));
  CHECK(has(cli({"log", "prune", "--keep", "1", "--log", c}).out, "3 records dropped, 1 left"));
  CHECK(has(cli({"log", "diff", b, "--log", c}).out, "0 keys differ"));

  CHECK(has(cli({"log", "show"}).err, "there is no tuning log"));  // the user's own log
  CHECK(has(cli({"log", "show", "--log", kDigits}).err, "is no tuning log"));
  CHECK(has(cli({"log", "shout", "--log", a}).err, "one of show, best"));
  CHECK(has(cli({"log", "diff", "--log", a}).err, "log diff takes another log"));
  CHECK(has(cli({"log", "prune", "--log", a}).err, "drops nothing"));
  CHECK(has(cli({"log", "prune", "--before", "soon", "--log", a}).err, "is no date"));
}
