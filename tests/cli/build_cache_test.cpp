#include <doctest/doctest.h>

#include "cli_test_util.h"
#include "driver/compile/compile_cache.h"

using namespace tw;
namespace fs = std::filesystem;

namespace {

const std::string kModel = std::string(TW_SOURCE_DIR) + "/examples/digits/digits.onnx";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> entries(const std::string& folder, const char* ending = ".build") {
  std::vector<std::string> files;
  for (const auto& file : fs::recursive_directory_iterator(folder))
    if (file.is_regular_file() && file.path().extension() == ending)
      files.push_back(file.path().string());
  return files;
}

struct Caching {
  TestFolder folder;
  std::string model = folder.write("m.onnx", slurp(kModel)), cache = folder / "cache",
              target = "x86-64-v2";
  CliResult compile(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"compile", model, "-t", target, "-o", folder / "m.so"};
    words.insert(words.end(), {"--cache", cache});
    words.insert(words.end(), more.begin(), more.end());
    return cli(words);
  }
  bool cached(const std::vector<std::string>& more = {}) const {
    const CliResult r = compile(more);
    CHECK(r.code == kExitOk);
    return has(r.out, ", from the cache\n");
  }
};

}  // namespace

TEST_CASE("cache: the second compile is the first one's bytes, and loads") {
  const Caching place;
  CHECK(!place.cached());
  const std::string library = slurp(place.folder / "m.so"), header = slurp(place.folder / "m.h");
  fs::remove(place.folder / "m.so");
  fs::remove(place.folder / "m.h");
  CHECK(place.cached());
  CHECK(slurp(place.folder / "m.so") == library);
  CHECK(slurp(place.folder / "m.h") == header);
  CHECK(cli({"run", place.folder / "m.so", "--random", "1"}).code == kExitOk);
  const CliResult json = place.compile({"--json"});
  CHECK(has(json.out, "\"cached\": true"));
  CHECK(has(json.out, "\"arena_bytes\""));
}

TEST_CASE("cache: whatever changes the bytes is another entry") {
  Caching place;
  CHECK(!place.cached());
  CHECK(!place.cached({"--name", "other"}));
  CHECK(!place.cached({"--max-weight-growth", "1"}));
  CHECK(!place.cached({"--optimize", "size"}));
  place.target = "x86-64-v3";
  CHECK(!place.cached());
  place.target = "x86-64-v2";
  place.folder.write("m.onnx", slurp(kModel) + std::string("\x72\x08\x0a\x03key\x12\x01v", 10));
  CHECK(!place.cached());
  CHECK(place.cached());
  place.folder.write("m.onnx", slurp(kModel));
  CHECK(place.cached());
  CHECK(entries(place.cache).size() == 6);
}

TEST_CASE("cache: what leaves the bytes alone is the same entry") {
  const Caching place;
  CHECK(!place.cached());
  CHECK(place.cached({"--jobs", "1", "--verify-each", "--depfile", place.folder / "m.d", "--budget",
                      "none", "--header", place.folder / "m.h"}));
}

TEST_CASE("cache: a damaged entry is removed and compiled anew, a budget is held all the same") {
  const Caching place;
  CHECK(!place.cached());
  const std::string entry = entries(place.cache).at(0);
  std::string bytes = slurp(entry);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(entry, std::ios::binary) << bytes;
  CHECK(!place.cached());
  CHECK(place.cached());
  const CliResult over = place.compile(
      {"--budget", place.folder.write("b.yaml", "budget: {artifact_bytes: 1}\n")});
  CHECK(over.code == kExitBudget);
  CHECK(has(over.out, "from the cache"));
  CHECK(!fs::exists(place.folder / "m.so"));
}

TEST_CASE("cache: what was used longest ago goes first") {
  const TestFolder folder;
  const CompileCache cache(folder / "c", 2500);
  const auto key = [](char c) { return std::string(64, c); };
  const CachedBuild build{std::string(900, 'x'), "h", "{}", ""};
  for (const char c : {'a', 'b'}) REQUIRE(!cache.add(key(c), build));
  const auto old = [&](char c) {
    return folder / "c/" + std::string(2, c) + "/" + key(c) + ".build";
  };
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(old('a'), now - std::chrono::hours(1));
  fs::last_write_time(old('b'), now - std::chrono::hours(2));
  REQUIRE(cache.find(key('b')));  // now the most recently used
  REQUIRE(!cache.add(key('d'), build));
  CHECK(!cache.find(key('a')));
  CHECK(cache.find(key('b')));
  CHECK(cache.find(key('d')));
}

TEST_CASE("cache: what it cannot keep, and sizes that are none, are said") {
  Caching place;
  const CliResult size = place.compile({"--cache-size", "much"});
  CHECK(size.code == kExitUser);
  CHECK(has(size.err, "a size such as 500MiB"));
  CHECK(has(size.err, "--cache-size 'much'"));
  ::setenv("TILEWRIGHT_CACHE_SIZE", "plenty", 1);
  const CliResult variable = place.compile();
  ::unsetenv("TILEWRIGHT_CACHE_SIZE");
  CHECK(variable.code == kExitUser);
  CHECK(has(variable.err, "TILEWRIGHT_CACHE_SIZE 'plenty'"));
  const CliResult texts = place.compile({"--time-passes"});
  CHECK(texts.code == kExitOk);
  CHECK(has(texts.err, "not cached: texts are printed"));
  place.cache = place.folder.write("file", "") + "/cache";
  const CliResult no_folder = place.compile();
  CHECK(no_folder.code == kExitOk);
  CHECK(has(no_folder.err, "warning: cannot make the cache's folder"));
}

TEST_CASE("cache: objects of kernels serve other compiles, whose bytes do not tell") {
  const Caching place;
  const auto taken = [&](const std::string& name, bool by_cache) {
    std::vector<std::string> words = {"compile", place.model,          "-t", place.target, "--json",
                                      "-o",      place.folder / "m.so"};
    words.insert(words.end(), {"--name", name});
    if (by_cache) words.insert(words.end(), {"--cache", place.cache});
    const CliResult r = cli(words);
    REQUIRE_MESSAGE(r.code == kExitOk, r.err);
    Expected<Json> told = parse_json(r.out, "out");
    REQUIRE(bool(told));
    CHECK((*told)["cached"].boolean() == nullptr);
    return std::pair((*told)["cached_kernels"].integer_or(-1), (*told)["kernels"].integer_or(-1));
  };
  CHECK(taken("one", true).first == 0);
  const auto [known, all] = taken("two", true);  // another name is another library
  CHECK(known == all);
  const std::string library = slurp(place.folder / "m.so");
  CHECK(taken("two", false).first == 0);
  CHECK(slurp(place.folder / "m.so") == library);
  for (const std::string& file : entries(place.cache, ".object"))  // damaged: they are made anew
    std::ofstream(file, std::ios::app) << "x";
  CHECK(taken("three", true).first == 0);
  CHECK(cli({"run", place.folder / "m.so", "--random", "1"}).code == kExitOk);
  const CliResult other = cli({"compile", place.model, "-t", "x86-64-v3", "--json", "-o",
                               place.folder / "m.so", "--cache", place.cache});
  CHECK(has(other.out, "\"cached_kernels\": 0"));
}
