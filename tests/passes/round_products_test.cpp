// round-products rounds operands, so it has no place in run_pass.h.
#include <doctest/doctest.h>

#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "passes/precision.h"
#include "tests/ir/graph_testing.h"

using namespace tw;

namespace {

const char* const kMma = R"(kernel @mma(a: in f32[32, 4], b: in f32[32, 2], c: out f32[32, 4]) {
    for i in 16 { for j in 8 { for k in 8 reduce {
      c: c[i % 8 * 4 + j // 2, i // 8 * 2 + j % 2] +=
        tf32(a[i % 8 * 4 + k % 4, k // 4 * 2 + i // 8]) * tf32(b[j * 4 + k % 4, k // 4])
    } } }
  })";

Target gpu(const std::string& semantics, Precision precision) {
  Target device;
  device.name = "gpu";
  device.driver = "cuda";
  device.triple = "x86_64-linux-gnu";
  device.max_group = 1024;
  device.local_bytes = 48 << 10;
  device.axes = {{"block.x", "block", 0}, {"thread.x", "thread", 1024}};
  device.scopes.push_back({"shared", "block"});
  Intrinsic mma;
  mma.name = "mma";
  mma.semantics = semantics;
  mma.emit.threads = 32;
  device.intrinsics.push_back(mma);
  Target target;
  target.name = "pc";
  target.triple = device.triple;
  target.devices.push_back(device);
  set_precision(target, precision);
  return target;
}

std::string exact_mma() {
  std::string text = kMma;
  for (size_t at; (at = text.find("tf32(")) != std::string::npos;) text.erase(at, 4);
  return text;
}

const char* const kProducts = R"(graph @t() {
  %x: f32[64, 32] = input
  %i: f32[1, 8, 12, 12] = input
  %w: f32[32, 64] = input
  %v: f32[32, 8, 3, 3] = input
  %n: f32[32, 4] = input
  %h: f16[64, 32] = input
  %u: f16[32, 64] = input
  %a: f32[64, 64] = matmul(%x, %w)
  %b: f32[1, 32, 12, 12] = conv(%i, %v) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
  %few: f32[64, 4] = matmul(%x, %n)
  %half: f16[64, 64] = matmul(%h, %u)
  output %a
  output %b
  output %few
  output %half
})";

struct Rounded {
  Graph graph;
  std::set<std::string> layers;
};

Rounded rounded(const Target& target, const std::set<std::string>& exact = {}) {
  PassContext context{target};
  context.exact = exact;
  Rounded out{test::must(parse_graph(kProducts)), {}};
  const bool changed = test::must(find_pass("round-products")->run(out.graph, context));
  REQUIRE(error_text(verify(out.graph)) == "");
  for (const auto& [name, layer] : context.narrowed) {
    CHECK(layer.numbers == "tf32");
    out.layers.insert(name);
  }
  CHECK(changed == !out.layers.empty());
  return out;
}

}  // namespace

TEST_CASE("round-products rounds both operands of products in tiles, in their kernels") {
  const Rounded both = rounded(gpu(kMma, Precision::tf32));
  CHECK(both.layers == std::set<std::string>{"a", "b"});
  const std::string text = print(both.graph);
  CHECK(text.find("%a_x: f32[64, 32] = unary(%x) function=tf32") != std::string::npos);
  CHECK(text.find("%a: f32[64, 64] = matmul(%a_x, %a_w)") != std::string::npos);
  CHECK(text.find("%b: f32[1, 32, 12, 12] = conv(%b_x, %b_w)") != std::string::npos);
  const Target target = gpu(kMma, Precision::tf32);
  CHECK(fuse_groups(both.graph).size() == 4);
  CHECK(fuse_groups(both.graph, &target.main_device()).size() == 4);
}

TEST_CASE("round-products leaves layers that are to be exact, and other precisions") {
  const Target target = gpu(kMma, Precision::tf32);
  CHECK(rounded(target, {"a"}).layers == std::set<std::string>{"b"});
  CHECK(rounded(target, {"a", "b"}).layers.empty());
  for (const Precision other : {Precision::fp32, Precision::bf16, Precision::automatic})
    CHECK(rounded(gpu(kMma, other)).layers.empty());
}

TEST_CASE("tf32 wants an instruction for it, and auto does not take it") {
  CHECK(error_text(check_precision(gpu(kMma, Precision::tf32))) == "");
  CHECK(precision_of(gpu(kMma, Precision::automatic)) == Precision::fp32);
  Target processor = gpu(kMma, Precision::tf32);
  processor.devices.clear();
  for (const Target& without : {processor, gpu(exact_mma(), Precision::tf32)})
    CHECK(error_text(check_precision(without))
              .find("has no instruction that threads multiply tf32 with together") !=
          std::string::npos);
}
