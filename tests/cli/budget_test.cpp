#include <doctest/doctest.h>

#include "cli_test_util.h"

using namespace tw;

namespace {

const std::string kDigits = std::string(TW_SOURCE_DIR) + "/examples/digits/digits.onnx";
const std::string kTarget = "triple: x86_64-linux-gnu\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Budgeting {
  TestFolder folder;
  CliResult compile(const std::string& budget, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"compile",  kDigits,
                                      "-t",       "x86-64-v2",
                                      "-o",       folder / "digits.so",
                                      "--budget", folder.write("b.yaml", budget)};
    words.insert(words.end(), more.begin(), more.end());
    return cli(words);
  }
  bool written() const { return std::filesystem::exists(folder / "digits.so"); }
};

}  // namespace

TEST_CASE(
    "budget: what is within it is compiled, what is over it leaves nothing and exits with 7") {
  const Budgeting place;
  const CliResult good = place.compile(
      "budget: {artifact_bytes: 1MiB, weight_bytes: 1MiB, arena_bytes: 1MiB, error: 0.001, "
      "p50_ms: 1000}\n");
  CHECK(good.code == kExitOk);
  CHECK(place.written());
  for (const char* name : {"artifact_bytes", "weight_bytes", "arena_bytes", "error", "p50_ms"})
    CHECK(has(good.out, name));
  CHECK(!has(good.out, "over by"));

  const CliResult bad = place.compile("budget: {artifact_bytes: 1KiB, arena_bytes: 1MiB}\n",
                                      {"--junit", place.folder / "budget.xml"});
  CHECK(bad.code == kExitBudget);
  CHECK(has(bad.out, "over by a factor of "));
  CHECK(has(bad.out, "within"));
  CHECK(!place.written());
  CHECK(!std::filesystem::exists(place.folder / "digits.h"));
  const std::string junit = slurp(place.folder / "budget.xml");
  CHECK(has(junit, "tests=\"2\" failures=\"1\""));
  CHECK(has(junit, "allowed 1024\""));

  const CliResult slow = place.compile("budget: {p50_ms: 0}\n", {"--json"});
  CHECK(slow.code == kExitBudget);
  Expected<Json> json = parse_json(slow.out, "out");
  REQUIRE(bool(json));
  CHECK((*json)["ok"].boolean() != nullptr);
  const Json& row = (*json)["budget"].items().at(0);
  CHECK(row["name"].text_or_empty() == "p50_ms");
  CHECK(row["needed"].number_or(0) > 0);
  CHECK(!*row["within"].boolean());
}

TEST_CASE("budget: an error that no choice is within has its row in the table, JSON and JUnit") {
  const Budgeting place;
  const std::string budget = "budget: {artifact_bytes: 1MiB, error: 0}\n";
  const CliResult bad = place.compile(budget, {"--junit", place.folder / "budget.xml"});
  CHECK(bad.code == kExitBudget);
  CHECK(has(bad.out, "budget                   needed        allowed\n"));
  CHECK(has(bad.out, "1048576  within"));
  CHECK(has(bad.out, "              0  over\n"));
  CHECK(has(bad.err, "with every layer exact"));
  CHECK(!has(bad.out, "accuracy"));
  CHECK(!place.written());
  CHECK(!std::filesystem::exists(place.folder / "digits.h"));
  CHECK(has(slurp(place.folder / "budget.xml"), "tests=\"2\" failures=\"1\""));

  const CliResult told = place.compile(budget, {"--json"});
  CHECK(told.code == kExitBudget);
  Expected<Json> json = parse_json(told.out, "out");
  REQUIRE(bool(json));
  CHECK(!*(*json)["ok"].boolean());
  CHECK(!*(*json)["accuracy"]["within"].boolean());
  const Json& row = (*json)["budget"].items().at(1);
  CHECK(row["name"].text_or_empty() == "error");
  CHECK(row["needed"].number_or(0) == (*json)["accuracy"]["error_of_all_choices"].number_or(-1));
}

TEST_CASE("budget: the error of another machine's library is measured by a stand-in") {
  const TestFolder folder;
  const auto compile = [&](const std::string& budget) {
    return cli({"compile", kDigits, "-t", "cortex-a72", "-o", folder / "d.so", "--budget",
                folder.write("b.yaml", budget)});
  };
  const CliResult good = compile("budget: {artifact_bytes: 1MiB, error: 1e-3}\n");
  CHECK(good.code == kExitOk);
  CHECK(has(good.out, "0.001  within"));
  CHECK(std::filesystem::exists(folder / "d.so"));
  CHECK(compile("budget: {error: 0}\n").code == kExitBudget);
  CHECK(!std::filesystem::exists(folder / "d.so"));
}

TEST_CASE("budget: the map in a target's description counts, --budget none does not ask") {
  const TestFolder folder;
  const std::string target = folder.write("t.yaml", kTarget + "budget: {weight_bytes: 16}\n");
  const std::vector<std::string> words = {"compile", kDigits, "-t",
                                          target,    "-o",    folder / "digits.so"};
  CHECK(cli(words).code == kExitBudget);
  std::vector<std::string> without = words;
  without.insert(without.end(), {"--budget", "none"});
  CHECK(cli(without).code == kExitOk);
  const CliResult object = cli(
      {"compile", kDigits, "-t", target, "--emit", "obj", "-o", folder / "digits.o"});
  CHECK(object.code == kExitOk);
  CHECK(has(object.err, "is not checked: an object cannot be run here"));
}

TEST_CASE("budget: what cannot be measured here says so") {
  const Budgeting place;
  const CliResult cycles = place.compile("budget: {cycles: 100}\n");
  CHECK(cycles.code == kExitUnsupported);
  CHECK(has(cycles.err, "no device"));
  CHECK(!has(cycles.err, "codegen"));  // the error comes before the work
  CHECK(!place.written());
  const TestFolder folder;
  const CliResult cross = cli({"compile", kDigits, "-t", "cortex-a72", "-o", folder / "d.so",
                               "--budget", folder.write("b.yaml", "budget: {p50_ms: 1}\n")});
  CHECK(cross.code == kExitUnsupported);
  CHECK(has(cross.err, "p50_ms is measured by a run on this machine"));
  CHECK(!has(cross.err, "codegen"));
}

TEST_CASE("budget: every mistake in the file is told with its place") {
  const Budgeting place;
  const CliResult r = place.compile(
      "budget:\n  artifact_bytes: many\n  sise: 3\n  error: -1\n  p50_ms: 1\n  p50_ms: 2\n");
  CHECK(r.code == kExitUser);
  CHECK(has(r.err, "b.yaml:2:19: artifact_bytes must be a size"));
  CHECK(has(r.err, "b.yaml:3:3: unknown key 'sise'"));
  CHECK(has(r.err, "error must be a number that is not negative"));
  CHECK(has(r.err, "'p50_ms' is given twice"));
  CHECK(has(place.compile("a: 1\n").err, "no map 'budget'"));
  const TestFolder folder;
  const CliResult target = cli({"compile", kDigits, "-t",
                                folder.write("t.yaml", kTarget + "budget: 3\n"), "-o",
                                folder / "d.so"});
  CHECK(has(target.err, "t.yaml:2:9: budget must be a map"));
  const CliResult junit = cli(
      {"compile", kDigits, "-o", folder / "d.so", "--junit", folder / "j.xml"});
  CHECK(has(junit.err, "--junit writes what became of a budget"));
}

TEST_CASE("compile --depfile is a rule of make of what was read and written") {
  const TestFolder folder;
  const std::string model = folder.write("a model.onnx", slurp(kDigits));
  const std::string target = folder.write("t.yaml", kTarget);
  REQUIRE(cli({"compile", model, "-t", target, "-o", folder / "m.so", "--depfile", folder / "m.d"})
              .code == kExitOk);
  CHECK(slurp(folder / "m.d") == (folder / "m.so") + " " + (folder / "m.h") + ": \\\n  " +
                                     folder.path() + "/a\\ model.onnx \\\n  " + target + "\n");
}
