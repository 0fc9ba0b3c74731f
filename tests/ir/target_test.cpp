#include "ir/target.h"

#include <doctest/doctest.h>

#include "ir/program.h"

using namespace tw;

TEST_CASE("targets print canonically and hash what changes code") {
  Target t;
  t.name = "my board: rev 2";
  t.triple = "aarch64-linux-gnu";
  t.cpu = "cortex-a72";
  t.features = {"neon", "crc"};
  t.cores = 4;
  CHECK(print(t) ==
        "name: \"my board: rev 2\"\ntriple: aarch64-linux-gnu\ncpu: cortex-a72\nfeatures: [crc, "
        "neon]\ncores: 4\n"
        "caches: {l1: 32768, l2: 262144, l3: 0}\nvector_bits: 128\nvector_registers: "
        "16\nfast_math: false\naccuracy: 1e-04\n");
  CHECK(t.arch() == Arch::aarch64);
  CHECK(t.has("crc"));
  CHECK(!t.has("sve"));
  CHECK(t.lanes(4) == 4);
  Target other = t;
  other.name = "x";
  other.cores = 8;
  other.accuracy = 1;
  other.features = {"crc", "neon"};
  CHECK(codegen_hash(other) == codegen_hash(t));
  other.l2_bytes = 1;
  CHECK(codegen_hash(other) != codegen_hash(t));
}

TEST_CASE("architectures of triples") {
  for (Arch arch : {Arch::x86_64, Arch::aarch64, Arch::arm, Arch::riscv64})
    CHECK(baseline_target(arch).arch() == arch);
  CHECK(arch_from_triple("arm64-apple-macos") == Arch::aarch64);
  CHECK(arch_from_triple("armv7a-linux-gnueabihf") == Arch::arm);
  CHECK(!arch_from_triple("armeb-linux"));
  CHECK(!arch_from_triple("mips64-linux-gnu"));
  CHECK(!arch_from_triple(""));
}

TEST_CASE("a kernel's global temps share one aligned workspace") {
  auto kernel = parse_kernel(
      "kernel @k[n](x: in f32[n], y: out f32[n]) { temp a: f32[n, 16] temp r: f32[4] register temp "
      "b: i8[3] temp c: f32[n] temp d: i8[1] }");
  REQUIRE(kernel);
  WorkspaceLayout layout = workspace_layout(*kernel);
  REQUIRE(layout.offsets.size() == kernel->buffers.size());
  CHECK(!layout.offsets[0].defined());
  CHECK(to_string(layout.offsets[2]) == "0");
  CHECK(!layout.offsets[3].defined());
  CHECK(to_string(layout.offsets[4]) == "n * 64");
  CHECK(to_string(layout.offsets[5]) == "n * 64 + 64");
  CHECK(eval_int(layout.bytes, [](std::string_view) { return 17; }) == 17 * 64 + 64 + 128 + 64);
}

TEST_CASE("a program prints whole") {
  Program p;
  p.name = "digits";
  p.symbols = {"batch"};
  p.inputs = {{"x", DType::f32, {var("batch"), 4}}};
  p.outputs = {{"y", DType::f32, {var("batch")}}};
  auto kernel = parse_kernel(
      "kernel @k[n](x: in f32[n, 4], w: const f32[4], y: out f32[n]) { for i in n { s: y[i] += "
      "x[i, 0] * w[0] init 0.0 } }");
  REQUIRE(kernel);
  p.kernels = {*kernel};
  KernelCall call;
  call.kernel = 0;
  call.symbols = {var("batch")};
  call.arguments = {
      {Place::input, 0, 0}, {Place::weights, 0, 64}, {Place::arena, 0, var("batch") * 64}};
  call.name = "Gemm_0";
  p.calls = {call};
  p.arena_bytes = var("batch") * 128;
  p.weight_bytes = 128;
  p.weights = {{64, 16, {}, std::make_shared<Kernel>(*kernel), "fc.w"}};
  CHECK(
      print(p) ==
      "program \"digits\"[batch] {\n  input 0 \"x\": f32[batch, 4]\n  output 0 \"y\": f32[batch]\n"
      "  arena batch * 128 bytes ; 0 without sharing\n  weights 128 bytes\n  weight [64] \"fc.w\": "
      "16 bytes packed by @k\n"
      "  call @k[batch](input 0, weights[64], arena[batch * 64]) workspace 0 ; Gemm_0\n}\n\n" +
          print(*kernel));
}
