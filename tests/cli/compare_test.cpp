#include <doctest/doctest.h>

#include "cli_test_util.h"

using namespace tw;

namespace {

const std::string kDigits = std::string(TW_SOURCE_DIR) + "/examples/digits/digits.onnx";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("compare: equal libraries are equal, others differ in sizes, kernels and facts") {
  const TestFolder folder;
  const auto compile = [&](const std::string& name, const std::string& target) {
    REQUIRE(cli({"compile", kDigits, "-t", target, "--name", "digits", "-o", folder / name}).code ==
            kExitOk);
  };
  compile("a.so", "x86-64-v2");
  compile("b.so", "x86-64-v2");
  compile("c.so", "cortex-a72");
  const CliResult same = cli({"compare", folder / "a.so", folder / "b.so"});
  CHECK(same.code == kExitOk);
  CHECK(!has(same.out, " > "));
  CHECK(has(same.out, "kernels are equal"));
  CHECK(!has(same.out, "changed"));

  const CliResult other = cli({"compare", folder / "a.so", folder / "c.so"});
  CHECK(other.code == kExitOk);
  CHECK(has(other.out, "target: x86-64-v2 > cortex-a72"));
  CHECK(has(other.out, "code bytes"));
  CHECK(has(other.out, " %)"));

  // Kernels whose loops differ are found by their hashes as scheduled.
  Expected<Json> before = parse_json(cli({"inspect", folder / "a.so", "--json"}).out, "out");
  REQUIRE(bool(before));
  const std::string hash = (*before)["manifest"]["kernels"].items().at(0)["hash"].text_or_empty();
  CHECK(has(other.out, "hash as scheduled"));
  CHECK(has(other.out, " " + hash.substr(0, 8) + " > "));

  Expected<Json> json = parse_json(cli({"compare", folder / "a.so", folder / "c.so", "--json"}).out,
                                   "out");
  REQUIRE(bool(json));
  CHECK((*json)["sizes"].items().at(0)["name"].text_or_empty() == "artifact bytes");
  CHECK((*json)["facts"].items().size() >= 2);
  CHECK(!(*json)["kernels"].items().empty());
  CHECK(has(cli({"compare", folder / "a.so", kDigits}).err, "digits.onnx"));
}
