// Linking, grafting and reading back: the file's form, failures and bytes.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "packager/artifact.h"
#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/loaded_library.h"
#include "packager/loaded_model.h"
#include "tests/packager/fake_artifact.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <class T>
std::string error_of(llvm::Expected<T> value) {
  if (value) return "no error";
  return tw::error_text(value.takeError());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an artifact needs nothing, exports two symbols and takes only allowed ones") {
  const ScratchDir dir;
  for (const char* machine : {"x86_64", "aarch64", "riscv64", "armv7"}) {
    CAPTURE(machine);
    write_fake(dir / "fake.so", std::string("fake.") + machine);
    const std::string bytes = read(dir / "fake.so");
    auto view = tw::ElfView::parse(bytes, "fake.so");
    REQUIRE(bool(view));
    auto symbols = view->dynamic_symbols();
    REQUIRE(bool(symbols));
    int defined = 0;
    for (const tw::ElfSymbol& s : *symbols) {
      if (s.defined) CHECK((s.name == "tw_fake_query" || s.name == "tw_query"));
      else CHECK_MESSAGE(tw::undefined_symbol_allowed(s.name, s.weak), std::string(s.name));
      defined += s.defined;
    }
    CHECK(defined == 2);
    const tw::ElfSection* weights = view->section(".tw_weights");
    REQUIRE(weights);
    CHECK(weights->size == 16);
    CHECK(weights->offset % 65536 == 0);
    CHECK(weights->address % 65536 == 0);
    CHECK(llvm::cantFail(tw::read_manifest(dir / "fake.so")) == "{\"model\": \"fake\"}");
  }
  const CommandResult dynamic = run_command("readelf -dW " + (dir / "fake.so"));
  if (dynamic.status == 0) CHECK(!contains(dynamic.output, "NEEDED"));
  else MESSAGE("skipped: no readelf");
}

TEST_CASE("large weights lie so that the system can map them by huge pages") {
  const ScratchDir dir;
  write_fake(dir / "small.so", "fake.x86_64", "fake", std::vector<float>(tw::kHugePage, 1.0f));
  CHECK(read(dir / "small.so").size() < 4 * tw::kHugePage + 4 * tw::kWeightsAlignment);  // no gap
  write_fake(dir / "large.so", "fake.x86_64", "fake",
             std::vector<float>(tw::kLargeWeights / sizeof(float), 1.0f));
  const std::string bytes = read(dir / "large.so");
  auto view = tw::ElfView::parse(bytes, "large.so");
  REQUIRE(bool(view));
  const tw::ElfSection* weights = view->section(".tw_weights");
  REQUIRE(weights);
  CHECK(weights->offset % tw::kWeightsAlignment == 0);
  CHECK(weights->offset < 4 * tw::kWeightsAlignment);  // no gap
  CHECK(weights->address % tw::kHugePage == weights->offset % tw::kHugePage);
  const auto is_theirs = [&](const tw::ElfSegment& s) { return s.offset == weights->offset; };
  const auto segment = std::ranges::find_if(view->segments(), is_theirs);
  REQUIRE(segment != view->segments().end());
  CHECK(segment->address == weights->address);
  const tw::ElfSection* distance = view->section(".tw_offset");
  REQUIRE(distance);
  int64_t written = 0;
  std::memcpy(&written, view->contents(*distance).data(), sizeof written);
  CHECK(written == static_cast<int64_t>(weights->address - distance->address));
  write_fake(dir / "larger.so", "fake.x86_64", "fake",
             std::vector<float>(tw::kAlignedWeights / sizeof(float), 1.0f));
  const std::string larger = read(dir / "larger.so");
  view = tw::ElfView::parse(larger, "larger.so");
  REQUIRE(bool(view));
  weights = view->section(".tw_weights");
  REQUIRE(weights);
  CHECK(weights->offset == tw::kHugePage);
  CHECK(weights->address % tw::kHugePage == 0);
}

TEST_CASE("the same request gives the same bytes, anywhere and on any thread") {
  const ScratchDir dir;
  const tw::LinkRequest request = fake_request("fake.x86_64");
  auto first = tw::link_shared(request);
  REQUIRE(bool(first));
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        auto again = tw::link_shared(request);
        if (again && again->bytes == first->bytes) ++same[t];
        else if (!again) llvm::consumeError(again.takeError());
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(same == std::vector<int>(4, 5));
  CHECK(dir.files() == 0);
  std::filesystem::create_directory(dir / "sub");
  write_fake(dir / "fake.so", "fake.x86_64");
  write_fake(dir / "sub/fake.so", "fake.x86_64");
  CHECK(read(dir / "fake.so") == read(dir / "sub/fake.so"));
  CHECK(!contains(read(dir / "fake.so"), dir.path()));
  CHECK(!contains(read(dir / "fake.so"), TW_SOURCE_DIR));
}

TEST_CASE("wrong symbols are named") {
  tw::LinkRequest request = fake_request("fake.x86_64");
  request.exports = {"tw_fake_query", "tw_query", "tw_missing"};
  CHECK(error_of(tw::link_shared(request)) ==
        "no object defines 'tw_missing', which the library is to export");
  request.exports = {};
  CHECK(error_of(tw::link_shared(request)) ==
        "the library would export 'tw_fake_query', which is not part of its interface\n"
        "the library would export 'tw_query', which is not part of its interface");
  request = fake_request("fake.x86_64");
  request.manifest.reset();  // then nothing defines the hidden tw_manifest
  CHECK(contains(error_of(tw::link_shared(request)), "tw_manifest"));
  request.objects = {"not an object"};
  CHECK(contains(error_of(tw::link_shared(request)), "linking failed"));
  CHECK(tw::undefined_symbol_allowed("memcpy", false));
  CHECK(!tw::undefined_symbol_allowed("expf", false));
  CHECK(!tw::undefined_symbol_allowed("pthread_create", false));
}

TEST_CASE("a library without a manifest links too: tuning candidates") {
  const ScratchDir dir;
  tw::write_file(dir / "k.c",
                 "extern float expf(float);\nfloat good(float x) { return x + 1; }\n"
                 "#ifdef BAD\nfloat bad(float x) { return expf(x); }\n#endif\n")
      .
      operator bool();
  REQUIRE(run_command("cd " + dir.path() +
                      " && " TW_CLANG " -O1 -fPIC -c k.c -o good.o && " TW_CLANG
                      " -DBAD -O1 -fPIC -c k.c -o bad.o")
              .status == 0);
  tw::LinkRequest request;
  request.objects = {read(dir / "good.o")};
  request.exports = {"good"};
  auto image = tw::link_shared(request);
  REQUIRE(bool(image));
  auto first = tw::LoadedLibrary::load(*image), second = tw::LoadedLibrary::load(*image);
  REQUIRE(bool(first));
  REQUIRE(bool(second));
  CHECK(first->symbol("good") != second->symbol("good"));  // equal libraries stay apart in memory
  CHECK(reinterpret_cast<float (*)(float)>(first->symbol("good"))(2) == 3);
  CHECK(error_of(tw::LoadedLibrary::load({"junk"})).find("cannot load a library from memory") == 0);
  request.objects = {read(dir / "bad.o")};
  request.exports = {"good", "bad"};
  CHECK(error_of(tw::link_shared(request)) ==
        "the generated code needs 'expf', which a library may not take from the program that loads "
        "it");
}

TEST_CASE("weights land where the code looks, from any writer") {
  const ScratchDir dir;
  auto image = tw::link_shared(fake_request("fake.x86_64"));
  REQUIRE(bool(image));
  const uint64_t size = 3 << 20;
  std::string expected(size, '\0');
  std::mt19937 random(7);
  for (char& c : expected) c = static_cast<char>(random());
  auto writer = tw::ArtifactWriter::create(dir / "w.so", *image, size);
  REQUIRE(bool(writer));
  CHECK(!std::filesystem::exists(dir / "w.so"));
  const uint64_t cuts[] = {0, 64, 70000, 1 << 20, size};
  for (int i = 3; i >= 0; --i) {
    const std::string_view piece = std::string_view(expected).substr(cuts[i],
                                                                     cuts[i + 1] - cuts[i]);
    tw::Error error = i % 2 ? writer->write(cuts[i], piece)
                            : writer->fill(cuts[i], piece.size(), [&](std::span<std::byte> to) {
                                std::memcpy(to.data(), piece.data(), piece.size());
                                return tw::Error::success();
                              });
    CHECK(!error);
  }
  CHECK(!writer->finish());
  const std::string bytes = read(dir / "w.so");
  auto view = tw::ElfView::parse(bytes, "w.so");
  REQUIRE(bool(view));
  CHECK(view->contents(*view->section(".tw_weights")) == expected);
  CHECK((std::filesystem::status(dir / "w.so").permissions() &
         std::filesystem::perms::owner_exec) != std::filesystem::perms::none);
  const std::string stripped = "cp " + (dir / "w.so") + " " + (dir / "s.so") + " && strip " +
                               (dir / "s.so");
  if (run_command("strip --version").status == 0) {
    CHECK(run_command(stripped).status == 0);
    // The bytes differ, although they mean the same.
    CHECK(contains(error_of(tw::LoadedModel::open(dir / "s.so")), "is damaged"));
    CHECK(bool(tw::LoadedModel::open(dir / "s.so", tw::Integrity::trust)));
    const std::string small = read(dir / "s.so");
    auto stripped_view = tw::ElfView::parse(small, "s.so");
    REQUIRE(bool(stripped_view));
    CHECK(stripped_view->contents(*stripped_view->section(".tw_weights")) == expected);
  }
}

TEST_CASE("a failed write leaves no file behind") {
  const ScratchDir dir;
  auto image = tw::link_shared(fake_request("fake.x86_64"));
  REQUIRE(bool(image));
  CHECK(error_of(tw::ArtifactWriter::create(dir / "no/such/dir/m.so", *image, 64)) ==
        "cannot write '" + (dir / "no/such/dir/m.so") + "': No such file or directory");
  {  // given up half-way
    auto writer = tw::ArtifactWriter::create(dir / "m.so", *image, 64);
    REQUIRE(bool(writer));
    CHECK(dir.files() == 0);  // the file has no name yet
  }
  CHECK(dir.files() == 0);
  {  // here the unfinished file needs a name
    auto file = tw::OutputFile::create(dir / "m.h", 3, false, true);
    REQUIRE(bool(file));
    CHECK(dir.files() == 1);
    CHECK(!file->write(0, "abc"));
    CHECK(!file->commit());
    CHECK(read(dir / "m.h") == "abc");
    auto given_up = tw::OutputFile::create(dir / "n.h", 3, false, true);
    REQUIRE(bool(given_up));
    CHECK(dir.files() == 2);
  }
  std::filesystem::remove(dir / "m.h");
  CHECK(dir.files() == 0);
  {  // an error in a packing step passes through
    auto writer = tw::ArtifactWriter::create(dir / "m.so", *image, 64);
    REQUIRE(bool(writer));
    tw::Error error = writer->fill(0, 64, [](std::span<std::byte>) {
      return tw::make_error(tw::DiagCode::limit, "too much");
    });
    CHECK(tw::error_text(std::move(error)) == "too much");
  }
  CHECK(dir.files() == 0);
  std::filesystem::create_directory(dir / "taken.so");  // the name belongs to a directory
  auto writer = tw::ArtifactWriter::create(dir / "taken.so", *image, 64);
  REQUIRE(bool(writer));
  CHECK(contains(tw::error_text(writer->finish()), "Is a directory"));
  CHECK(dir.files() == 1);
}

TEST_CASE("a full disk is an error before any weight is made") {
  const ScratchDir dir;
  auto image = tw::link_shared(fake_request("fake.x86_64"));
  REQUIRE(bool(image));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string limited = error_of(tw::ArtifactWriter::create(dir / "m.so", *image, 4 << 20));
  const std::string huge = error_of(
      tw::ArtifactWriter::create(dir / "m.so", *image, UINT64_MAX / 2));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(limited == "cannot write '" + (dir / "m.so") + "': File too large");
  CHECK(contains(huge, "too many bytes"));
  CHECK(dir.files() == 0);
  if (run_command("mount -t tmpfs -o size=1m tmpfs " + dir.path()).status != 0) {
    MESSAGE("skipped: no right to mount a small file system");
    return;
  }
  const std::string full = error_of(tw::ArtifactWriter::create(dir / "m.so", *image, 4 << 20));
  CHECK(full == "cannot write '" + (dir / "m.so") + "': No space left on device");
  CHECK(dir.files() == 0);
  run_command("umount " + dir.path());
}

TEST_CASE("a directory without the right to write is an error") {
  const ScratchDir dir;
  REQUIRE(run_command("cd " + dir.path() + " && mkdir locked && chmod 555 locked").status == 0);
  const pid_t child = fork();
  if (child == 0) {  // root may write everywhere, so become nobody
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    _exit(contains(tw::error_text(tw::write_file(dir / "locked/x.h", "text")), "Permission denied")
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("damaged files are errors and nothing worse") {
  const ScratchDir dir;
  write_fake(dir / "fake.so", "fake.x86_64");
  const std::string good = read(dir / "fake.so");
  CHECK(contains(error_of(tw::read_manifest(dir / "none.so")), "cannot read"));
  CHECK(contains(error_of(tw::LoadedModel::open(dir / "none.so")), "cannot read"));
  const auto probe = [&](const std::string& bytes) {
    auto view = tw::ElfView::parse(bytes, "probe");
    if (!view) return llvm::consumeError(view.takeError());
    for (const tw::ElfSection& s : view->sections()) (void)view->contents(s);
    (void)view->note("tilewright", tw::kManifestNote);
    CHECK(bool(tw::check_integrity(*view, bytes, "probe")) == (bytes != good));
    auto symbols = view->dynamic_symbols();
    if (!symbols) llvm::consumeError(symbols.takeError());
  };
  for (size_t n : {0, 3, 16, 63, 64, 100, 500, 4000}) probe(good.substr(0, n));
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {  // the headers, tables and the note lie in front
    std::string bytes = good.substr(0, 20000);
    for (int k = 0; k < 4; ++k)
      bytes[random() % (round % 2 ? 700 : bytes.size())] = static_cast<char>(random());
    probe(bytes);
  }
  CHECK(!tw::write_file(dir / "text.so", "hello"));
  CHECK(error_of(tw::read_manifest(dir / "text.so")) ==
        "'" + (dir / "text.so") + "' is not an ELF file");
  CHECK(contains(error_of(tw::LoadedModel::open(TW_CLANG)), "is not a library of this Tilewright"));
  CHECK(contains(error_of(tw::read_manifest(TW_CLANG)), "it has no manifest"));
}

TEST_CASE("a processor that lacks a feature is told, not crashed") {
  const ScratchDir dir;
  write_fake(dir / "lacking.so", "lacking.x86_64");
  CHECK(contains(error_of(tw::LoadedModel::open(dir / "lacking.so")),
                 "the processor lacks an instruction set"));
}
