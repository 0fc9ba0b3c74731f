// The OpenCL text of the kernels in tests/golden/opencl: NAME.tilewright is a kernel, NAME.cl its
// text (TW_UPDATE_GOLDEN=1 rewrites it).
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/opencl/opencl.h"
#include "frontend/frontend.h"
#include "tests/ir/parsed.h"

using namespace tw;

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Target generic() {
  Expected<Target> target = load_target("opencl-generic",
                                        {std::string(TW_SOURCE_DIR) + "/configs"});
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  return target->main_device();
}

std::string sizes(const std::array<Expr, 3>& list) {
  return to_string(list[0]) + ", " + to_string(list[1]) + ", " + to_string(list[2]);
}

// Returns the program, followed by a line for each launch.
std::string emitted(const std::string& text) {
  Expected<OpenClSource> source = emit_opencl(test::sound_kernel(text), generic(), "f");
  REQUIRE_MESSAGE(bool(source), error_text(source.takeError()));
  std::string out = opencl_program(std::span(&*source, 1));
  for (const OpenClLaunch& launch : source->launches)
    out += "// " + launch.function + ": global " + sizes(launch.global) + "; local " +
           sizes(launch.local) + "; " + std::to_string(launch.local_bytes) + " bytes shared\n";
  return out;
}

std::string refusal(const std::string& text) {
  Expected<OpenClSource> source = emit_opencl(test::sound_kernel(text), generic(), "f");
  REQUIRE(!source);
  return error_text(source.takeError());
}

bool says(const std::string& text, const char* what) {
  CAPTURE(text);
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("kernels as OpenCL C") {
  const char* update = std::getenv("TW_UPDATE_GOLDEN");
  int found = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TW_TEST_DIR) / "golden" / "opencl")) {
    if (entry.path().extension() != ".tilewright") continue;
    CAPTURE(entry.path().string());
    const std::string text = emitted(read_file(entry.path()));
    const fs::path golden = fs::path(entry.path()).replace_extension(".cl");
    if (update && *update == '1') std::ofstream(golden) << text;
    CHECK(read_file(golden) == text);
    ++found;
  }
  CHECK(found >= 3);
}

TEST_CASE("what has no OpenCL form is refused by name") {
  CHECK(says(refusal("kernel @k(y: out f32[4]) { tokens q for i in 4 bind block.x { signal q wait "
                     "q y: y[i] = 1 } }"),
             "tokens of 'q' that are not those of asynchronous copies"));
  CHECK(says(refusal("kernel @k(y: out f32[4]) { for i in 4 bind warp.x { y: y[i] = 1 } }"),
             "loop 'i' is bound to warp.x"));
  CHECK(says(refusal("kernel @k(y: out f32[2, 4]) { for t in 2 scan { for i in 4 bind block.x { y: "
                     "y[t, i] = 1 } } }"),
             "groups cannot wait for each other"));
  CHECK(says(refusal("kernel @k(y: out f32[600]) { for i in 600 bind thread.x { y: y[i] = 1 } }"),
             "a work-group would have 600 work-items"));
  CHECK(says(refusal("kernel @k(y: out f32[4]) { temp s: f32[4] sram per i for i in 4 bind "
                     "thread.x { s: s[0] = 1 y: y[i] = s[0] } }"),
             "scope 'sram'"));
}
