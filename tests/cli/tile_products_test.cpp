// Products and convolutions on AMX tiles, by their default schedules. The interpreter checks, by
// the instructions' own semantics, that the scheduled kernel means the same as the plain one. The
// code is inspected, and run where the machine has the other instructions
// (tests/cli/kernel_runner.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "ir/graph/short_floats.h"
#include "ir/kernel/interpreter.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "passes/fuse_groups.h"
#include "tests/cli/amx_emulator.h"
#include "tests/cli/kernel_runner.h"

using namespace tw;

namespace {

struct Layer {
  const char* name;
  const char *left, *right;  // element types
  const char* instruction;
  const char* text;  // L and R stand for the types; %w becomes a constant
};

constexpr const char* kProduct = R"(%x: L[64, 192] = input
  %w: R[192, 96] = input
  %y: i32[64, 96] = matmul(%x, %w))";
// Rows, columns and depth do not fill whole tiles.
constexpr const char* kRagged = R"(%x: L[3, 15, 100] = input
  %w: R[100, 50] = input
  %y: i32[3, 15, 50] = matmul(%x, %w))";
constexpr const char* kOneTile = R"(%x: L[12, 50] = input
  %w: R[50, 16] = input
  %y: i32[12, 16] = matmul(%x, %w))";
constexpr const char* kComputed = R"(%x: L[2, 31, 120] = input
  %v: R[2, 120, 40] = input
  %y: i32[2, 31, 40] = matmul(%x, %v))";
constexpr const char* kFloats = R"(%x: bf16[48, 96] = input
  %w: bf16[96, 40] = input
  %xf: f32[48, 96] = cast(%x) to=f32
  %wf: f32[96, 40] = cast(%w) to=f32
  %y: f32[48, 40] = matmul(%xf, %wf))";

constexpr const char* kHalves = R"(%x: L[48, 96] = input
  %w: R[96, 40] = input
  %y: f16[48, 40] = matmul(%x, %w))";

constexpr const char* kPadded = R"(%x: L[1, 64, 5, 30]@1:16 = input
  %w: R[32, 64, 3, 3] = input
  %y: i32[1, 32, 5, 30]@1:16 = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])";
// The channels do not fill whole tiles, the stride is 2, and the number of blocks is odd.
constexpr const char* kStrided = R"(%x: L[2, 80, 7, 31]@1:16 = input
  %w: R[48, 80, 3, 3] = input
  %y: i32[2, 48, 4, 16]@1:16 = conv(%x, %w) strides=[2,2] dilations=[1,1] pads=[1,1,1,1])";
constexpr const char* kPointwise = R"(%x: L[1, 128, 7, 9]@1:16 = input
  %w: R[64, 128, 1, 1] = input
  %y: i32[1, 64, 7, 9]@1:16 = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0])";
constexpr const char* kFloatConvolution = R"(%x: bf16[1, 32, 3, 16]@1:16 = input
  %w: bf16[32, 32, 3, 3] = input
  %xf: f32[1, 32, 3, 16]@1:16 = cast(%x) to=f32
  %wf: f32[32, 32, 3, 3] = cast(%w) to=f32
  %y: f32[1, 32, 3, 16]@1:16 = conv(%xf, %wf) strides=[1,1] dilations=[1,1] pads=[1,1,1,1])";

constexpr Layer kLayers[] = {
    {"product", "u8", "i8", "tdpbusd", kProduct},
    {"product of signed bytes", "i8", "i8", "tdpbssd", kProduct},
    {"product of bytes without a sign", "u8", "u8", "tdpbuud", kProduct},
    {"ragged product", "u8", "i8", "tdpbusd", kRagged},
    {"ragged product, weights without a sign", "i8", "u8", "tdpbsud", kRagged},
    {"one tile", "u8", "i8", "tdpbusd", kOneTile},
    {"computed operands", "i8", "i8", "tdpbssd", kComputed},
    {"product of bf16", "bf16", "bf16", "tdpbf16ps", kFloats},
    {"padded convolution", "u8", "i8", "tdpbusd", kPadded},
    {"strided convolution", "i8", "i8", "tdpbssd", kStrided},
    {"pointwise convolution", "u8", "i8", "tdpbusd", kPointwise},
    {"convolution of bf16", "bf16", "bf16", "tdpbf16ps", kFloatConvolution},
    {"product of f16", "f16", "f16", "tdpfp16ps", kHalves},
};

// Attention of Q queries, K keys and heads of D and C columns, in bf16, with or without a causal
// mask
std::string attention(int64_t queries, int64_t keys, int64_t depth, int64_t columns, bool causal) {
  std::string text = R"(%q: bf16[2, Q, D] = input
  %k: bf16[2, K, D] = input
  %v: bf16[2, K, C] = input
  %qf: f32[2, Q, D] = cast(%q) to=f32
  %kf: f32[2, K, D] = cast(%k) to=f32
  %vf: f32[2, K, C] = cast(%v) to=f32
  %a: f32[2, Q, K] = matmul(%qf, %kf) trans_b=true
)";
  if (causal)
    text += R"(  %columns: i64[1, K] = iota() shape=[1,K] axis=1
  %rows: i64[Q, 1] = iota() shape=[Q,1] axis=0
  %sees: bool[Q, K] = binary(%columns, %rows) function=le
  %low: f32[] = const [-inf]
  %s: f32[2, Q, K] = select(%sees, %a, %low)
)";
  text += std::string("  %p: f32[2, Q, K] = softmax(") + (causal ? "%s" : "%a") + R"() axis=2
  %pb: bf16[2, Q, K] = cast(%p) to=bf16
  %pf: f32[2, Q, K] = cast(%pb) to=f32
  %y: f32[2, Q, C] = matmul(%pf, %vf))";
  for (const auto& [letter, extent] :
       {std::pair{'Q', queries}, {'K', keys}, {'D', depth}, {'C', columns}})
    for (size_t at = 0; (at = text.find(letter, at)) != std::string::npos;)
      text.replace(at, 1, std::to_string(extent));
  return text;
}

// Layers whose sums are two by two tiles
constexpr const char* kFourTiles[] = {kProduct, kPadded, kPointwise};

Target target_with(const std::string& features, const std::string& more = "") {
  Expected<Target> target = parse_target(
      "triple: x86_64-linux-gnu\ncores: 1\nvector_bits: 512\nfeatures: [" + features + "]\n" + more,
      "tiles.yaml");
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  return *target;
}

const char* const kVectors = "avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx512bf16, fma";

Target amx(const std::string& more = "") {
  return target_with(std::string(kVectors) + ", amx-tile, amx-int8, amx-bf16, amx-fp16", more);
}

// A processor with the AMX feature of this instruction and no other; few have amx-fp16.
Target with_instruction(const std::string& instruction) {
  const std::string type = instruction == "tdpfp16ps"   ? "amx-fp16"
                           : instruction == "tdpbf16ps" ? "amx-bf16"
                                                        : "amx-int8";
  return target_with(std::string(kVectors) + ", amx-tile, " + type);
}

struct Kernels {
  Kernel plain, scheduled;  // of the same parameters
};

// Returns the kernel of the last of `group_count` groups.
Kernels kernels_of(const Layer& layer, const Target& target, size_t group_count = 1) {
  std::string text = layer.text;
  for (const auto& [word, type] : {std::pair{" L[", layer.left}, std::pair{" R[", layer.right}})
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
      text.replace(at + 1, 1, type);
  Expected<Graph> graph = parse_graph("graph @layer() {\n  " + text + "\n  output %y\n}\n");
  REQUIRE_MESSAGE(bool(graph), error_text(graph.takeError()));
  for (const ValueId input : std::vector<ValueId>(graph->inputs()))
    if (const Value value = graph->value(input); value.name == "w") {
      Ints extents;
      for (const Expr& e : value.type.shape) extents.push_back(*as_const(e));
      graph->replace_uses(input,
                          graph->add_constant("weights", Tensor::zeros(value.type.dtype, extents)));
    }
  const std::vector<Group> groups = fuse_groups(*graph);
  REQUIRE(groups.size() == group_count);
  Expected<LoweredGroup> lowered = lower_group(*graph, groups.back(), target);
  REQUIRE_MESSAGE(bool(lowered), error_text(lowered.takeError()));
  Expected<Schedule> schedule = default_schedule(*lowered, target);
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<RunKernel> run = apply_to_run(lowered->kernel, *schedule, &target);
  REQUIRE_MESSAGE(bool(run), error_text(run.takeError()));
  Expected<ArrangedKernel> plain = arranged(*lowered, target);
  REQUIRE_MESSAGE(bool(plain), error_text(plain.takeError()));
  return {std::move(plain->run.kernel), std::move(run->kernel)};
}

// Random bytes; for bf16 and f16, small numbers whose sums are exact in any order.
std::vector<KernelArgument> arguments_of(const Kernel& kernel) {
  std::mt19937 random(5);
  std::vector<KernelArgument> all;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    int64_t count = dtype_bytes(buffer.dtype);
    for (const Expr& extent : buffer.shape) count *= *as_const(extent);
    std::vector<std::byte>& bytes = all.emplace_back().bytes;
    bytes.resize(static_cast<size_t>(count));
    if (buffer.role == BufferRole::output) continue;
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    for (size_t i = 0; is_short_float(buffer.dtype) && i < bytes.size(); i += 2) {
      const auto number = static_cast<float>(static_cast<int>(random() % 16) - 8) / 8;
      const auto half = static_cast<_Float16>(number);
      if (buffer.dtype == DType::f16) std::memcpy(&bytes[i], &half, 2);
      else std::memcpy(&bytes[i], reinterpret_cast<const char*>(&number) + 2, 2);
    }
  }
  return all;
}

// Compares results in f32, which are below 1 here.
float largest_difference(const KernelArgument& a, const KernelArgument& b) {
  REQUIRE(a.bytes.size() == b.bytes.size());
  float largest = 0;
  for (size_t i = 0; i < a.bytes.size(); i += sizeof largest) {
    std::array<float, 2> x = {};
    std::memcpy(x.data(), &a.bytes[i], sizeof largest);
    std::memcpy(&x[1], &b.bytes[i], sizeof largest);
    largest = std::max(largest, std::isfinite(x[0] - x[1]) ? std::abs(x[0] - x[1]) : INFINITY);
  }
  return largest;
}

// Returns the assembly without its comments, which name instructions too.
std::string assembly_of(const Kernel& kernel, const Target& target) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<std::string> assembly = (*backend)->disassemble(kernel, "asm");
  REQUIRE_MESSAGE(bool(assembly), error_text(assembly.takeError()));
  std::istringstream lines(*assembly);
  std::string code;
  for (std::string line; std::getline(lines, line);) code += line.substr(0, line.find('#')) + "\n";
  return code;
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

// Returns the first straight piece of code, from one label or jump to the next, that contains the
// word.
std::string line_with(const std::string& assembly, const std::string& word) {
  std::istringstream lines(assembly);
  std::string part;
  for (std::string line; std::getline(lines, line);) {
    const bool label = line.starts_with(".L"), jump = line.starts_with("\tj");
    if (!label) part += line + "\n";
    if (!label && !jump) continue;
    if (part.find(word) != std::string::npos) return part;
    part.clear();
  }
  return part;
}

}  // namespace

TEST_CASE("sums in tiles are what the plain kernel sums") {
  const Target target = amx();
  for (const Layer& layer : kLayers) {
    CAPTURE(std::string(layer.name));
    const Kernels kernels = kernels_of(layer, target);
    std::vector<KernelArgument> expected = arguments_of(kernels.plain), tiles = expected,
                                compiled = expected;
    REQUIRE(error_text(interpret(kernels.plain, expected)) == "");
    REQUIRE(error_text(interpret(kernels.scheduled, tiles, {}, &target)) == "");
    CHECK(tiles.back().bytes == expected.back().bytes);
    const std::string assembly = assembly_of(kernels.scheduled, target);
    CHECK_MESSAGE(count(assembly, layer.instruction) > 0, assembly);
    CHECK(count(assembly, "ldtilecfg") == 1);
    CHECK(count(assembly, "tilerelease") == 1);
    if (!test::runs(with_instruction(layer.instruction))) {
      MESSAGE("this machine runs no code with it");
      continue;
    }
    const int64_t before = test::AmxEmulator::products();
    test::run_kernel(kernels.scheduled, target, compiled);
    CHECK(compiled.back().bytes == expected.back().bytes);
    CHECK((test::AmxEmulator::products() > before || host_target().has("amx-tile")));
  }
}

TEST_CASE("four tiles of sums stay in registers over the depth") {
  const Target target = amx();
  for (const Layer& layer : kLayers) {
    if (std::ranges::none_of(kFourTiles, [&](const char* text) { return text == layer.text; }))
      continue;
    CAPTURE(std::string(layer.name));
    const std::string assembly = assembly_of(kernels_of(layer, target).scheduled, target);
    const std::string inner = line_with(assembly, layer.instruction);
    CAPTURE(inner);
    CHECK(count(inner, layer.instruction) == 4);
    CHECK(count(inner, "tileloadd") == 4);
    CHECK(count(inner, "tilestored") == 0);
    CHECK(count(inner, "%rsp") == 0);
    CHECK(count(assembly, "tilestored") == 4);
    CHECK(count(assembly, "tilezero") == 4);
  }
}

TEST_CASE("a target without tiles gets none, and neither do products of a few rows") {
  const Target vectors = target_with(kVectors), tiles = amx();
  for (const Layer& layer : kLayers) {
    CAPTURE(std::string(layer.name));
    CHECK(count(assembly_of(kernels_of(layer, vectors).scheduled, vectors), "tile") == 0);
  }
  const Layer row = {"a row", "u8", "i8", "vpdpbusd", R"(%x: L[1, 192] = input
  %w: R[192, 96] = input
  %y: i32[1, 96] = matmul(%x, %w))"};
  const std::string assembly = assembly_of(kernels_of(row, tiles).scheduled, tiles);
  CHECK(count(assembly, "vpdpbusd") > 0);
  CHECK(count(assembly, "tile") == 0);
}

TEST_CASE("a target that cannot load, zero or store a tile multiplies in vectors") {
  for (const char* lacking : {"x86.amx.load.i8", "x86.amx.zero.i32", "x86.amx.store.i32"}) {
    CAPTURE(std::string(lacking));
    const Target target = amx(std::string("without_intrinsics: [") + lacking + "]\n");
    const std::string assembly = assembly_of(kernels_of(kLayers[0], target).scheduled, target);
    CHECK(count(assembly, "vpdpbusd") > 0);
    CHECK(count(assembly, "tile") == 0);
  }
}

TEST_CASE("attention in tiles is what the plain kernel computes") {
  struct Sizes {
    int64_t queries, keys, depth, columns;
    bool causal;
  };
  const Target target = amx();
  // Sizes: whole tiles, ragged ones, rows of one tile, scores that no stack holds
  for (const Sizes& n : {Sizes{64, 64, 64, 64, false},
                         {50, 77, 56, 60, false},
                         {100, 100, 32, 64, false},
                         {48, 260, 32, 16, false},
                         {64, 64, 64, 64, true},
                         {70, 70, 32, 16, true},
                         {75, 100, 64, 30, true}}) {
    CAPTURE(n.queries);
    CAPTURE(n.keys);
    CAPTURE(n.causal);
    const std::string text = attention(n.queries, n.keys, n.depth, n.columns, n.causal);
    // With a mask, the first group makes it.
    const Kernels kernels = kernels_of({"attention", "", "", "", text.c_str()}, target,
                                       n.causal ? 2 : 1);
    std::vector<KernelArgument> expected = arguments_of(kernels.plain), tiles = expected,
                                compiled = expected;
    REQUIRE(error_text(interpret(kernels.plain, expected)) == "");
    REQUIRE(error_text(interpret(kernels.scheduled, tiles, {}, &target)) == "");
    CHECK(largest_difference(tiles.back(), expected.back()) < 1e-5);
    const std::string assembly = assembly_of(kernels.scheduled, target);
    CHECK(count(assembly, "\ttdpbf16ps") > 0);
    CHECK(count(assembly, "\tvdpbf16ps") == 0);
    CHECK(count(assembly, "ldtilecfg") == 1);
    if (!test::runs(with_instruction("tdpbf16ps"))) continue;
    test::run_kernel(kernels.scheduled, target, compiled);
    // A weight between two numbers of bf16 may be rounded to either.
    CHECK(largest_difference(compiled.back(), expected.back()) < 0.02);
  }
}
