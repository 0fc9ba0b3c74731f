// Instructions that only a description declares, as no shipped file has them: compile and tune use
// them, the assembly contains them, and results are exact. These are vpdpbusd on x86-64 and sdot on
// AArch64, whose shipped entries the descriptions leave out.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <sstream>

#include "frontend/frontend.h"
#include "ir/graph/tensor.h"
#include "ir/kernel/kernel.h"
#include "tests/cli/cli_test_util.h"
#include "tests/cli/compiled.h"
#include "tests/cli/graphs.h"
#include "tests/cli/kernel_runner.h"

using namespace tw;
using test::must;

namespace {

const char* const kX86 = R"(
name: unknown-x86
triple: x86_64-linux-gnu
features: [avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx2, fma]
without_intrinsics: [x86.vpdpbusd.512, x86.vpdpbusd.256, x86.vpdpbusd.128]
intrinsics:
  - name: test.dot
    features: [avx512vnni]
    rate: 1
    semantics: |
      kernel @dot(a: in u8[4], b: in i8[64], c: out i32[16]) {
        for i in 16 { for k in 4 reduce { c: c[i] += i32(a[k]) * i32(b[i * 4 + k]) } }
      }
    emit: asm("vpdpbusd $2, $1, $0", "=v,v,v,0", a, b, c)
)";

const char* const kArm = R"(
name: unknown-arm
triple: aarch64-linux-gnu
features: [neon, dotprod]
without_intrinsics: [aarch64.sdot, aarch64.udot]
intrinsics:
  - name: test.dot
    features: [dotprod]
    rate: 1
    semantics: |
      kernel @dot(a: in i8[4], b: in i8[16], c: out i32[4]) {
        for i in 4 { for k in 4 reduce { c: c[i] += i32(a[k]) * i32(b[i * 4 + k]) } }
      }
    emit: asm("sdot $0.4s, $2.16b, $3.16b", "=w,0,w,w", c, b, a)
)";

Tensor bytes(DType t, std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor out = Tensor::zeros(t, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i)
    out.set_int(i, static_cast<int64_t>(random() % 256) - (t == DType::i8 ? 128 : 0));
  return out;
}

// The description in the guide: twelve vector registers, and products of bytes by three
std::string guide_chip() {
  const std::string page = slurp(TW_SOURCE_DIR "/docs/guide/targets.md"),
                    fence = "```yaml nobody.yaml\n";
  const size_t begin = page.find(fence);
  REQUIRE(begin != std::string::npos);
  return page.substr(begin + fence.size(), page.find("```", begin + 3) - begin - fence.size());
}

// x [rows, depth] times a constant of bytes
Graph product(DType left, int64_t rows, int64_t depth, int64_t columns) {
  Graph g;
  g.name = "layer";
  const ValueId x = g.add_input("x", {left, {Expr(rows), Expr(depth)}, {}});
  const ValueId w = g.add_constant("w", bytes(DType::i8, {depth, columns}, 5));
  g.add_output(must(g.add(op::MatMul{}, {x, w})), "y");
  return g;
}

std::string text_of(const Graph& graph, const Target& target, Emit emit) {
  return test::report_of(graph, target, emit).text;
}

Target parsed(const char* yaml) {
  Expected<Target> target = parse_target(yaml, "unknown.yaml");
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

// Returns the class that the reference evaluator gives each of the held-out digits.
std::vector<int> classes_of(const std::string& model, const std::string& images) {
  Expected<Model> imported = import_onnx(model);
  REQUIRE_MESSAGE(bool(imported), error_text(imported.takeError()));
  Expected<Tensor> all = read_npy(images);
  REQUIRE_MESSAGE(bool(all), error_text(all.takeError()));
  constexpr int64_t kPixels = 64;
  std::vector<int> classes;
  for (int64_t image = 0; image < all->shape[0]; ++image) {
    Tensor one = Tensor::zeros(DType::f32, {1, 1, 8, 8});
    for (int64_t i = 0; i < kPixels; ++i) one.set(i, all->at(image * kPixels + i));
    auto logits = evaluate(imported->graph, std::vector<Tensor>{one});
    REQUIRE_MESSAGE(bool(logits), error_text(logits.takeError()));
    int best = 0;
    for (int k = 1; k < static_cast<int>((*logits)[0].size()); ++k)
      if ((*logits)[0].at(k) > (*logits)[0].at(best)) best = k;
    classes.push_back(best);
  }
  return classes;
}

}  // namespace

TEST_CASE("an instruction of a description alone is used on x86-64: compile and tune") {
  const Target target = parsed(kX86);
  for (const auto& [rows, depth, columns] :
       {std::array<int64_t, 3>{7, 40, 48}, {1, 30, 16}, {33, 64, 100}}) {
    const Graph graph = product(DType::u8, rows, depth, columns);
    CHECK(text_of(graph, target, Emit::scheduled).find("by test.dot") != std::string::npos);
    CHECK(text_of(graph, target, Emit::assembly).find("vpdpbusd") != std::string::npos);
    if (!test::runs(target)) continue;
    const std::vector<Tensor> inputs = {bytes(DType::u8, {rows, depth}, 9)};
    auto expected = evaluate(graph, inputs);
    REQUIRE(bool(expected));
    for (int threads : {1, 2}) {
      const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, threads);
      for (int64_t i = 0; i < got[0].size(); ++i)
        REQUIRE(got[0].int_at(i) == (*expected)[0].int_at(i));
    }
  }
  if (!test::runs(target)) {
    MESSAGE("skipped: this machine has no AVX-512 VNNI");
    return;
  }
  const TestFolder folder;
  const std::string model = TW_SOURCE_DIR "/examples/digits/digits_int8.onnx",
                    yaml = folder.write("unknown.yaml", kX86), log = folder / "log.sqlite",
                    library = folder / "digits.so";
  const CliResult tuned = cli(
      {"tune", model, "-t", yaml, "--log", log, "--kernel", "3", "--trials", "6", "--json"});
  REQUIRE_MESSAGE(tuned.code == kExitOk, tuned.err);
  const CliResult built = cli({"compile", model, "-t", yaml, "--log", log, "-o", library});
  REQUIRE_MESSAGE(built.code == kExitOk, built.err);
  const CliResult checked = cli({"verify", library, model});
  CHECK_MESSAGE(checked.code == kExitOk, checked.err);
}

TEST_CASE("a chip that nobody knew gets tiles for its registers and sums by its instruction") {
  const Target target = parsed(guide_chip().c_str());
  REQUIRE(target.vector_registers == 12);
  for (const auto& [rows, depth, columns] :
       {std::array<int64_t, 3>{17, 100, 40}, {1, 30, 16}, {33, 64, 100}, {5, 2, 9}}) {
    CAPTURE(rows);
    const Graph graph = product(DType::u8, rows, depth, columns);
    const std::string text = text_of(graph, target, Emit::scheduled);
    CHECK(text.find("by own.dot3") != std::string::npos);
    CHECK(text_of(graph, target, Emit::assembly).find("vpmaddwd") != std::string::npos);
    Expected<Kernel> kernel = parse_kernel(text);
    REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
    for (const Buffer& buffer : kernel->buffers) {
      if (buffer.scope != "register") continue;
      int64_t bytes = dtype_bytes(buffer.dtype);
      for (const Expr& extent : buffer.shape) bytes *= *as_const(extent);
      CHECK(bytes * 8 <= target.vector_bits * (target.vector_registers - 1));
    }
    if (!test::runs(target)) continue;
    const std::vector<Tensor> inputs = {bytes(DType::u8, {rows, depth}, 9)};
    auto expected = evaluate(graph, inputs);
    REQUIRE(bool(expected));
    const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, target, 1);
    for (int64_t i = 0; i < got[0].size(); ++i)
      REQUIRE(got[0].int_at(i) == (*expected)[0].int_at(i));
  }
}

TEST_CASE("an instruction of a description alone is used on AArch64, under qemu") {
  const Target target = parsed(kArm);
  for (const auto& [rows, depth, columns] :
       {std::array<int64_t, 3>{7, 40, 48}, {1, 30, 8}, {9, 64, 20}}) {
    const Graph graph = product(DType::i8, rows, depth, columns);
    CHECK(text_of(graph, target, Emit::assembly).find("sdot") != std::string::npos);
    const std::string text = text_of(graph, target, Emit::scheduled);
    CHECK(text.find("by test.dot") != std::string::npos);
    Expected<Kernel> kernel = parse_kernel(text);
    REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
    std::vector<KernelArgument> expected;
    std::mt19937 random(3);
    for (const Buffer& buffer : kernel->buffers) {
      if (buffer.role == BufferRole::temp) continue;
      int64_t size = dtype_bytes(buffer.dtype);
      for (const Expr& extent : buffer.shape) size *= *as_const(extent);
      expected.emplace_back().bytes.resize(static_cast<size_t>(size));
      if (buffer.role != BufferRole::output)
        for (std::byte& b : expected.back().bytes) b = static_cast<std::byte>(random());
    }
    std::vector<KernelArgument> compiled = expected;
    REQUIRE(error_text(interpret(*kernel, expected)) == "");
    if (!test::runs(target)) continue;
    for (Buffer& buffer : kernel->buffers)  // no program allocates a workspace here
      if (buffer.role == BufferRole::temp && buffer.scope == "global") buffer.scope = "stack";
    test::run_kernel(*kernel, target, compiled);
    CHECK(compiled.back().bytes == expected.back().bytes);
  }
  if (!test::runs(target)) MESSAGE("skipped: no libc or no qemu for aarch64");
}

TEST_CASE(
    "a whole model with an instruction of a description alone gives its classes, under qemu") {
  const TestFolder folder;
  const std::string examples = TW_SOURCE_DIR "/examples/digits/",
                    model = examples + "digits_int8.onnx", images = examples + "test_images.npy",
                    yaml = folder.write("unknown.yaml", kArm), library = folder / "digits.so",
                    program = folder / "classify", labels = folder / "labels.txt";
  const CliResult built = cli({"compile", model, "-t", yaml, "-o", library});
  REQUIRE_MESSAGE(built.code == kExitOk, built.err);
  const CliResult assembly = cli({"compile", model, "-t", yaml, "--emit", "asm"});
  CHECK(assembly.out.find("sdot") != std::string::npos);
  if (!test::runs(parsed(kArm))) {
    MESSAGE("skipped: no libc or no qemu for aarch64");
    return;
  }
  const std::string compiled = "LIBRARIES=" + library +
                               " CLANG=" TW_CLANG " LLD=" TW_LLD " " TW_TEST_DIR
                               "/cross_cc.sh aarch64 " +
                               examples + "classify.c " + program + " -I " + (folder / "");
  REQUIRE(std::system(compiled.c_str()) == 0);
  const std::string ran =
      "LD_LIBRARY_PATH= qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu -E "
      "LD_LIBRARY_PATH=" +
      (folder / "") + " " + program + " " + images + " " + examples + "test_labels.npy " + labels;
  REQUIRE(std::system(ran.c_str()) == 0);
  std::istringstream written(slurp(labels));
  std::vector<int> got;
  for (int label = 0; written >> label;) got.push_back(label);
  CHECK(got == classes_of(model, images));
}
