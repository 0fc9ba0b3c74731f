// Whole models on devices beside the processor. Without OpenCL, tests that run are skipped with a
// message.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "packager/loaded_model.h"
#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"
#include "tests/ir/parsed.h"
#include "tests/opencl/session.h"
#include "tests/passes/random_graph.h"

namespace tw {
namespace {

struct RegionCase {
  const char *name, *inputs, *body;
};
const RegionCase kCases[] = {
#include "tests/cli/operator_cases.inc"
};

Target opencl_target() {
  Expected<Target> target = load_target("opencl-generic",
                                        {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

void check(const Graph& graph, const Target& target, unsigned seed) {
  const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
  Expected<std::vector<Tensor>> expected = evaluate(graph, inputs);
  REQUIRE(bool(expected));
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, 1);
  for (size_t i = 0; i < got.size(); ++i)
    CHECK(test::relative_difference((*expected)[i], got[i]) < 1e-4);
}

#if defined(TW_COUNTING_OPENCL) && !defined(TW_ADDRESS_SANITIZER)
// Loads the counting library before anything asks for libOpenCL.so.1.
void* const g_counting = dlopen(TW_COUNTING_OPENCL, RTLD_NOW);
#else
void* const g_counting = nullptr;
#endif
int32_t counted(const char* what) {
  return reinterpret_cast<int32_t (*)()>(dlsym(g_counting, what))();
}

// A graph with an f64 part in the middle, which a device without fp64 cannot run.
const char* kSplit =
    "graph @g() {\n%x: f32[6, 16] = input\n%w: f32[16, 16] = input\n%a: f32[6, 16] = matmul(%x, "
    "%w)\n%r: f32[6, 16] = unary(%a) function=abs\n"
    "%d: f64[6, 16] = cast(%r) to=f64\n%e: f64[6, 16] = softmax(%d) axis=1\n%f: f32[6, 16] = "
    "cast(%e) to=f32\n"
    "%y: f32[6, 16] = matmul(%f, %w)\noutput %y\noutput %r\n}\n";

std::vector<std::string> stays(const Graph& graph, const Target& target) {
  return test::report_of(graph, target, Emit::scheduled).host_reasons;
}

// Two convolutions with a pool behind them, and a product that does not depend on them
Graph layers_and_product() {
  using test::must;
  using test::seeded_tensor;
  const auto sizes = [](std::vector<int64_t> s) { return Shape(s.begin(), s.end()); };
  Graph g;
  ValueId x = g.add_input("x", {DType::f32, sizes({1, 32, 16, 16}), {}});
  for (unsigned seed : {1, 2})
    x = must(g.add(test::conv_attrs(1),
                   {x, g.add_constant("w", seeded_tensor({32, 32, 3, 3}, seed, 0.1))}));
  op::Pool pool;
  pool.kernel = pool.strides = {2, 2};
  pool.dilations = {1, 1};
  pool.pads = {0, 0, 0, 0};
  g.add_output(must(g.add(pool, {x})), "pooled");
  const ValueId a = g.add_input("a", {DType::f32, sizes({256, 256}), {}});
  g.add_output(
      must(g.add(op::MatMul{}, {a, g.add_constant("m", seeded_tensor({256, 256}, 3, 0.1))})),
      "product");
  return g;
}

std::string placed(const Graph& graph, const Target& target) {
  return test::report_of(graph, target, Emit::kernels).text;
}

// True if the second convolution, whose input is in blocks, takes the maximum of each window in its
// own kernel.
bool has_winograd_with_pool(const std::string& kernels) {
  const size_t at = kernels.find("kernel @winograd_f");
  return at != std::string::npos && kernels.find("max(max(max(", at) != std::string::npos &&
         kernels.find("kernel @pool") == std::string::npos;
}

}  // namespace

TEST_CASE("random graphs run on an OpenCL device") {
  if (!test::shared_host()) return;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    check(test::random_graph(seed), opencl_target(), seed);
  }
}

TEST_CASE("what the device lacks runs on the processor, with the same result") {
  Target target = opencl_target();
  const Graph graph = test::parsed_graph(kSplit);
  CHECK(stays(graph, target).empty());
  target.devices[0].features.clear();
  const std::vector<std::string> reasons = stays(graph, target);
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].find("gpu: ") != std::string::npos);
  CHECK(reasons[0].find("f64") != std::string::npos);
  if (!test::shared_host()) return;
  check(graph, target, 3);
  check(graph, opencl_target(), 3);
}

TEST_CASE("If and Loop on an OpenCL device") {
  if (!test::shared_host()) return;
  int cases = 0;
  for (const RegionCase& c : kCases) {
    if (std::string_view(c.body).find("graph @") == std::string_view::npos) continue;
    ++cases;
    CAPTURE(c.name);
    std::string text = std::string("graph @g(batch) {\n") + c.inputs + "\n" + c.body +
                       "\noutput %y\n}\n";
    if (text.find("[batch") == std::string::npos) text.replace(text.find("(batch)"), 7, "()");
    Graph graph = test::parsed_graph(text);
    if (text.find("[batch") != std::string::npos) graph = bind_symbols(graph, {{"batch", 5}});
    for (unsigned seed = 1; seed <= 2; ++seed) check(graph, opencl_target(), seed);
    // These rates leave products and sums to the device, and functions of single elements to the
    // processor.
    Target apart = opencl_target();
    apart.devices[0].take_all = false;
    apart.devices[0].rates = {1e15, 1e15, 1e15, 1e-9, 0};
    check(graph, apart, 3);
  }
  CHECK(cases >= 5);
}

TEST_CASE("a run on the caller's OpenCL queue, with its memory") {
  test::OpenClHost* host = test::shared_host();
  if (!host) return;
  const Graph graph = test::parsed_graph(kSplit);
  std::vector<Tensor> inputs = test::random_inputs(graph, 3);
  Expected<std::vector<Tensor>> want = evaluate(graph, inputs);
  REQUIRE(bool(want));
  const LoadedModel loaded = test::compile_for(graph, opencl_target());
  const tw_queue queue{"opencl", host->queue()};
  tw_options options{};
  options.size = sizeof options;
  options.queue = &queue;
  tw_context* contexts[2] = {};  // both share the built program
  for (tw_context*& context : contexts) REQUIRE(loaded.api().create(&options, &context) == TW_OK);
  for (tw_context* context : contexts) {
    Tensor kept = Tensor::zeros(DType::f32, {6, 16});
    tw_tensor in[] = {test::describe(inputs[0]), test::describe(inputs[1])},
              out[] = {test::describe(kept), test::describe(kept)};
    in[0].data = host->memory(inputs[0].bytes);
    out[0].data = host->memory(kept.bytes);
    const uint8_t places[] = {TW_DEVICE, TW_HOST, TW_DEVICE, TW_HOST};
    REQUIRE(loaded.api().run_async(context, in, out, places) == TW_OK);
    Tensor fetched = Tensor::zeros(DType::f32, {6, 16});
    // The fetch comes behind the run, on the same queue.
    fetched.bytes = host->fetch(out[0].data, fetched.bytes.size());
    CHECK(test::relative_difference((*want)[0], fetched) < 1e-4);
    CHECK(loaded.api().wait(context) == TW_OK);
    CHECK(test::relative_difference((*want)[1], kept) < 1e-4);
    host->release(in[0].data);
    host->release(out[0].data);
  }
  for (tw_context* context : contexts) loaded.api().destroy(context);

  Target without = opencl_target();
  without.devices[0].features.clear();  // no f64: a part runs on the processor
  const LoadedModel split = test::compile_for(graph, without);
  tw_context* context = nullptr;
  REQUIRE(split.api().create(&options, &context) == TW_OK);
  const tw_tensor in[] = {test::describe(inputs[0]), test::describe(inputs[1])},
                  out[] = {test::describe((*want)[0]), test::describe((*want)[1])};
  CHECK(split.api().run_async(context, in, out, nullptr) == TW_E_UNSUPPORTED);
  CHECK(std::string(split.api().last_error(context)).find("calls need the processor") !=
        std::string::npos);
  split.api().destroy(context);
}

TEST_CASE("contexts of a process share one built program, and the last one takes it along") {
  if (!test::shared_host() || !g_counting) return;
  const Graph graph = test::parsed_graph(kSplit);
  std::vector<Tensor> inputs = test::random_inputs(graph, 3);
  const LoadedModel loaded = test::compile_for(graph, opencl_target());
  for (int round = 0; round < 2; ++round) {
    const int32_t builds = counted("tw_opencl_builds"), objects = counted("tw_opencl_objects");
    tw_context* contexts[3] = {};
    for (tw_context*& context : contexts) REQUIRE(loaded.api().create(nullptr, &context) == TW_OK);
    CHECK(counted("tw_opencl_builds") == builds + 1);
    for (tw_context* context : contexts) {
      Tensor y = Tensor::zeros(DType::f32, {6, 16}), r = y;
      const tw_tensor in[] = {test::describe(inputs[0]), test::describe(inputs[1])},
                      out[] = {test::describe(y), test::describe(r)};
      CHECK(loaded.api().run(context, in, out) == TW_OK);
      CHECK(test::relative_difference((*evaluate(graph, inputs))[0], y) < 1e-4);
    }
    for (tw_context* context : contexts) loaded.api().destroy(context);
    CHECK(counted("tw_opencl_objects") == objects);
  }
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

TEST_CASE("a nest that leaves a device without work is said, with the reason") {
  const auto notes = [](op::Cumulate sums, int64_t rows, int64_t columns) {
    Graph g;
    const ValueId x = g.add_input("x", {DType::f32, {Expr(rows), Expr(columns)}, {}});
    Expected<ValueId> y = g.add(sums, {x}, "y", "running");
    REQUIRE(bool(y));
    g.add_output(*y, "y");
    std::string all;
    for (const std::string& note : test::report_of(g, opencl_target(), Emit::scheduled).notes)
      all += note + "\n";
    return all;
  };
  CHECK(notes({ReduceKind::sum, 1}, 4, 5000)
            .find("(running, cumulate) on gpu: stage 'sums' runs in 4 threads, 5000 steps each: "
                  "loop 't' carries values from one iteration to the next") != std::string::npos);
  // A thread a row is enough here, and a short loop needs no more.
  CHECK(notes({ReduceKind::sum, 1}, 400, 5000) == "");
  CHECK(notes({ReduceKind::sum, 1}, 4, 50) == "");
}

TEST_CASE("what stays beside a device has the processor's algorithms and pools") {
  const Graph graph = layers_and_product();
  Expected<Target> vdla = load_target("vdla-16x16", {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!vdla) FAIL(error_text(vdla.takeError()));
  // The graph has no 8-bit integers, so nothing of it runs on the VDLA.
  const std::string kernels = placed(graph, *vdla);
  INFO(kernels);
  CHECK(has_winograd_with_pool(kernels));
  const Target host = host_target();
  if (std::ranges::all_of(vdla->features, [&](const std::string& f) { return host.has(f); }))
    check(graph, *vdla, 5);
}

TEST_CASE("a device has the direct algorithms, the processor beside it others") {
  const Graph graph = layers_and_product();
  Target target = opencl_target();
  target.devices[0].take_all = false;  // a launch costs as much as a small layer
  target.devices[0].rates = {1e13, 1e12, 1e12, 3e-4, 0};
  const std::string kernels = placed(graph, target);
  INFO(kernels);
  CHECK(has_winograd_with_pool(kernels));
  const std::string scheduled = test::report_of(graph, target, Emit::scheduled).text;
  const size_t product = scheduled.find("kernel @matmul");
  REQUIRE(product != std::string::npos);
  CHECK(scheduled.find(" local per tile", product) != std::string::npos);  // on the device
  if (test::shared_host()) check(graph, target, 5);
}

}  // namespace tw
