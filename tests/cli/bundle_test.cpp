// tilewright bundle and unbundle: parts and bytes, damage, and archives of other programs.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "packager/tar.h"
#include "support/hash.h"
#include "tests/cli/cli_test_util.h"

using namespace tw;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Replaces a field in the header of a tar archive, and mends its checksum.
std::string with_field(std::string archive, size_t at, const std::string& bytes) {
  archive.replace(at, bytes.size(), bytes);
  archive.replace(148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(archive[i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  archive.replace(148, 7, std::string(text) + '\0');
  return archive;
}

// Runs `unbundle` on the bytes. A refused archive leaves no file.
CliResult unbundled(const TestFolder& folder, const std::string& bytes) {
  const std::string file = folder.write("tried.tilewright", bytes), out = folder / "tried";
  CliResult r = cli({"unbundle", file, "-o", out});
  if (r.code != kExitOk) CHECK(!std::filesystem::exists(out));
  std::filesystem::remove_all(out);
  return r;
}

}  // namespace

TEST_CASE("a bundle has all parts, the same bytes each time, and comes apart as it was") {
  const TestFolder folder;
  const std::string library = folder / "d.so", file = folder / "d.tilewright";
  REQUIRE(cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-o", library}).code ==
          kExitOk);
  const std::string license = folder.write("terms.txt", "Do as you like.\n"),
                    lock = folder.write("tilewright.lock", "a lock\n");
  const CliResult r = cli({"bundle", library, "--license", license, "--lock", lock, "--json"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.out);
  Expected<Json> told = parse_json(r.out, "out");
  REQUIRE(bool(told));
  std::vector<std::string> names;
  for (const Json& part : (*told)["parts"].items()) names.push_back(part["name"].text_or_empty());
  CHECK(names == std::vector<std::string>{"d.so", "d.h", "LICENSE-Apache-2.0.txt",
                                          "LICENSE-runtime.txt", "LICENSE-model.txt",
                                          "sbom.cdx.json"});
  const std::string bytes = slurp(file);
  CHECK((*told)["sha256"].text_or_empty() == sha256_hex(bytes));
  REQUIRE(
      cli({"bundle", library, "--license", license, "--lock", lock, "-o", folder / "again"}).code ==
      kExitOk);
  CHECK(slurp(folder / "again") == bytes);

  const std::string out = folder / "out/deep";
  REQUIRE(cli({"unbundle", file, "-o", out}).code == kExitOk);
  CHECK(slurp(out + "/d.so") == slurp(library));
  CHECK(slurp(out + "/d.h") == slurp(folder / "d.h"));
  CHECK(slurp(out + "/LICENSE-model.txt") == "Do as you like.\n");
  CHECK(has(slurp(out + "/LICENSE-runtime.txt"), "LLVM Exceptions"));
  CHECK(cli({"run", out + "/d.so", "--random", "1"}).code == kExitOk);
  const CliResult twice = cli({"unbundle", file, "-o", out});
  CHECK(twice.code == kExitIo);
  CHECK(has(twice.err, "is there already"));

  Expected<Json> bill = parse_json(slurp(out + "/sbom.cdx.json"), "sbom");
  REQUIRE(bool(bill));
  CHECK((*bill)["bomFormat"].text_or_empty() == "CycloneDX");
  CHECK((*bill)["metadata"]["component"]["hashes"].items()[0]["content"].text_or_empty() ==
        sha256_hex(slurp(library)));
  CHECK((*bill)["components"].items()[0]["hashes"].items()[0]["content"].text_or_empty() ==
        sha256_hex(slurp(TW_SOURCE_DIR "/examples/digits/digits.onnx")));
  CHECK(has(slurp(out + "/sbom.cdx.json"), sha256_hex("a lock\n")));
  CHECK(has(slurp(out + "/sbom.cdx.json"), "see LICENSE-model.txt"));
  CHECK(cli({"verify", file}).code == kExitUser);
  CHECK(cli({"bundle", library, "-o", library}).code == kExitUser);
}

TEST_CASE("any change of a bundle is noticed, and nothing is taken from it") {
  const TestFolder folder;
  const std::string good = slurp(TW_SOURCE_DIR "/tests/fuzz/seeds/bundle/small.tilewright");
  REQUIRE(unbundled(folder, good).code == kExitOk);
  std::mt19937 random(4);
  for (size_t at = 0; at < good.size(); at += 1 + random() % 7) {
    CAPTURE(at);
    std::string wrong = good;
    wrong[at] = static_cast<char>(wrong[at] ^ 1 << random() % 8);
    CHECK(unbundled(folder, wrong).code == kExitDamaged);
  }
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, good.size() - 1024,
                             good.size() - 512, good.size() - 1})
    CHECK(unbundled(folder, good.substr(0, bytes)).code == kExitDamaged);
  CHECK(unbundled(folder, good + std::string(512, '\0')).code == kExitDamaged);
  std::string part = good;
  part[part.find("int x")] = 'u';
  const CliResult r = unbundled(folder, part);
  CHECK(has(r.out, "damaged"));
  CHECK(has(r.out, "m.h"));
  CHECK(has(r.err, "nothing was taken from '"));
}

TEST_CASE("hostile archives: paths, links, sizes, names, and too many members") {
  const TestFolder folder;
  const std::string good = slurp(TW_SOURCE_DIR "/tests/fuzz/seeds/bundle/small.tilewright");
  const struct {
    const char* what;
    std::string bytes, message;
  } attacks[] = {
      {"a path upwards", with_field(good, 0, std::string("../bundle.j\0", 12)), "its name"},
      {"an absolute path", with_field(good, 0, std::string("/tmp/x.json\0", 12)), "its name"},
      {"a hidden file", with_field(good, 0, std::string(".bashrc\0\0\0\0", 11)), "its name"},
      {"an option", with_field(good, 0, std::string("--help\0\0\0\0\0", 11)), "its name"},
      {"no name", with_field(good, 0, std::string(11, '\0')), "does not end"},
      {"an escape sequence", with_field(good, 0, "\033[2Jx"), "its name"},
      {"a name without an end", with_field(good, 0, std::string(100, 'a')), "99 characters"},
      {"a symbolic link", with_field(good, 156, "2"), "a symbolic link"},
      {"a hard link", with_field(good, 156, "1"), "a hard link"},
      {"a folder", with_field(good, 156, "5"), "a folder"},
      {"a device", with_field(good, 156, "3"), "a device"},
      {"a long name of GNU tar", with_field(good, 156, "L"), "unknown kind"},
      {"a prefix", with_field(good, 345, "/etc"), "not as 'bundle' writes it"},
      {"set-uid", with_field(good, 100, "0004755"), "not as 'bundle' writes it"},
      {"a size behind the end", with_field(good, 124, "77777777777"), "cut off"},
      {"a negative size", with_field(good, 124, "-0000000001"), "no number"},
      {"a size in base 256", with_field(good, 124, "\200\377\377\377"), "no number"}};
  for (const auto& attack : attacks) {
    CAPTURE(attack.what);
    const CliResult r = unbundled(folder, attack.bytes);
    CHECK(r.code == kExitDamaged);
    CHECK_MESSAGE(has(r.err, attack.message), r.err);
  }
  std::string many;
  for (int i = 0; i < 100; ++i) many += with_field(good, 124, "00000000000").substr(0, 512);
  CHECK(has(unbundled(folder, many + std::string(1024, '\0')).err, "more than 64"));
  CHECK(unbundled(folder, std::string(1024, '\0')).code == kExitDamaged);
}

TEST_CASE("parts of a bundle that a list agrees with, and that 'bundle' does not write") {
  const TestFolder folder;
  const auto archive = [&](const std::vector<TarMember>& parts) {
    Json::Array entries;
    for (const TarMember& part : parts)
      entries.push_back(Json::Object{
          {"name", part.name}, {"bytes", part.bytes.size()}, {"sha256", sha256_hex(part.bytes)}});
    Json::Object list{
        {"tilewright_bundle", 1}, {"name", "m"}, {"compiler", "1"}, {"parts", entries}};
    list.push_back({"sha256", sha256_hex(dump(list))});
    const std::string text = dump(list) + "\n";
    std::vector<TarMember> members{{"bundle.json", text}};
    members.insert(members.end(), parts.begin(), parts.end());
    const std::string path = folder / "made.tar";
    Expected<OutputFile> file = OutputFile::create(path, tar_bytes(members));
    REQUIRE(bool(file));
    REQUIRE(!write_tar(*file, members));
    REQUIRE(!file->commit());
    return slurp(path);
  };
  const TarMember library{"m.so", "so", true}, header{"m.h", "h"},
      apache{"LICENSE-Apache-2.0.txt", "a"};
  CHECK(unbundled(folder, archive({library, header, apache})).code == kExitOk);
  const struct {
    std::vector<TarMember> parts;
    std::string message;
  } attacks[] = {{{library, header, {"M.SO", "other"}}, "two of its parts are called 'm.so'"},
                 {{library, header, {"m.h", "h"}}, "two of its parts are called 'm.h'"},
                 {{library, header, {"Bundle.json", "h"}}, "two of its parts"},
                 {{library, {"m.h", "h", true}}, "'m.h' is no part"},
                 {{library, header, {"install.sh", "rm", true}}, "'install.sh' is no part"},
                 {{library, header, {"README", "text"}}, "'README' is no part"},
                 {{library, header, {"sbom.cdx.json", "b"}, apache}, "is no part"}};
  for (const auto& attack : attacks) {
    const CliResult r = unbundled(folder, archive(attack.parts));
    CHECK(r.code == kExitDamaged);
    CHECK_MESSAGE(has(r.err, attack.message), r.err);
  }
}

TEST_CASE("two parts of one name, and names that no bundle takes, are refused before any work") {
  const TestFolder folder;
  REQUIRE(cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-o", folder / "a b.so",
               "--name", "d"})
              .code == kExitOk);
  const CliResult r = cli({"bundle", folder / "a b.so"});
  CHECK(r.code == kExitUser);
  CHECK(has(r.err, "letters, digits"));
  std::filesystem::rename(folder / "a b.so", folder / "sbom.cdx.json");
  const CliResult twice = cli({"bundle", folder / "sbom.cdx.json", "--header",
                               folder.write("ok.h", "x"), "-o", folder / "x"});
  CHECK(twice.code == kExitUser);
  CHECK(!std::filesystem::exists(folder / "x"));
}
