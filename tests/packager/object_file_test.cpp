// Objects that programs link: names, sizes, bytes, and runs of two of them in one program.
#include "packager/object_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "packager/artifact.h"
#include "packager/elf_view.h"
#include "packager/llvm_object.h"
#include "packager/loaded_model.h"
#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

tw::ObjectRequest object_request(const std::string& file, const std::string& name = "fake") {
  tw::LinkRequest library = fake_request(file, name);
  tw::ObjectRequest request;
  request.objects = library.objects;
  request.exports = {library.exports.front()};
  request.manifest = *library.manifest;
  request.weight_bytes = 4 * sizeof(float);
  return request;
}

tw::LinkedObject linked(const tw::ObjectRequest& request) {
  const float weights[] = {100, 200, 300, 400};
  auto object = tw::link_object(request, [&](std::span<std::byte> to) {
    std::memcpy(to.data(), weights, to.size());
    return tw::Error::success();
  });
  if (!object) FAIL(tw::error_text(object.takeError()));
  return std::move(*object);
}

std::string error_of(const tw::ObjectRequest& request) {
  auto object = tw::link_object(request, [](std::span<std::byte>) { return tw::Error::success(); });
  return object ? "no error" : tw::error_text(object.takeError());
}

}  // namespace

TEST_CASE("an object defines one name, takes only allowed ones, and is the same twice") {
  for (const char* machine : {"x86_64", "aarch64", "riscv64", "armv7"}) {
    CAPTURE(machine);
    const tw::ObjectRequest request = object_request(std::string("fake.") + machine);
    const tw::LinkedObject object = linked(request);
    CHECK(object.bytes == linked(request).bytes);
    auto view = tw::ElfView::parse(object.bytes, "fake.o");
    REQUIRE(bool(view));
    auto symbols = view->global_symbols();
    REQUIRE(bool(symbols));
    int defined = 0;
    for (const tw::ElfSymbol& s : *symbols) {
      if (s.defined) CHECK(s.name == "tw_fake_query");
      else
        CHECK_MESSAGE((s.name == "__ehdr_start" || tw::undefined_symbol_allowed(s.name, s.weak)),
                      std::string(s.name));
      defined += s.defined;
    }
    CHECK(defined == 1);
    CHECK(object.sizes.code > 1000);
    CHECK(object.sizes.constants > 16);
    auto archive = tw::archive_of("fake.o", object.bytes);
    REQUIRE(bool(archive));
    auto member = tw::archive_member(*archive, "fake.a");
    REQUIRE(bool(member));
    CHECK(*member == object.bytes);
  }
}

TEST_CASE("two objects in one program run, and their manifests can be read") {
  const ScratchDir dir;
  for (const char* name : {"fake", "other"}) {
    const std::string file = std::string(name) + ".x86_64";
    auto archive = tw::archive_of(std::string(name) + ".o",
                                  linked(object_request(file, name)).bytes);
    REQUIRE(bool(archive));
    const std::string path = dir / (std::string(name) + ".a");
    REQUIRE(!tw::write_file(path, *archive));
    auto manifest = tw::read_manifest(path);
    if (!manifest) FAIL(tw::error_text(manifest.takeError()));
    CHECK(*manifest == "{\"model\": \"" + std::string(name) + "\"}");
    auto loaded = tw::LoadedModel::open(path);
    REQUIRE(!loaded);
    CHECK(tw::error_text(loaded.takeError()).find("an object for a program to link") !=
          std::string::npos);
  }
  REQUIRE(!tw::write_file(
      dir / "main.c",
      "#include \"runtime/tilewright.h\"\n"
      "const tw_api* tw_fake_query(uint32_t);\nconst tw_api* tw_other_query(uint32_t);\n"
      "int main(void) {\n"
      "  const tw_api *a = tw_fake_query(1), *b = tw_other_query(1);\n"
      "  tw_context *x = 0, *y = 0;\n"
      "  return a == b || a->create(0, &x) || b->create(0, &y) ||\n"
      "         a->check_integrity() != TW_E_UNSUPPORTED;\n}\n"));
  const CommandResult built = run_command(
      "cd " + dir.path() + " && cc -I " TW_SOURCE_DIR " main.c fake.a other.a -o main && ./main");
  INFO(built.output);
  CHECK(built.status == 0);
}

TEST_CASE("what an object may not be is said") {
  tw::ObjectRequest request = object_request("fake.x86_64");
  request.freestanding = true;
  const std::string text = error_of(request);
  CHECK(text.find("'mmap', which a freestanding object may not take") != std::string::npos);
  CHECK(text.find("'syscall', which") != std::string::npos);
  request.freestanding = false;
  request.weight_bytes = uint64_t{1} << 31;
  CHECK(error_of(request).find("--emit so takes them") != std::string::npos);
  request.exports = {"tw_missing_query"};
  CHECK(error_of(request).find("tw_missing_query") != std::string::npos);
}

TEST_CASE("a damaged archive is an error") {
  const std::string archive = *tw::archive_of("a.o", std::string(1000, 'x'));
  for (size_t size = 0; size < archive.size(); size += 7) {
    auto member = tw::archive_member(std::string_view(archive).substr(0, size), "a.a");
    if (member) continue;
    CHECK(tw::error_text(member.takeError()).find("a.a") != std::string::npos);
  }
}
