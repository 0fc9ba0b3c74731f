// The way to code for CUDA: ptxas runs once a kernel, any number of jobs gives the same bytes, and
// the report has its figures.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "backends/cuda/ptxas.h"
#include "driver/compile/compile.h"
#include "driver/compile/manifest.h"
#include "packager/artifact.h"
#include "tests/cuda/fake.h"

using namespace tw;

namespace {

struct Made {
  std::string bytes;
  CompileReport report;
  Manifest manifest;
};

Made made(const std::filesystem::path& folder, int jobs) {
  CompileOptions options;
  options.model = std::string(TW_SOURCE_DIR) + "/examples/digits/digits.onnx";
  options.output = folder / "digits.so";
  options.jobs = jobs;
  Expected<CompileReport> report = compile_model(options, test::cuda_target());
  if (!report) FAIL(error_text(report.takeError()));
  std::stringstream bytes;
  bytes << std::ifstream(options.output, std::ios::binary).rdbuf();
  Expected<std::string> text = read_manifest(options.output);
  REQUIRE(bool(text));
  Expected<Manifest> manifest = parse_manifest(*text, options.output);
  REQUIRE(bool(manifest));
  return {bytes.str(), std::move(*report), std::move(*manifest)};
}

size_t lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  size_t count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

}  // namespace

TEST_CASE("ptxas sees every kernel once, and the bytes do not depend on the jobs") {
  const std::string ptxas = cuda::find_ptxas();
  std::string pattern =
      (std::filesystem::temp_directory_path() / "tilewright-ptxas-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path folder = pattern, log = folder / "log";
  if (!ptxas.empty()) {  // puts a ptxas that counts its calls before the real one
    std::ofstream(folder / "ptxas") << "#!/bin/sh\ncase \"$*\" in *--version*) ;; *) echo x >> "
                                    << log.string() << ";; esac\nexec " << ptxas << " \"$@\"\n";
    std::filesystem::permissions(folder / "ptxas", std::filesystem::perms::owner_all);
  }
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  const Made one = made(folder, 1);
  const size_t calls = lines_of(log);
  const Made several = made(folder, 4);
  setenv("PATH", path.c_str(), 1);
  std::filesystem::remove_all(folder);
  CHECK(one.bytes == several.bytes);
  size_t kernels = 0;
  for (size_t k = 0; k < one.report.kernel_reports.size(); ++k) {
    const KernelReport& report = one.report.kernel_reports[k];
    CHECK(one.manifest.kernels[k].registers == report.registers);
    CHECK(one.manifest.kernels[k].code_bytes == report.code_bytes);
    if (!report.on_device) continue;
    ++kernels;
    CHECK(report.code_bytes > 0);
    CHECK(report.spills == 0);
    if (!ptxas.empty()) CHECK(report.registers > 0);
  }
  CHECK(kernels > 4);
  REQUIRE(one.manifest.device_notes.size() == 1);
  if (ptxas.empty()) {
    std::cout << "SKIPPED: no ptxas on this machine (scripts/setup.sh cuda)" << std::endl;
    CHECK(one.manifest.device_notes[0].find("there is no ptxas") != std::string::npos);
    return;
  }
  CHECK(calls == kernels);
  CHECK(one.manifest.device_notes[0].find("machine code by ptxas V") != std::string::npos);
}

TEST_CASE("a device can ask for ptxas") {
  Target device = test::cuda_target().main_device();
  device.features.push_back("ptxas");
  auto backend = make_device_backend(device);
  CHECK(bool(backend) == !cuda::find_ptxas().empty());
  if (!backend)
    CHECK(error_text(backend.takeError())
              .find("has the feature 'ptxas', and there is no ptxas here") != std::string::npos);
}
