#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "autotune/log.h"
#include "cli_test_util.h"
#include "tests/opencl/session.h"

using namespace tw;

TEST_CASE("tune: wrong words name what there is") {
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"tune", "no/such/model.onnx"});
    const CliResult r = cli(words);
    CHECK(r.code == kExitUser);
    CHECK(r.out.empty());
    return r.err;
  };
  CHECK(
      error({"--tuner", "gbm"}).find("--tuner 'gbm': one of gbt, genetic, anneal, random, grid") !=
      std::string::npos);
  CHECK(error({"--features", "all"}).find("one of knob, itervar, curve, loops") !=
        std::string::npos);
  CHECK(error({"--objective", "mse"}).find("one of rank, regression") != std::string::npos);
  CHECK(error({"--space", "big"}).find("one of all, template, generated") != std::string::npos);
  for (const char* time : {"soon", "10x", "-3s", "0", "m"})
    CHECK(error({"--time", time}).find("--time '") != std::string::npos);
  for (const char* until : {"2", "0%", "100%", "%"})
    CHECK(error({"--until", until}).find("as in 2%") != std::string::npos);
}

TEST_CASE("tune: measures, keeps records, goes on from them, writes JSON lines") {
  const TestFolder folder;
  const std::string log = folder / "tilewright.db",
                    model = TW_SOURCE_DIR "/examples/digits/digits.onnx";
  const auto run = [&](const std::string& trials) {
    const CliResult r = cli(
        {"tune", model, "--log", log, "--tuner", "random", "--trials", trials, "--json"});
    REQUIRE(r.code == kExitOk);
    std::vector<Json> lines;
    std::istringstream text(r.out);
    for (std::string line; std::getline(text, line);) {
      Expected<Json> json = parse_json(line, "out");
      REQUIRE(bool(json));
      lines.push_back(std::move(*json));
    }
    REQUIRE_FALSE(lines.empty());
    return lines;
  };
  const auto count = [&] {
    Expected<TuningLog> opened = TuningLog::open(log, TuningLog::Mode::read);
    REQUIRE(bool(opened));
    Expected<std::vector<Record>> records = opened->all();
    REQUIRE(bool(records));
    return latest(*records).size();  // gains are measured again at the end
  };
  const std::vector<Json> first = run("6");
  CHECK(first.front()["round"]["name"].text() != nullptr);
  CHECK(first.back()["stopped"].text_or_empty() == "trials");
  CHECK(first.back()["trials"].integer_or(0) == 6);
  CHECK(first.back()["network_seconds"].number_or(0) > 0);
  for (const Json& task : first.back()["tasks"].items()) {
    CHECK(task["roof_seconds"].number_or(0) > 0);
    CHECK(task["left"].number_or(-1) >= 0);
    CHECK(task["left"].number_or(2) < 1);
  }
  for (const Json& kernel : first.back()["to_win"].items()) {
    CHECK(kernel["share"].number_or(0) >= 0.01);
    CHECK(kernel["more_trials"].integer_or(-1) + kernel["idle"].integer_or(-1) > 0);
  }
  CHECK(count() == 6);
  const std::vector<Json> second = run("4");
  CHECK(second.back()["trials"].integer_or(0) == 4);
  CHECK(count() == 10);
}

TEST_CASE("tune: the roof is that of the algorithm with the fewest operations") {
  const TestFolder folder;
  const CliResult r = cli({"tune", TW_SOURCE_DIR "/examples/digits/digits.onnx", "--log",
                           folder / "log.db", "--kernel", "2", "--trials", "1", "--no-prove",
                           "--json"});
  REQUIRE(r.code == kExitOk);
  const std::string last = r.out.substr(r.out.rfind('\n', r.out.size() - 2) + 1);
  const Json summary = llvm::cantFail(parse_json(last, "out"));
  const Json& task = summary["tasks"].items()[0];  // a 3x3 convolution
  const double rate = task["gflops"].number_or(0) * 1e9,
               flops = rate * task["seconds"].number_or(0), peak = rate / task["peak"].number_or(1);
  CHECK(flops > 0);
  CHECK(task["roof_seconds"].number_or(1) < 0.6 * flops / peak);
}

TEST_CASE("tune: a target of another machine is refused before anything is measured") {
  const TestFolder folder;
  const CliResult r = cli({"tune", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-t",
                           "aarch64-generic", "--log", folder / "t.db"});
  CHECK(r.code == kExitUnsupported);
  CHECK(r.err.find("target 'aarch64-generic' is for aarch64") != std::string::npos);
}

// Under the sanitizers, the tuner's compilations take ten times as long.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr const char* kShortTime = "60s";
#else
constexpr const char* kShortTime = "8s";
#endif
#else
constexpr const char* kShortTime = "8s";
#endif

TEST_CASE("compile --tune: tunes, times the network both ways, and the library computes the same") {
  const TestFolder folder;
  const std::string model = TW_SOURCE_DIR "/examples/digits/digits.onnx", log = folder / "t.db";
  const CliResult wrong = cli({"compile", model, "-o", folder / "x.so", "--tune", "soon"});
  CHECK(wrong.code == kExitUser);
  CHECK(wrong.err.find("--tune 'soon'") != std::string::npos);
  CHECK(cli({"compile", model, "-o", folder / "x.so", "--tune", "1s", "--frozen"}).code ==
        kExitUser);
  const CliResult r = cli(
      {"compile", model, "-o", folder / "tuned.so", "--tune", kShortTime, "--log", log, "--json"});
  REQUIRE(r.code == kExitOk);
  Expected<Json> report = parse_json(r.out, "out");
  REQUIRE(bool(report));
  for (const char* said : {"of the time", "could still be won", "whole network", " in "})
    CHECK_MESSAGE(std::ranges::any_of((*report)["notes"].items(),
                                      [&](const Json& note) {
                                        return note.text_or_empty().find(said) != std::string::npos;
                                      }),
                  said);
  CHECK(cli({"verify", folder / "tuned.so", model}).code == kExitOk);
  // The log has marks on the records that do not gain, so a compile by it makes the same library.
  std::filesystem::create_directory(folder / "again");
  REQUIRE(cli({"compile", model, "-o", folder / "again/tuned.so", "--log", log}).code == kExitOk);
  CHECK(slurp(folder / "again/tuned.so") == slurp(folder / "tuned.so"));
  Expected<TuningLog> opened = TuningLog::open(log, TuningLog::Mode::read);
  REQUIRE(bool(opened));
  Expected<int64_t> count = opened->count();
  REQUIRE(bool(count));
  CHECK(*count > 0);
}

TEST_CASE(
    "compile --tune: where the time is less than the second library and the proof take, nothing is "
    "tuned and that is said") {
  const TestFolder folder;
  const std::string model = TW_SOURCE_DIR "/examples/digits/digits.onnx", log = folder / "t.db";
  const CliResult r = cli(
      {"compile", model, "-o", folder / "tuned.so", "--tune", "0.1s", "--log", log, "--json"});
  REQUIRE(r.code == kExitOk);
  Expected<Json> report = parse_json(r.out, "out");
  REQUIRE(bool(report));
  REQUIRE((*report)["notes"].items().size() >= 1);
  CHECK((*report)["notes"].items()[0].text_or_empty().find("leave no time for a search") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(log));
  CHECK(cli({"verify", folder / "tuned.so", model}).code == kExitOk);
}

TEST_CASE(
    "tune: a device whose code generator predicts cycles is tuned by them, and a compile takes "
    "what was found") {
  const TestFolder folder;
  const std::string model = TW_SOURCE_DIR "/examples/digits/digits_int8.onnx",
                    log = folder / "t.db";
  const CliResult r = cli({"tune", model, "-t", "vdla-16x16", "--log", log, "--trials", "40",
                           "--tuner", "random", "--json"});
  REQUIRE(r.code == kExitOk);
  Expected<Json> last = parse_json(r.out.substr(r.out.rfind('\n', r.out.size() - 2) + 1), "out");
  REQUIRE(bool(last));
  CHECK((*last)["tasks"].items().size() == 5);  // the tasks on the device
  CHECK((*last)["network_seconds"].number_or(0) > 0);
  CHECK((*last)["network_seconds"].number_or(0) <= (*last)["default_network_seconds"].number_or(0));
  const CliResult compiled = cli(
      {"compile", model, "-t", "vdla-16x16", "--log", log, "-o", folder / "tuned.so"});
  CHECK(compiled.code == kExitOk);
  CHECK(compiled.out.find("5 taken from the log") != std::string::npos);
  const CliResult proof = cli(
      {"tune", model, "-t", "vdla-16x16", "--log", log, "--trials", "1", "--prove"});
  CHECK(proof.code == kExitUnsupported);
  CHECK(proof.err.find("--prove times processors") != std::string::npos);
  const CliResult check = cli({"tune", model, "-t", "vdla-16x16", "--log", log, "--check", "2"});
  CHECK(check.code == kExitUnsupported);
  CHECK(check.err.find("cycles that its code generator counts") != std::string::npos);
}

TEST_CASE("tune: an OpenCL device runs candidates through the runtime, checked like others") {
  if (!test::shared_host()) return;
  const TestFolder folder;
  const std::string log = folder / "t.db", model = TW_SOURCE_DIR "/examples/digits/digits.onnx";
  const CliResult r = cli({"tune", model, "-t", "opencl-generic", "--log", log, "--tuner", "random",
                           "--trials", "12", "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  Expected<TuningLog> opened = TuningLog::open(log, TuningLog::Mode::read);
  REQUIRE(bool(opened));
  Expected<std::vector<Record>> records = opened->all();
  REQUIRE(bool(records));
  CHECK(records->size() >= 6);
  CHECK(std::ranges::any_of(*records,
                            [](const Record& record) { return record.status == Status::ok; }));
  for (const Record& record : *records)
    CHECK_MESSAGE((record.status == Status::ok || record.status == Status::compile_error),
                  record.error);
  const CliResult compiled = cli(
      {"compile", model, "-t", "opencl-generic", "--log", log, "-o", folder / "d.so"});
  CHECK_MESSAGE(compiled.code == kExitOk, compiled.err);
  CHECK(compiled.out.find("taken from the log") != std::string::npos);
  CHECK(cli({"verify", folder / "d.so", model}).code == kExitOk);
  const CliResult check = cli({"tune", model, "-t", "opencl-generic", "--log", log, "--kernel", "2",
                               "--check", "2", "--json"});
  REQUIRE_MESSAGE(check.code == kExitOk, check.err);
  Expected<Json> kernel = parse_json(check.out, "out");
  REQUIRE(bool(kernel));
  CHECK((*kernel)["default"].items().size() == 2);
  for (const Json& seconds : (*kernel)["tuned"].items()) CHECK(seconds.number_or(0) > 0);
}

TEST_CASE("tune --check: the best records beside the defaults, in processes of their own") {
  const TestFolder folder;
  const std::string log = folder / "t.db", model = TW_SOURCE_DIR "/examples/digits/digits.onnx";
  REQUIRE(cli({"tune", model, "--log", log, "--kernel", "1", "--trials", "4", "--json"}).code ==
          kExitOk);
  const CliResult r = cli({"tune", model, "--log", log, "--check", "2", "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  CHECK(std::ranges::count(r.out, '\n') == 1);  // the other kernels have no records
  Expected<Json> line = parse_json(r.out, "out");
  REQUIRE(bool(line));
  for (const char* what : {"tuned", "default", "default_again"})
    CHECK((*line)[what].items().size() == 2);
  CHECK(cli({"tune", model, "--log", log, "--check", "1"}).out.find("keep their rank") !=
        std::string::npos);
  CHECK(cli({"tune", model, "--log", log, "--kernel", "99", "--check", "1"})
            .err.find("there is no kernel 99") != std::string::npos);
}

TEST_CASE("tune: a table answers another method's questions, and the curve is told") {
  const TestFolder folder;
  const std::string log = folder / "t.db", model = TW_SOURCE_DIR "/examples/digits/digits.onnx";
  const auto curve = [&](const std::string& trials) {
    const CliResult r = cli({"tune", model, "--log", log, "--kernel", "1", "--table", "--tuner",
                             "random", "--trials", trials, "--batch", "4", "--json"});
    REQUIRE_MESSAGE(r.code == kExitOk, r.err);
    Expected<Json> last = parse_json(r.out.substr(r.out.rfind('\n', r.out.size() - 2) + 1), "out");
    REQUIRE(bool(last));
    const Json task = (*last)["tasks"].items()[0];
    CHECK(task["trials"].integer_or(-1) + task["known"].integer_or(-1) ==
          static_cast<int64_t>(task["curve"].items().size()));
    return std::pair(task["curve"].items().size(), task["trials"].integer_or(-1));
  };
  CHECK(curve("8").first == 8);
  const auto [trials, measured] = curve("12");
  CHECK(trials == 12);
  CHECK(measured <= 4);
}
