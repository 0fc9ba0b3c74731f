// Models on devices beside the processor, whole: skipped, and said so, where there is no OpenCL.
#include <doctest/doctest.h>
#include <dlfcn.h>

#include "frontend/frontend.h"
#include "packager/loaded_model.h"
#include "tests/cli/compiled.h"
#include "tests/opencl/session.h"
#include "tests/passes/random_graph.h"

namespace tw {
namespace {

Target opencl_target() {
  Expected<Target> target = load_target("opencl-generic", {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

// False where there is no OpenCL, and under the address sanitizer, which would check the driver's compiler; says so.
bool has_opencl() {
#ifdef TW_ADDRESS_SANITIZER
  MESSAGE("SKIPPED: the address sanitizer is on");
  return false;
#else
  static const test::CacheFolder cache;
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW);
  unsigned platforms = 0;
  if (library)
    if (auto* count = reinterpret_cast<int (*)(unsigned, void*, unsigned*)>(dlsym(library, "clGetPlatformIDs"))) count(0, nullptr, &platforms);
  if (platforms == 0) MESSAGE("SKIPPED: no OpenCL platform on this machine (scripts/setup.sh opencl)");
  return platforms > 0;
#endif
}

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

void check(const Graph& graph, const Target& target, unsigned seed) {
  const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
  Expected<std::vector<Tensor>> expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, 1);
  for (size_t i = 0; i < got.size(); ++i) CHECK(test::relative_difference((*expected)[i], got[i]) < 1e-4);
}

// The f64 part in the middle is beyond a device without fp64.
const char* kSplit =
    "graph @g() {\n%x: f32[6, 16] = input\n%w: f32[16, 16] = input\n%a: f32[6, 16] = matmul(%x, %w)\n%r: f32[6, 16] = unary(%a) function=abs\n"
    "%d: f64[6, 16] = cast(%r) to=f64\n%e: f64[6, 16] = softmax(%d) axis=1\n%f: f32[6, 16] = cast(%e) to=f32\n"
    "%y: f32[6, 16] = matmul(%f, %w)\noutput %y\noutput %r\n}\n";

std::vector<std::string> stays(const Graph& graph, const Target& target) {
  Model model;
  model.graph = graph;
  model.name = "split";
  CompileOptions options;
  options.emit = Emit::scheduled;
  Expected<CompileReport> report = compile_graph(std::move(model), options, target);
  if (!report) FAIL(error_text(report.takeError()));
  return report->host_reasons;
}

}  // namespace

TEST_CASE("random graphs run on an OpenCL device") {
  if (!has_opencl()) return;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    check(test::random_graph(seed), opencl_target(), seed);
  }
}

TEST_CASE("what the device lacks runs on the processor, with the same result") {
  Target target = opencl_target();
  const Graph graph = parsed(kSplit);
  CHECK(stays(graph, target).empty());
  target.devices[0].features.clear();
  const std::vector<std::string> reasons = stays(graph, target);
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].find("gpu: ") != std::string::npos);
  CHECK(reasons[0].find("f64") != std::string::npos);
  if (!has_opencl()) return;
  check(graph, target, 3);
  check(graph, opencl_target(), 3);
}

TEST_CASE("an unknown driver or feature is an error before anything is compiled") {
  Target target = opencl_target();
  target.devices[0].features = {"fp128"};
  Expected<std::unique_ptr<DeviceBackend>> backend = make_device_backend(target.devices[0]);
  REQUIRE_FALSE(backend);
  CHECK(error_text(backend.takeError()).find("device 'gpu' has the unknown feature 'fp128'") == 0);
  target.devices[0].driver = "abacus";
  Expected<std::unique_ptr<DeviceBackend>> other = make_device_backend(target.devices[0]);
  REQUIRE_FALSE(other);
  CHECK(error_text(other.takeError()).find("device 'gpu': there is no driver 'abacus'") == 0);
}

}  // namespace tw
