// A whole model through the backend, the packager and the C ABI: symbols, arena, weights,
// workspace, threads, profile.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "packager/artifact.h"
#include "packager/loaded_model.h"
#include "tests/backends/harness.h"

using namespace tw;

namespace {
Buffer buffer(const char* name, std::vector<Expr> shape, BufferRole role, DType t = DType::f32) {
  Buffer b;
  b.name = name, b.shape = std::move(shape), b.role = role, b.dtype = t;
  return b;
}

stmt::Store store(const char* label, int to, std::vector<Expr> at, Expr value) {
  stmt::Store s;
  s.label = label, s.buffer = BufferId{to}, s.indices = std::move(at), s.value = std::move(value);
  return s;
}

// y[i, j] = sum_k x[i, k] w[k, j] through a temp in the workspace; rows in parallel.
Kernel dense(int64_t k, int64_t n) {
  Kernel kernel;
  kernel.name = "dense", kernel.symbols = {"m"};
  Expr m = var("m");
  kernel.buffers = {buffer("x", {m, k}, BufferRole::input),
                    buffer("w", {k, n}, BufferRole::constant),
                    buffer("y", {m, n}, BufferRole::output), buffer("t", {m, n}, BufferRole::temp)};
  stmt::Store sum = store("t", 3, {var("i"), var("j")},
                          load(BufferId{0}, DType::f32, {var("i"), var("k")}) *
                              load(BufferId{1}, DType::f32, {var("k"), var("j")}));
  sum.combiner = Combiner::add, sum.init = float_imm(0);
  stmt::Store copy = store("y", 2, {var("i2"), var("j2")},
                           load(BufferId{3}, DType::f32, {var("i2"), var("j2")}));
  auto nest = make_loop("k", k, make_loop("j", n, make_store(sum), LoopKind::vector),
                        LoopKind::serial, AxisRole::reduce);
  kernel.body = make_sequence(
      {make_loop("i", m, nest, LoopKind::parallel),
       make_loop("i2", m, make_loop("j2", n, make_store(copy), LoopKind::vector),
                 LoopKind::parallel)});
  return kernel;
}

Kernel relu(int64_t n) {
  Kernel kernel;
  kernel.name = "relu", kernel.symbols = {"m"};
  kernel.buffers = {buffer("x", {var("m"), n}, BufferRole::input),
                    buffer("y", {var("m"), n}, BufferRole::output)};
  auto s = store("y", 1, {var("i"), var("j")},
                 max(float_imm(0), load(BufferId{0}, DType::f32, {var("i"), var("j")})));
  kernel.body = make_loop("i", var("m"), make_loop("j", n, make_store(s), LoopKind::vector));
  return kernel;
}

Program model() {
  const int64_t k = 12, n = 16;
  Program p;
  p.name = "tiny", p.symbols = {"batch"};
  Expr batch = var("batch");
  p.inputs = {{"x", DType::f32, {batch, k}}};
  p.outputs = {{"y", DType::f32, {batch, n}}, {"z", DType::f32, {batch * 2, n}}};
  p.kernels = {dense(k, n), relu(n)};
  Expr bytes = batch * (n * 4);
  KernelCall first, second, third;
  first.kernel = 0, first.name = "MatMul", first.symbols = {batch}, first.workspace = bytes;
  first.arguments = {{Place::input, 0, 0}, {Place::weights, 0, 64}, {Place::arena, 0, 0}};
  second.kernel = 1, second.name = "Relu", second.symbols = {batch};
  second.arguments = {{Place::arena, 0, 0}, {Place::output, 0, 0}};
  third.kernel = 1, third.name = "Relu", third.symbols = {batch};
  third.arguments = {{Place::arena, 0, 0}, {Place::output, 1, 0}};
  p.calls = {first, second, third};
  p.arena_bytes = bytes * 2;
  p.weight_bytes = 64 + k * n * 4;
  return p;
}

ObjectCode compile(const Program& p, int jobs, int64_t chunk_ns = 0) {
  auto backend = make_backend(host_target());
  REQUIRE(bool(backend));
  CodegenOptions options;
  options.jobs = jobs, options.symbol = "tiny", options.target_name = "host",
  options.chunk_ns = chunk_ns;
  auto code = (*backend)->compile(p, options);
  REQUIRE_MESSAGE(bool(code), error_text(code.takeError()));
  return std::move(*code);
}

LoadedModel load(const ObjectCode& code, const Program& p, const std::vector<float>& weights) {
  LinkRequest request;
  request.objects = code.objects, request.exports = model_exports("tiny"), request.manifest = "{}";
  auto image = link_shared(request);
  REQUIRE_MESSAGE(bool(image), error_text(image.takeError()));
  std::string path = (std::filesystem::temp_directory_path() /
                      ("tw_program_" + std::to_string(getpid()) + ".so"))
                         .string();
  {
    auto writer = ArtifactWriter::create(path, *image, p.weight_bytes);
    REQUIRE_MESSAGE(bool(writer), error_text(writer.takeError()));
    if (!weights.empty())
      CHECK(!writer->write(0, {reinterpret_cast<const char*>(weights.data()), p.weight_bytes}));
    CHECK(!writer->finish());
  }
  auto loaded = LoadedModel::open(path);
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(bool(loaded), error_text(loaded.takeError()));
  return std::move(*loaded);
}
}  // namespace

TEST_CASE("the number of jobs does not change the objects") {
  Program p = model();
  ObjectCode one = compile(p, 1), four = compile(p, 4);
  CHECK(one.objects == four.objects);
  REQUIRE(one.kernels.size() == 2);
  CHECK(one.kernels[0].name == "dense");
  CHECK(one.kernels[0].code_bytes > 0);
  CHECK(one.kernels[0].spills == 0);
}

TEST_CASE("a kernel that does little is not divided") {
  Program p = model();
  auto kernel = parse_kernel(
      "kernel @k(x: in f32[999], y: out f32[999]) { for i in 999 parallel { y: y[i] = x[i] } }");
  REQUIRE(bool(kernel));
  p.kernels[1] = *kernel;  // 8 KB, estimated at 15 ns
  auto calls_pool = [&](int64_t chunk_ns) {
    return compile(p, 1, chunk_ns).objects[1].find("tw_parallel_for") != std::string::npos;
  };
  CHECK(calls_pool(0));
  CHECK(calls_pool(5));
  CHECK(!calls_pool(10));
  kernel = parse_kernel(
      "kernel @k(x: in f32[9, 111], y: out f32[9, 111]) { for t in 9 scan { for i in 111 parallel "
      "{ y: y[t, i] = x[t, i] } } }");
  REQUIRE(bool(kernel));
  p.kernels[1] = *kernel;  // as much work, in nine pieces
  CHECK(calls_pool(0));
  CHECK(!calls_pool(5));
}

TEST_CASE("a model runs through its C interface") {
  Program p = model();
  ObjectCode code = compile(p, 2);
  std::vector<float> weights(16 + 12 * 16);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = float(int(i * 7 % 23) - 11) / 8;
  const LoadedModel loaded = load(code, p, weights);
  const tw_api& api = loaded.api();
  CHECK(std::string(api.name) == "tiny");
  CHECK(api.call_count == 3);
  CHECK(api.inputs[0].dims[0] == -1);
  CHECK(api.outputs[1].dims[0] == TW_DIM_COMPUTED);
  CHECK(api.outputs[1].dims[1] == 16);

  for (int threads : {1, 3})
    for (int64_t batch : {1, 2, 7}) {
      tw_options options = {};
      options.size = sizeof options, options.threads = threads;
      tw_context* context = nullptr;
      REQUIRE(api.create(&options, &context) == TW_OK);
      CHECK(api.arena_bytes(&batch) == uint64_t(batch) * 128);
      int64_t dims[2];
      api.output_dims(1, &batch, dims);
      CHECK(dims[0] == 2 * batch);
      std::vector<float> x(size_t(batch) * 12), y(size_t(batch) * 16), z(size_t(batch) * 32);
      for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 5 % 17) - 8) / 4;
      int64_t x_dims[2] = {batch, 12};
      tw_tensor in = {x.data(), x.size() * 4, TW_F32, 2, x_dims};
      tw_tensor out[2] = {{y.data(), y.size() * 4, TW_F32, 2, nullptr},
                          {z.data(), z.size() * 4, TW_F32, 2, nullptr}};
      uint64_t ns[3] = {~0ull, ~0ull, ~0ull};
      tw_status status = batch == 2 ? api.profile(context, &in, out, ns)
                                    : api.run(context, &in, out);
      CHECK_MESSAGE(status == TW_OK, api.last_error(context));
      if (batch == 2) CHECK(ns[2] < 1000000000);
      for (int64_t i = 0; i < batch; ++i)
        for (int64_t j = 0; j < 16; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 12; ++k)
            sum += double(x[size_t(i * 12 + k)]) * weights[size_t(16 + k * 16 + j)];
          CHECK(y[size_t(i * 16 + j)] == doctest::Approx(std::max(0.0, sum)));
        }
      api.destroy(context);
    }
}

TEST_CASE("kernels that no CPU code can be made for are refused by name") {
  auto backend = make_backend(host_target());
  REQUIRE(bool(backend));
  Kernel k = relu(16);
  CHECK(!(*backend)->supports(k));
  k.buffers.push_back(buffer("r", {4}, BufferRole::temp));
  k.buffers.back().scope = "register";
  auto s = store("r", 2, {var("i")}, float_imm(1));
  k.body = make_sequence({make_loop("i", 4, make_store(s)), k.body});
  std::string text = error_text((*backend)->supports(k));
  CHECK(text.find("register buffer 'r'") != std::string::npos);
  CHECK(text.find("kernel 'relu'") != std::string::npos);
  Target unknown = host_target();
  unknown.cpu = "no-such-cpu";
  CHECK(error_text(make_backend(unknown).takeError()).find("no-such-cpu") != std::string::npos);
}

TEST_CASE("a parallel loop of few iterations shares out the loop inside it") {
  struct Case {
    const char* name;
    const char* body;
    int iterations;
  };
  for (const Case& c :
       {Case{"one",
             "for p in 1 parallel { for i in 35 { for j in 3 { y: y[i, j] = x[i, j] * 2.0 } } }",
             35},
        Case{"three", "for j in 3 parallel { for i in 35 { y: y[i, j] = x[i, j] * 2.0 } }", 105},
        Case{"combining",
             "for j in 3 parallel { for i in 35 { y: y[i, j] += x[i, j] init x[i, j] } }", 3},
        Case{"two",
             "for j in 3 parallel { for i in 35 { y: y[i, j] = x[i, j] } for k in 35 { z: y[k, j] "
             "= x[k, j] * 2.0 } }",
             3}}) {
    CAPTURE(c.name);
    auto kernel = parse_kernel(std::string("kernel @k(x: in f32[35, 3], y: out f32[35, 3]) { ") +
                               c.body + " }");
    REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
    Program p;
    p.name = "shared";
    p.inputs = {{"x", DType::f32, {35, 3}}};
    p.outputs = {{"y", DType::f32, {35, 3}}};
    p.kernels = {*kernel};
    p.calls = {{0, {{Place::input, 0, 0}, {Place::output, 0, 0}}, {}, 0, -1, "k"}};
    const LoadedModel model = load(compile(p, 1), p, {});
    for (int threads : {2, 3, 7, 40}) {
      int chunks = 0;
      tw_parallel pool = {[](void* seen, void (*fn)(void*, int32_t), void* arg, int32_t count) {
                            *static_cast<int*>(seen) = count;
                            for (int32_t i = count; i-- > 0;) fn(arg, i);
                          },
                          &chunks, threads};
      tw_options options = {};
      options.size = sizeof options, options.parallel = &pool;
      tw_context* context = nullptr;
      REQUIRE(model.api().create(&options, &context) == TW_OK);
      std::vector<float> x(105), y(107, -1);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 50;
      int64_t dims[2] = {35, 3};
      tw_tensor in = {x.data(), x.size() * 4, TW_F32, 2, dims},
                out = {y.data() + 1, x.size() * 4, TW_F32, 2, dims};
      CHECK(model.api().run(context, &in, &out) == TW_OK);
      model.api().destroy(context);
      CHECK(chunks == std::min(threads, c.iterations));
      for (size_t i = 0; i < x.size(); ++i) CHECK(y[i + 1] == 2 * x[i]);
      CHECK(y.front() == -1);
      CHECK(y.back() == -1);
    }
  }
}
