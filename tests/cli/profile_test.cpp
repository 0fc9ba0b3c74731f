// tilewright profile: the times of calls, and one run over time.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "driver/run/trace.h"
#include "tests/cli/cli_test_util.h"

using namespace tw;

namespace {

struct Slice {
  std::string name;
  int64_t lane = 0, first = 0, last = 0;
  double begin = 0, end = 0;
};

std::vector<Slice> slices_of(const Json& trace) {
  std::vector<Slice> slices;
  for (const Json& e : trace["traceEvents"].items())
    if (e["ph"].text_or_empty() == "X")
      slices.push_back({e["name"].text_or_empty(), e["tid"].integer_or(-1),
                        e["args"]["first"].integer_or(-1), e["args"]["last"].integer_or(-1),
                        e["ts"].number_or(-1), e["ts"].number_or(-1) + e["dur"].number_or(-1)});
  return slices;
}

}  // namespace

TEST_CASE("a trace: calls lie round their parts, behind each other, and belong to the run's") {
  Manifest m;
  m.kernels = {{"a_0", ""}, {"b_1", ""}};
  m.calls.resize(4);
  m.calls[0].name = "alone";
  m.calls[1].name = "of other sizes";
  m.calls[2].name = "shared";
  m.calls[2].kernel = 1;
  m.calls[3].name = "table";
  m.calls[3].kernel = -1;
  m.calls[3].function = "nonzero";
  // In microseconds: "alone" takes 10, "shared" 30. The last 20 of these are a loop of two parts.
  RunTrace trace{{10000, 0, 30000, 5000},
                 {{1031000, 1049000, 1, 4, 8, 1}, {1030500, 1050500, 0, 0, 4, 1}},
                 1000000,
                 1060000};
  std::ranges::sort(trace.parts, {}, &LoopPart::begin);
  const std::vector<Slice> slices = slices_of(chrome_trace(trace, m));
  REQUIRE(slices.size() == 5);
  CHECK(slices[0].name == "alone");
  CHECK(slices[0].begin == doctest::Approx(0));
  CHECK(slices[1].name == "shared");
  CHECK(slices[1].begin == doctest::Approx(20.5));
  CHECK(slices[1].end == doctest::Approx(50.5));
  CHECK(slices[2].lane == 1);
  CHECK(slices[2].first == 0);
  CHECK(slices[2].last == 3);
  CHECK(slices[3].lane == 2);
  CHECK(slices[3].begin == doctest::Approx(31));
  CHECK(slices[4].name == "table");
  CHECK(slices[4].begin == doctest::Approx(50.5));
}

TEST_CASE("profile --trace: every call is there in its order, and parts follow their call") {
  const TestFolder folder;
  const std::string library = folder / "d.so", file = folder / "run.json";
  REQUIRE(cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-o", library}).code ==
          kExitOk);
  const CliResult r = cli(
      {"profile", library, "--threads", "3", "--runs", "2", "--trace", file, "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  Expected<Json> told = parse_json(r.out, "out");
  REQUIRE(bool(told));
  Expected<Json> trace = parse_json(slurp(file), file);
  REQUIRE(bool(trace));
  std::vector<Slice> calls;
  int64_t lanes = 0;
  for (const Slice& s : slices_of(*trace)) {
    CHECK(s.begin <= s.end);
    if (s.lane == 0) calls.push_back(s);
    else lanes = std::max(lanes, s.lane);
    if (s.lane > 0) CHECK(s.name == calls.back().name);
  }
  CHECK(calls.size() == (*told)["calls"].items().size());
  for (size_t c = 0; c < calls.size(); ++c) {
    CHECK(calls[c].name == (*told)["calls"].items()[c]["name"].text_or_empty());
    if (c > 0) CHECK(calls[c].begin >= calls[c - 1].end - 0.01);
  }
  CHECK(lanes <= 3);
  for (const Json& call : (*told)["calls"].items()) {
    CHECK(call["ms"].number_or(-1) > 0);
    CHECK(call["peak_percent"].number_or(-1) >= 0);
  }
}

TEST_CASE("a pool that records runs every iteration once, on all of its threads") {
  RecordingPool pool(3);
  pool.record({});
  for (const int32_t count : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    pool.parallel().parallel_for(
        pool.parallel().pool,
        [](void* arg, int32_t i) {
          ++(*static_cast<std::vector<std::atomic<int>>*>(arg))[static_cast<size_t>(i)];
        },
        &seen, count);
    CHECK(std::ranges::all_of(seen, [](const std::atomic<int>& n) { return n == 1; }));
  }
  int64_t iterations = 0;
  for (const LoopPart& part : pool.parts()) iterations += part.last - part.first;
  CHECK(iterations == 106);
  CHECK(pool.parts().size() == 1 + 2 + 3 + 3);
}

TEST_CASE("a trace is not written over the library, nor into a folder that is not there") {
  const TestFolder folder;
  const std::string library = folder.write("d.so", "\177ELF");
  CHECK(cli({"profile", library, "--trace", library}).code == kExitUser);
  CHECK(cli({"profile", library, "--trace", folder / "no/run.json"}).code == kExitIo);
  CHECK(slurp(library) == "\177ELF");
}

TEST_CASE("bench --roofline: classes have all calls and all of their time") {
  const TestFolder folder;
  const std::string library = folder / "d.so";
  REQUIRE(cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-o", library}).code ==
          kExitOk);
  const CliResult r = cli(
      {"bench", library, "--threads", "1", "--roofline", "--seconds", "0.05", "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  Expected<Json> told = parse_json(r.out, "out");
  REQUIRE(bool(told));
  Expected<Json> calls = parse_json(cli({"profile", library, "--runs", "1", "--json"}).out, "out");
  REQUIRE(bool(calls));
  std::map<std::string, int64_t> wanted, found;
  for (const Json& call : (*calls)["calls"].items()) {
    const std::string kernel = call["kernel"].text_or_empty();
    ++wanted[kernel.substr(0, kernel.find_last_of('_'))];
  }
  for (const Json& one : (*told)["classes"].items()) {
    found[one["class"].text_or_empty()] = one["calls"].integer_or(0);
    CHECK(one["ms"].number_or(0) > 0);
    CHECK(one["roof_ms"].number_or(0) > 0);
  }
  CHECK(found == wanted);
  CHECK((*told)["peaks"]["gflops"].number_or(0) > 0);
  const CliResult text = cli(
      {"bench", library, "--threads", "1", "--roofline", "--seconds", "0.05"});
  CHECK(text.out.find("lost%") != std::string::npos);
  CHECK(text.out.find("conv") != std::string::npos);
}
