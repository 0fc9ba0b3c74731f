// Each tests/golden/schedule/*.tilewright has a kernel, a line "// --- schedule" and the schedule.
// Then follow either "// --- expect" and the kernel that must come out, or, in files fail_*, "//
// error: " and a part of the message. TW_UPDATE_GOLDEN=1 rewrites the expected kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/schedule/schedule.h"
#include "ir/target.h"

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Golden {
  std::string kernel, schedule, expect, error;
};

Golden split_sections(const std::string& text) {
  Golden golden;
  std::string* section = &golden.kernel;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "// --- schedule") section = &golden.schedule;
    else if (line == "// --- expect") section = &golden.expect;
    else if (line.starts_with("// error: ")) golden.error = line.substr(10);
    else *section += line + "\n";
  }
  return golden;
}

// A device with the axes, scopes and instructions that the files use
tw::Target device() {
  tw::Target t;
  t.axes = {{"block.x", "block", 1024}, {"thread.x", "thread", 32}};
  t.scopes = {{"shared", "block"}, {"sram.inp", ""}, {"sram.wgt", ""}, {"sram.acc", ""}};
  t.intrinsics = {{"dot4",
                   "kernel @dot4(a: in u8[4], b: in i8[64], c: out i32[16]) { for i in 16 { for k "
                   "in 4 reduce { c: c[i] += i32(a[k]) * i32(b[i * 4 + k]) } } }",
                   {}}};
  return t;
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TW_TEST_DIR) / "golden" / "schedule"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("schedule: golden kernels before and after each primitive") {
  const bool update = std::getenv("TW_UPDATE_GOLDEN") != nullptr;
  const tw::Target target = device();
  int checked = 0;
  for (const fs::path& file : golden_files()) {
    const std::string name = file.stem().string();
    CAPTURE(name);
    const Golden golden = split_sections(read_text(file));
    llvm::Expected<tw::Kernel> kernel = tw::parse_kernel(golden.kernel, name);
    REQUIRE_MESSAGE(bool(kernel), tw::error_text(kernel.takeError()));
    REQUIRE(tw::error_text(tw::verify(*kernel)) == "");
    llvm::Expected<tw::Schedule> schedule = tw::parse_schedule(golden.schedule, name);
    REQUIRE_MESSAGE(bool(schedule), tw::error_text(schedule.takeError()));
    CHECK(tw::print(*schedule) == golden.schedule);
    llvm::Expected<tw::Kernel> out = tw::apply(*kernel, *schedule, &target);
    ++checked;
    if (name.starts_with("fail_")) {
      REQUIRE(!golden.error.empty());
      CHECK(!out);
      if (out) continue;
      std::vector<tw::Diag> diags = tw::take_diags(out.takeError());
      REQUIRE(diags.size() == 1);
      CHECK(diags[0].code == tw::DiagCode::illegal_schedule);
      CHECK_MESSAGE(diags[0].message.find(golden.error) != std::string::npos, diags[0].message);
      continue;
    }
    REQUIRE_MESSAGE(bool(out), tw::error_text(out.takeError()));
    CHECK(tw::error_text(tw::verify(*out)) == "");
    const std::string printed = tw::print(*out);
    if (update)
      std::ofstream(file) << golden.kernel << "// --- schedule\n"
                          << golden.schedule << "// --- expect\n"
                          << printed;
    else CHECK(printed == golden.expect);
  }
  CHECK(checked > 40);
}
