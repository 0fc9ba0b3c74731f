// compile --specialize: fixed sizes get calls of their own.
#include <doctest/doctest.h>

#include <algorithm>

#include "driver/compile/manifest.h"
#include "driver/run/model_run.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"
#include "tests/cli/cli_test_util.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {
const std::string kModel = TW_SOURCE_DIR "/examples/digits/digits_batch.onnx";

// Runs the model on `batch` pictures. Returns whether any of the calls before `first`, and any of
// the others, took time.
std::pair<bool, bool> calls_made(const tw_api& api, int64_t batch, size_t first) {
  Inputs inputs;
  inputs.tensors.push_back(Tensor::zeros(DType::f32, {batch, 1, 8, 8}));
  inputs.symbols["batch"] = batch;
  Expected<ModelRun> run = ModelRun::create(api, std::move(inputs), 1);
  REQUIRE(bool(run));
  std::vector<uint64_t> ns(static_cast<size_t>(api.call_count), 7);
  REQUIRE(!run->profile(ns));
  const auto any = [&](size_t from, size_t to) {
    return std::any_of(ns.begin() + static_cast<std::ptrdiff_t>(from),
                       ns.begin() + static_cast<std::ptrdiff_t>(to),
                       [](uint64_t n) { return n > 0; });
  };
  return {any(0, first), any(first, ns.size())};
}
}  // namespace

TEST_CASE(
    "compile --specialize: runs of that size take its calls, others the general ones, and all "
    "compute the same") {
  const TestFolder folder;
  const std::string library = folder / "d.so";
  REQUIRE(
      cli({"compile", kModel, "-o", library, "--specialize", "batch=4", "--specialize", "batch=1"})
          .code == kExitOk);
  for (const char* batch : {"batch=1", "batch=3", "batch=4", "batch=5"})
    CHECK(cli({"verify", library, kModel, "--dim", batch}).code == kExitOk);
  Expected<std::string> text = read_manifest(library);
  REQUIRE(bool(text));
  Expected<Manifest> manifest = parse_manifest(*text, library);
  REQUIRE(bool(manifest));
  REQUIRE(manifest->fast_paths.size() == 2);
  CHECK(manifest->fast_paths[0] == std::map<std::string, int64_t>{{"batch", 4}});
  CHECK(cli({"inspect", library}).out.find("fast    batch=4") != std::string::npos);
  Expected<LoadedModel> loaded = LoadedModel::open(library);
  REQUIRE(bool(loaded));
  const size_t general = manifest->calls.size() / 3;  // the calls hold the same groups three times
  CHECK(calls_made(loaded->api(), 3, general) == std::pair(true, false));
  CHECK(calls_made(loaded->api(), 4, general) == std::pair(false, true));
  CHECK(calls_made(loaded->api(), 1, general) == std::pair(false, true));
}

TEST_CASE("compile --specialize: what it cannot do is said") {
  const TestFolder folder;
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"compile", kModel, "-o", folder / "d.so"};
    all.insert(all.end(), more.begin(), more.end());
    const CliResult r = cli(all);
    CHECK(r.code != kExitOk);
    return r.err;
  };
  CHECK(error({"--specialize", "seq=4"}).find("seq") != std::string::npos);
  CHECK(error({"--specialize", "batch"}).find("--specialize 'batch' is not NAME=N") !=
        std::string::npos);
  CHECK(error({"--dim", "batch=1..8", "--specialize", "batch=9"})
            .find("--specialize batch=9: the dimension is 1 to 8") != std::string::npos);
  CHECK(error({"-t", "opencl-generic", "--specialize", "batch=4"})
            .find("not for models with a device beside the processor") != std::string::npos);
  CHECK(error({"--dim", "batch=4", "--specialize", "batch=4"}).find("no free dimension 'batch'") !=
        std::string::npos);
}
