// Products and convolutions of short types for ARM, by their default schedules. The code contains
// the expected instruction. Under qemu it equals the interpreter to the bit; with Winograd's
// algorithm, to the last bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <regex>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "ir/storage_types.h"
#include "kernels/default_schedule.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "tests/cli/kernel_runner.h"

using namespace tw;

namespace {

struct Features {
  const char* description;  // lines of YAML behind the triple
  const char* product;      // instruction for products of ten rows and convolutions
  const char* row;          // instruction for one row
};
struct Layer {
  const char* name;
  bool one_row;
  const char* text;                         // T is the type; %w becomes a constant
  Algorithm algorithm = Algorithm::direct;  // used if the target has it
};

// Cases: ragged panels and depths, partly filled blocks, padding, strides, channels of images
constexpr Layer kFloats[] = {
    {"product", false, R"(%x: T[10, 34] = input
  %w: T[34, 20] = input
  %xf: f32[10, 34] = cast(%x) to=f32
  %wf: f32[34, 20] = cast(%w) to=f32
  %y: f32[10, 20] = matmul(%xf, %wf))"},
    {"one row", true, R"(%x: T[1, 64] = input
  %w: T[64, 40] = input
  %xf: f32[1, 64] = cast(%x) to=f32
  %wf: f32[64, 40] = cast(%w) to=f32
  %y: f32[1, 40] = matmul(%xf, %wf))"},
    {"odd depth", false, R"(%x: T[8, 35] = input
  %w: T[35, 12] = input
  %xf: f32[8, 35] = cast(%x) to=f32
  %wf: f32[35, 12] = cast(%w) to=f32
  %y: f32[8, 12] = matmul(%xf, %wf))"},
    {"pointwise convolution", false, R"(%x: T[1, 16, 5, 8]@1:4 = input
  %w: T[24, 16, 1, 1] = input
  %xf: f32[1, 16, 5, 8]@1:4 = cast(%x) to=f32
  %wf: f32[24, 16, 1, 1] = cast(%w) to=f32
  %y: f32[1, 24, 5, 8]@1:4 = conv(%xf, %wf) strides=[1,1] dilations=[1,1] pads=[0,0,0,0])"},
    {"padded convolution", false, R"(%x: T[1, 12, 6, 8]@1:4 = input
  %w: T[16, 12, 3, 3] = input
  %xf: f32[1, 12, 6, 8]@1:4 = cast(%x) to=f32
  %wf: f32[16, 12, 3, 3] = cast(%w) to=f32
  %y: f32[1, 16, 6, 8]@1:4 = conv(%xf, %wf) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])"},
    {"first layer", true, R"(%x: T[1, 3, 17, 17] = input
  %w: T[16, 3, 3, 3] = input
  %xf: f32[1, 3, 17, 17] = cast(%x) to=f32
  %wf: f32[16, 3, 3, 3] = cast(%w) to=f32
  %y: f32[1, 16, 8, 8]@1:4 = conv(%xf, %wf) strides=[2,2] dilations=[1,1] pads=[0,0,0,0])"},
    {"Winograd's convolution", true, R"(%x: T[1, 12, 5, 8]@1:4 = input
  %w: T[14, 12, 3, 3] = input
  %xf: f32[1, 12, 5, 8]@1:4 = cast(%x) to=f32
  %wf: f32[14, 12, 3, 3] = cast(%w) to=f32
  %y: f32[1, 14, 5, 8]@1:4 = conv(%xf, %wf) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])",
     Algorithm::winograd_f2},
    {"Winograd's convolution of stride 2", true, R"(%x: T[1, 8, 9, 12]@1:4 = input
  %w: T[16, 8, 3, 3] = input
  %xf: f32[1, 8, 9, 12]@1:4 = cast(%x) to=f32
  %wf: f32[16, 8, 3, 3] = cast(%w) to=f32
  %y: f32[1, 16, 4, 5]@1:4 = conv(%xf, %wf) strides=[2,2] dilations=[1,1] pads=[0,0,0,0])",
     Algorithm::winograd_f2},
};
constexpr Layer kWideBlocks = {"Winograd's convolution", true, R"(%x: T[1, 24, 5, 8]@1:16 = input
  %w: T[40, 24, 3, 3] = input
  %xf: f32[1, 24, 5, 8]@1:16 = cast(%x) to=f32
  %wf: f32[40, 24, 3, 3] = cast(%w) to=f32
  %y: f32[1, 40, 5, 8]@1:16 = conv(%xf, %wf) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])",
                               Algorithm::winograd_f2};
// A model of ONNX in halves: sums are f32, and results are rounded.
constexpr Layer kHalves[] = {
    {"product of halves", false, R"(%x: f16[10, 34] = input
  %w: f16[34, 20] = input
  %y: f16[10, 20] = matmul(%x, %w))"},
    {"convolution of halves", false, R"(%x: f16[1, 12, 6, 8]@1:4 = input
  %w: f16[16, 12, 3, 3] = input
  %y: f16[1, 16, 6, 8]@1:4 = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])"},
};
constexpr Layer kIntegers[] = {
    {"product of bytes", false, R"(%x: T[10, 36] = input
  %w: i8[36, 20] = input
  %y: i32[10, 20] = matmul(%x, %w))"},
    {"row of bytes", true, R"(%x: T[1, 64] = input
  %w: i8[64, 40] = input
  %y: i32[1, 40] = matmul(%x, %w))"},
    {"convolution of bytes", false, R"(%x: T[1, 16, 6, 8]@1:4 = input
  %w: i8[16, 16, 3, 3] = input
  %y: i32[1, 16, 6, 8]@1:4 = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])"},
};

constexpr Features kBf16[] = {
    {"features: [neon, bf16]", "bfmmla", "bfdot"},
    {"features: [neon, bf16]\nwithout_intrinsics: [aarch64.bfmmla]", "bfdot", "bfdot"},
    {"features: [neon]", "fmla", "fmla"},
};
constexpr Features kF16[] = {
    {"features: [neon, fp16fml]", "fmlal", "fmlal"},
    {"features: [neon, fullfp16]", "fmla", "fmla"},
    {"features: [neon]", "fmla", "fmla"},
};
constexpr Features kSigned[] = {
    {"features: [neon, i8mm, dotprod]", "smmla", "sdot"},
    {"features: [neon, dotprod]", "sdot", "sdot"},
    {"features: [neon]", "mla", "mla"},
};
constexpr Features kUnsigned[] = {
    {"features: [neon, i8mm, dotprod]", "usmmla", "usdot"},
    {"features: [neon]", "mla", "mla"},
};
constexpr Features kArmv7[] = {{"features: [neon, vfp4]", "vmlal.s16", "vmlal.s16"}};
// No code may contain these unless the target's features ask for one.
constexpr const char* kShort[] = {"bfdot", "bfmmla", "fmlal", "sdot", "udot", "mmla"};

Target target_of(const std::string& triple, const char* description) {
  Expected<Target> target = parse_target("triple: " + triple + "\ncores: 1\n" + description + "\n",
                                         "short.yaml");
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  return *target;
}

Kernel scheduled(const Layer& layer, const std::string& type, const Target& target) {
  std::string text = layer.text;
  for (size_t at = 0; (at = text.find(" T[", at)) != std::string::npos;)
    text.replace(at + 1, 1, type);
  Expected<Graph> graph = parse_graph("graph @layer() {\n  " + text + "\n  output %y\n}\n");
  REQUIRE_MESSAGE(bool(graph), error_text(graph.takeError()));
  for (const ValueId input : std::vector<ValueId>(graph->inputs()))
    if (const Value value = graph->value(input); value.name == "w")
      graph->replace_uses(
          input, graph->add_constant(
                     "weights", Tensor::zeros(value.type.dtype, *static_shape(value.type.shape))));
  std::vector<Group> groups = fuse_groups(*graph);
  REQUIRE(groups.size() == 1);
  groups[0].algorithm = layer.algorithm;
  groups[0].algorithm = algorithm_on(*graph, groups[0], target);
  Expected<LoweredGroup> lowered = lower_group(*graph, groups[0], target);
  REQUIRE_MESSAGE(bool(lowered), error_text(lowered.takeError()));
  Expected<Schedule> schedule = default_schedule(*lowered, target);
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<RunKernel> run = apply_to_run(lowered->kernel, *schedule, &target);
  REQUIRE_MESSAGE(bool(run), error_text(run.takeError()));
  return std::move(run->kernel);
}

// Random bytes; or floats of both signs whose sums lose bits at every step.
std::vector<KernelArgument> arguments_of(const Kernel& kernel) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<KernelArgument> all;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    const DType t = buffer.dtype;
    int64_t count = 1;
    for (const Expr& extent : buffer.shape) count *= *as_const(extent);
    std::vector<std::byte>& bytes = all.emplace_back().bytes;
    bytes.resize(static_cast<size_t>(count * dtype_bytes(t)));
    if (buffer.role == BufferRole::output) continue;
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    for (size_t i = 0; is_float(t) && i < bytes.size(); i += 2) {
      const float number = std::ldexp(normal(random), static_cast<int>(random() % 6));
      const uint16_t half = t == DType::bf16 ? f32_to_bf16(number) : f32_to_f16(number);
      std::memcpy(&bytes[i], &half, sizeof half);
    }
  }
  return all;
}

// The code rounds each operation to f32, the interpreter only whole expressions. So sums of three
// in the output's transform differ in their last bits.
void check_near(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted) {
  REQUIRE(got.size() == wanted.size());
  float span = 0, worst = 0;
  for (size_t i = 0; i < got.size(); i += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, &got[i], sizeof a);
    std::memcpy(&b, &wanted[i], sizeof b);
    span = std::max(span, std::abs(b));
    worst = std::max(worst, std::abs(a - b));
  }
  CHECK(worst <= 1e-6F * span);
}

void check(const std::string& triple, const Layer& layer, const std::string& type,
           const Features& features) {
  CAPTURE(std::string(layer.name));
  CAPTURE(std::string(features.description));
  const Target target = target_of(triple, features.description);
  const Kernel kernel = scheduled(layer, type, target);
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<std::string> assembly = (*backend)->disassemble(kernel, "asm");
  REQUIRE_MESSAGE(bool(assembly), error_text(assembly.takeError()));
  const std::string wanted = layer.one_row ? features.row : features.product;
  CHECK_MESSAGE(assembly->find(wanted) != std::string::npos, *assembly);
  const auto in_list = [&](const std::string& one) { return wanted.ends_with(one); };
  for (const std::string other : kShort)
    if (std::ranges::none_of(kShort, in_list))
      CHECK_MESSAGE(assembly->find("\t" + other) == std::string::npos, other);
  std::vector<KernelArgument> expected = arguments_of(kernel), compiled = expected;
  REQUIRE(error_text(interpret(kernel, expected, {}, &target)) == "");
  if (!test::runs(target)) {
    MESSAGE("in the assembly alone: " << layer.name << " of " << type);
    return;
  }
  test::run_kernel(kernel, target, compiled);
  if (layer.algorithm == Algorithm::direct) CHECK(compiled.back().bytes == expected.back().bytes);
  else check_near(compiled.back().bytes, expected.back().bytes);
}

std::string assembly_of(const Layer& layer, const std::string& type, const Target& target) {
  auto backend = make_backend(target);
  REQUIRE(bool(backend));
  Expected<std::string> text = (*backend)->disassemble(scheduled(layer, type, target), "asm");
  REQUIRE_MESSAGE(bool(text), error_text(text.takeError()));
  return *text;
}

template <size_t layers, size_t sets>
void check_all(const std::string& triple, const Layer (&list)[layers], const std::string& type,
               const Features (&features)[sets]) {
  for (const Layer& layer : list)
    for (const Features& set : features) check(triple, layer, type, set);
}

const char* const kAArch64 = "aarch64-linux-gnu";

}  // namespace

TEST_CASE("products of bf16 on AArch64 by bfmmla and bfdot equal the interpreter to the bit") {
  check_all(kAArch64, kFloats, "bf16", kBf16);
}

TEST_CASE("products of f16 on AArch64 by fmlal equal the interpreter to the bit") {
  check_all(kAArch64, kFloats, "f16", kF16);
  check_all(kAArch64, kHalves, "f16", kF16);
}

TEST_CASE("products of bytes on AArch64 by smmla, usmmla, sdot and usdot equal the interpreter") {
  check_all(kAArch64, kIntegers, "i8", kSigned);
  check_all(kAArch64, kIntegers, "u8", kUnsigned);
}

TEST_CASE("AArch64 loads the elements of four steps together") {
  const auto assembly = [](const Layer& layer, const std::string& type, const char* features) {
    return assembly_of(layer, type, target_of(kAArch64, features));
  };
  CHECK(assembly(kIntegers[1], "i8", "features: [neon, dotprod]").find(".4b[3]") !=
        std::string::npos);
  CHECK(assembly(kFloats[1], "f16", "features: [neon, fp16fml]").find(".h[3]") !=
        std::string::npos);
}

TEST_CASE("with AVX512-FP16, too, halves are widened and their sums are of f32") {
  Expected<Target> target = load_target("sapphirerapids", {TW_SOURCE_DIR "/configs"});
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  const std::regex halves(R"(\tv(fn?m(add|sub)[0-9]*|mul|add|sub)[ps]h\b)");
  const auto look = [&](const Layer& layer) {
    CAPTURE(std::string(layer.name));
    const std::string text = assembly_of(layer, "f16", *target);
    CHECK_MESSAGE(std::regex_search(text, std::regex(R"(\tvcvtph2psx?\b)")), text);
    CHECK_MESSAGE(std::regex_search(text, std::regex(R"(\tvfmadd[0-9]+ps\b)")), text);
    CHECK_MESSAGE(!std::regex_search(text, halves), text);
  };
  for (const Layer& layer : kFloats) look(layer);
  for (const Layer& layer : kHalves) look(layer);
}

TEST_CASE("products of bytes on ARMv7 by vmlal equal the interpreter") {
  check_all("armv7-linux-gnueabihf", kIntegers, "i8", kArmv7);
  check_all("armv7-linux-gnueabihf", kIntegers, "u8", kArmv7);
}

TEST_CASE("products of bf16 by vdpbf16ps equal the interpreter to the bit") {
  constexpr Features kSets[] = {
      {"features: [avx512bf16, avx512vl, avx512bw, avx512dq, fma]", "vdpbf16ps", "vdpbf16ps"}};
  for (const Layer& layer : {kFloats[0], kFloats[1], kFloats[2], kWideBlocks})
    check("x86_64-linux-gnu", layer, "bf16", kSets[0]);
}
