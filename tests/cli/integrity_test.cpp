// Every command that takes a library refuses one with changed bytes.
#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "cli_test_util.h"

using namespace tw;

namespace {

const std::string kDigits = TW_SOURCE_DIR "/examples/digits/digits.onnx";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::vector<std::string>> commands(const std::string& library) {
  return {{"inspect", library},
          {"run", library, "--random", "1"},
          {"verify", library, kDigits},
          {"bench", library, "--runs", "1"},
          {"profile", library, "--runs", "1"}};
}

}  // namespace

TEST_CASE("changed and truncated libraries are refused by all commands") {
  const TestFolder folder;
  REQUIRE(cli({"compile", kDigits, "-o", folder / "digits.so"}).code == kExitOk);
  const std::string good = slurp(folder / "digits.so");
  std::mt19937 random(9);
  std::vector<std::string> wrong;
  for (int i = 0; i < 40; ++i) {
    wrong.push_back(good);
    char& byte = wrong.back()[random() % good.size()];
    byte = static_cast<char>(byte ^ 1 << random() % 8);
  }
  for (const size_t bytes :
       {size_t{5}, size_t{100}, size_t{4096}, good.size() / 2, good.size() - 4096, good.size() - 1})
    wrong.push_back(good.substr(0, bytes));
  for (size_t i = 0; i < wrong.size(); ++i) {
    CAPTURE(i);
    const std::string library = folder.write("wrong.so", wrong[i]);
    std::vector<std::vector<std::string>> list = commands(library);
    if (i % 5) list = {list[i % list.size()]};
    for (const auto& words : list) {
      const CliResult r = cli(words);
      CAPTURE(words[0]);
      // A file whose first bytes are wrong is refused as no library at all.
      const bool none = !has(r.err, "is damaged") && !has(r.out, "is damaged");
      CHECK_MESSAGE(r.code == (none ? kExitUser : kExitDamaged), r.out << r.err);
    }
  }
}

TEST_CASE("--no-check takes a library as it is") {
  const TestFolder folder;
  REQUIRE(cli({"compile", kDigits, "-o", folder / "digits.so"}).code == kExitOk);
  // Code and data are intact: nothing reads the added bytes.
  const std::string longer = folder.write("longer.so", slurp(folder / "digits.so") + "more");
  for (std::vector<std::string> words : commands(longer)) {
    const CliResult refused = cli(words);
    CHECK(refused.code == kExitDamaged);
    CHECK(has(refused.err, "longer.so' is damaged: its bytes are not those that were written"));
    CHECK(has(refused.err, "--no-check"));
    words.push_back("--no-check");
    const CliResult taken = cli(words);
    CHECK_MESSAGE(taken.code == kExitOk, taken.err);
  }
}
