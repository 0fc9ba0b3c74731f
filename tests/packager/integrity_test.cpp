// The hashes in an artifact find any changed byte and any missing one, in the file and in mapped
// memory.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <llvm/Support/BLAKE3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "packager/artifact.h"
#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/loaded_library.h"
#include "packager/loaded_model.h"
#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string artifact(const ScratchDir& dir, const std::string& file = "fake.x86_64",
                     size_t weights = 5000) {
  write_fake(dir / "fake.so", file, "fake", std::vector<float>(weights, 3.0f));
  return read(dir / "fake.so");
}

bool accepted(std::string_view bytes) {
  auto view = tw::ElfView::parse(bytes, "probe");
  if (!view) {
    llvm::consumeError(view.takeError());
    return false;
  }
  tw::Error error = tw::check_integrity(*view, bytes, "probe");
  const bool good = !error;
  llvm::consumeError(std::move(error));
  return good;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns the result of check_integrity for a library of these bytes, in a process of its own; -1:
// it does not load, -2: the process dies.
int mapped_status(const std::string& path, const std::string& bytes) {
  REQUIRE(!tw::write_file(path, bytes));
  const pid_t child = ::fork();
  if (child == 0) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto query = handle ? reinterpret_cast<tw_query_fn>(::dlsym(handle, "tw_fake_query"))
                              : nullptr;
    ::_exit(query ? query(TW_ABI_VERSION)->check_integrity() : 255);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return -2;
  return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

tw::ElfSection section_of(const std::string& bytes, const char* name) {
  auto view = tw::ElfView::parse(bytes, "fake.so");
  REQUIRE(bool(view));
  REQUIRE(view->section(name));
  return *view->section(name);
}

}  // namespace

TEST_CASE("every bit of an artifact counts") {
  const ScratchDir dir;
  for (const char* machine : {"x86_64", "aarch64", "riscv64", "armv7"}) {
    CAPTURE(machine);
    std::string bytes = artifact(dir, std::string("fake.") + machine, 100);
    REQUIRE(accepted(bytes));
    std::mt19937 random(3);
    int wrong = 0;
    const size_t step = std::strcmp(machine, "x86_64") == 0 ? 1 : 31;
    // The first 1024 bytes, with the headers and the note, are tried bit by bit.
    for (size_t i = 0; i < bytes.size(); i += i < 1024 ? 1 : step) {
      const int first = i < 1024 ? 0 : static_cast<int>(random() % 8), last = i < 1024 ? 7 : first;
      for (int bit = first; bit <= last; ++bit) {
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        wrong += accepted(bytes);
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      }
    }
    CHECK(wrong == 0);
    CHECK(accepted(bytes));
    CHECK(!accepted(bytes + '\0'));
  }
}

TEST_CASE("an artifact of any other length is refused") {
  const ScratchDir dir;
  const std::string bytes = artifact(dir);
  int wrong = 0;
  for (size_t n = 0; n < bytes.size(); n += n < 4096 || n + 100 > bytes.size() ? 1 : 97)
    wrong += accepted(std::string_view(bytes).substr(0, n));
  CHECK(wrong == 0);
  REQUIRE(!tw::write_file(dir / "short.so", bytes.substr(0, bytes.size() - 1)));
  auto opened = tw::LoadedModel::open(dir / "short.so");
  REQUIRE(!opened);
  const std::string error = tw::error_text(opened.takeError());
  CHECK(contains(error, "short.so' is damaged: it has " + std::to_string(bytes.size() - 1) +
                            " bytes, and a segment"));
  auto manifest = tw::read_manifest(dir / "short.so");
  CHECK(!manifest);
  llvm::consumeError(manifest.takeError());
}

TEST_CASE("the hashes are part of the reproducible bytes") {
  const ScratchDir dir;
  const std::string first = artifact(dir), second = artifact(dir);
  CHECK(first == second);
  auto view = tw::ElfView::parse(first, "fake.so");
  REQUIRE(bool(view));
  const std::string_view note = view->note(tw::kNoteOwner, tw::kHashNote);
  REQUIRE(note.size() == 64);
  CHECK(note.substr(0, 32) != std::string(32, '\0'));
  CHECK(note.substr(32) != std::string(32, '\0'));
}

TEST_CASE("a loaded library finds what is wrong with it, and a missing end does not kill it") {
  const ScratchDir dir;
  const std::string good = artifact(dir), path = dir / "probe.so";
  CHECK(mapped_status(path, good) == TW_OK);
  for (const char* name : {".tw_weights", ".rodata", ".text", ".note.tilewright"}) {
    CAPTURE(name);
    const tw::ElfSection section = section_of(good, name);
    std::string bytes = good;
    // The changed code is a kernel that nothing calls here, as the code that checks must be intact.
    // The note ends with the manifest.
    char& byte = bytes[std::strcmp(name, ".text") == 0 ? section.offset + 8
                                                       : section.offset + section.size - 8];
    byte = static_cast<char>(byte ^ 4);
    CHECK(mapped_status(path, bytes) == TW_E_DAMAGED);
  }
  const tw::ElfSection weights = section_of(good, ".tw_weights");
  REQUIRE(weights.size == 20000);
  // Some pages are missing.
  CHECK(mapped_status(path, good.substr(0, weights.offset)) == TW_E_DAMAGED);
  CHECK(mapped_status(path, good.substr(0, weights.offset + 5000)) == TW_E_DAMAGED);
  // The end of the last page reads as zeros.
  CHECK(mapped_status(path, good.substr(0, weights.offset + 19999)) == TW_E_DAMAGED);
}

TEST_CASE("the runtime's hash is BLAKE3") {
  const ScratchDir dir;
  const char* const source =
      "#include \"runtime/hash.c\"\n"
      "__attribute__((visibility(\"default\"))) void hash(const uint8_t* data, size_t bytes, "
      "size_t piece, uint8_t* out) {\n"
      "  tw_hasher h;\n"
      "  tw_hash_begin(&h);\n"
      "  for (size_t at = 0; at < bytes; at += piece) tw_hash_add(&h, data + at, bytes - at < "
      "piece ? bytes - at : piece);\n"
      "  tw_hash_end(&h, out);\n"
      "}\n";
  REQUIRE(!tw::write_file(dir / "h.c", source));
  const CommandResult built = run_command(
      "cd " + dir.path() +
      " && " TW_CLANG " -O2 -ffreestanding -fPIC -fvisibility=hidden -c h.c -I " TW_SOURCE_DIR);
  INFO(built.output);
  REQUIRE(built.status == 0);
  tw::LinkRequest request;
  request.objects = {read(dir / "h.o")};
  request.exports = {"hash"};
  auto image = tw::link_shared(request);
  if (!image) FAIL(tw::error_text(image.takeError()));
  auto library = tw::LoadedLibrary::load(*image);
  REQUIRE(bool(library));
  const auto hash = reinterpret_cast<void (*)(const uint8_t*, size_t, size_t, uint8_t*)>(
      library->symbol("hash"));
  std::vector<uint8_t> data(200000);
  std::mt19937 random(5);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  for (size_t bytes : {0,    1,    63,   64,   65,   1023,  1024,  1025,  2048,  3072,   4095,
                       4096, 4097, 5120, 8192, 8193, 12288, 16384, 20480, 31744, 102400, 199999})
    for (size_t piece : {1, 1000, 4096, 5000, 200000}) {
      CAPTURE(bytes);
      CAPTURE(piece);
      llvm::BLAKE3 reference;
      reference.update(llvm::ArrayRef(data).take_front(bytes));
      llvm::BLAKE3Result<> want, got;
      reference.final(want);
      hash(data.data(), bytes, piece, got.data());
      CHECK(want == got);
    }
}
