// tilewright space: kernels with their sketches, points that a seed reproduces, wrong names.
#include <doctest/doctest.h>

#include "cli_test_util.h"
#include "support/json.h"

using namespace tw;

namespace {

const std::string kModel = TW_SOURCE_DIR "/examples/digits/digits.onnx";

Json document(std::vector<std::string> words) {
  words.push_back("--json");
  const CliResult r = cli(words);
  CHECK(r.err == "");
  Expected<Json> parsed = parse_json(r.out, "out");
  REQUIRE_MESSAGE(bool(parsed), r.out);
  return *parsed;
}

}  // namespace

TEST_CASE("space lists the kernels' knobs and legal points of them") {
  for (const char* space : {"template", "generated", "all"}) {
    const Json json = document(
        {"space", kModel, "-t", "x86-64-v3", "--space", space, "--sample", "6", "--seed", "3"});
    REQUIRE(json["kernels"].items().size() > 2);
    int64_t legal = 0;
    for (const Json& kernel : json["kernels"].items()) {
      CHECK(kernel["points"].number_or(0) > 1);
      CHECK(!kernel["sketches"].items().empty());
      CHECK(kernel["samples"].items().size() == 6);
      legal += kernel["legal"].integer_or(0);
      for (const Json& point : kernel["samples"].items())
        CHECK(point["schedule"].text_or_empty().starts_with("schedule {") ==
              *point["legal"].boolean());
    }
    CHECK(legal > 0);
  }
}

TEST_CASE("space: a seed brings the same points back, one kernel alone, wider without rules") {
  const std::vector<std::string> words = {"space", kModel,     "-t", "x86-64-v3", "--kernel",
                                          "1",     "--sample", "4",  "--seed",    "9"};
  const CliResult once = cli(words), again = cli(words);
  CHECK(once.code == kExitOk);
  CHECK(once.out == again.out);
  CHECK(once.out.starts_with("1 "));
  CHECK(once.out.find("\n2 ") == std::string::npos);
  const double narrow = document({"space", kModel, "-t", "x86-64-v3", "--kernel", "1"})["kernels"]
                            .items()[0]["points"]
                            .number_or(0);
  const double wide = document({"space", kModel, "-t", "x86-64-v3", "--kernel", "1",
                                "--no-rules"})["kernels"]
                          .items()[0]["points"]
                          .number_or(0);
  CHECK(narrow < wide);
}

TEST_CASE("space: what is not there is said") {
  CHECK(cli({"space", kModel, "--space", "best"}).err.find("one of all, template, generated") !=
        std::string::npos);
  CHECK(cli({"space", kModel, "--kernel", "99"}).err.find("there is no kernel 99") !=
        std::string::npos);
}
