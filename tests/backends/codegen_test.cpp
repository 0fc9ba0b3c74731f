// The shape of the machine code: register tiles without spills, one fused multiply-add a vector, no
// calls.
#include <doctest/doctest.h>
#include <llvm/Support/FormatVariadic.h>

#include "backends/cpu/traits.h"
#include "tests/backends/harness.h"
#include "tests/ir/parsed.h"

using namespace tw;

namespace {
// A tile of `rows` x `vectors` accumulators of `lanes` floats, whole K, weights in panels.
std::string gemm(int rows, int vectors, int lanes) {
  std::string text =
      R"(kernel @gemm(x: in f32[84, 64], w: const f32[2, 64, $N], y: out f32[84, $T]) {
    temp c: f32[$M, $N] register
    for io in $I { for jo in 2 {
      for i0 in $M unroll { for j0 in $V unroll { for l0 in $L vector { c0: c[i0, j0 * $L + l0] = 0.0 } } }
      for k in 64 reduce { for i in $M unroll { for j in $V unroll { for l in $L vector {
        c: c[i, j * $L + l] += x[io * $M + i, k] * w[jo, k, j * $L + l]
      } } } }
      for i2 in $M unroll { for j2 in $V unroll { for l2 in $L vector {
        y: y[io * $M + i2, jo * $N + j2 * $L + l2] = max(0.0, c[i2, j2 * $L + l2])
      } } }
    } }
  })";
  for (auto [key, value] : {std::pair<const char*, int>{"$M", rows},
                            {"$I", 84 / rows},
                            {"$V", vectors},
                            {"$L", lanes},
                            {"$N", vectors * lanes},
                            {"$T", 2 * vectors * lanes}})
    for (size_t at; (at = text.find(key)) != std::string::npos;)
      text.replace(at, 2, std::to_string(value));
  return text;
}

Target znver4() {
  Target t = baseline_target(Arch::x86_64);
  t.cpu = "znver4", t.vector_bits = 512;
  t.features = {"avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "fma"};
  return t;
}
Target haswell() {
  Target t = baseline_target(Arch::x86_64);
  t.cpu = "haswell", t.vector_bits = 256;
  t.features = {"avx2", "fma"};
  return t;
}
Target aarch64() { return baseline_target(Arch::aarch64); }
Target cortex_m55() {
  Target t = baseline_target(Arch::arm);
  t.triple = "thumbv8.1m.main-none-eabihf";
  t.cpu = "cortex-m55";
  t.features = {"dsp", "fp-armv8d16", "fp16", "fp64", "mve.fp", "vfp4d16sp"};
  return t;
}

std::string assembly(const Target& target, const Kernel& kernel) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  auto text = (*backend)->disassemble(kernel, "asm");
  REQUIRE_MESSAGE(bool(text), error_text(text.takeError()));
  return std::move(*text);
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string loop_body(const std::string& assembly, const std::string& var) {
  size_t begin = assembly.find("%loop." + var + "\n");
  size_t end = assembly.find("%end." + var + "\n", begin);
  REQUIRE(begin != std::string::npos);
  return assembly.substr(begin, end - begin);
}

KernelReport report(const Target& target, const Kernel& kernel) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Program program;
  program.name = "p";
  program.kernels = {kernel};
  auto code = (*backend)->compile(program, {});
  REQUIRE_MESSAGE(bool(code), error_text(code.takeError()));
  return code->kernels[0];
}
}  // namespace

TEST_CASE("a register tile is one fused multiply-add per vector and no spill") {
  struct Tile {
    Target target;
    int rows, vectors, lanes;
    const char* instruction;
  };
  for (const Tile& t : {Tile{znver4(), 14, 2, 16, "vfmadd"}, Tile{znver4(), 28, 1, 16, "vfmadd"},
                        Tile{znver4(), 6, 4, 16, "vfmadd"}, Tile{haswell(), 6, 2, 8, "vfmadd"},
                        Tile{haswell(), 4, 3, 8, "vfmadd"}, Tile{aarch64(), 7, 3, 4, "fmla"}}) {
    CAPTURE(t.rows);
    CAPTURE(t.vectors);
    Kernel kernel = test::parsed_kernel(gemm(t.rows, t.vectors, t.lanes));
    std::string body = loop_body(assembly(t.target, kernel), "k");
    CHECK(count(body, t.instruction) == t.rows * t.vectors);
    CHECK(count(body, "call") == 0);
    CHECK(count(body, "(%rsp)") == 0);
    CHECK(report(t.target, kernel).spills == 0);
    CHECK(report(t.target, kernel).reloads == 0);
  }
}

TEST_CASE("one lane of a narrowed vector is stored in the narrow type") {
  std::string text = assembly(znver4(),
                              test::parsed_kernel(R"(kernel @k(x: in i32[17], y: out i8[17]) {
    for j in 2 unroll { for l in 16 vector {
      if j * 16 + l < 17 { y: y[j * 16 + l] = i8(x[j * 16 + l]) }
    } }
  })"));
  CHECK(count(text, "vpmovdb") == 1);
  CHECK(count(text, "movb") == 1);
  CHECK(count(text, "vmovss") == 0);
}

TEST_CASE("spills of a tile that needs too many registers are counted") {
  KernelReport r = report(znver4(), test::parsed_kernel(gemm(3, 12, 16)));
  CHECK(r.spills + r.reloads > 0);
  CHECK(r.name == "gemm");
  CHECK(r.code_bytes > 500);
}

TEST_CASE("without fused multiply-add in the instruction set there is none in the code") {
  std::string text = assembly(baseline_target(Arch::x86_64), test::parsed_kernel(gemm(2, 2, 4)));
  CHECK(count(text, "fma") == 0);
  CHECK(count(loop_body(text, "k"), "mulps") == 4);
  CHECK(count(loop_body(text, "k"), "addps") == 4);
}

TEST_CASE("only checked extensions are used, whatever the cpu has") {
  std::string text = assembly(znver4(),
                              test::parsed_kernel(R"(kernel @k(x: in f32[64], y: out f32[64]) {
    for i in 4 { for l in 16 vector { y: y[i * 16 + l] = exp(x[i * 16 + l]) } }
  })"));
  CHECK(count(text, "vfmadd") > 0);
  CHECK(count(text, "zmm") > 0);
  CHECK(count(text, "call") <= 1);  // the entry calls the kernel
}

TEST_CASE("a description says what code may use, whatever its processor has") {
  Target board = baseline_target(Arch::aarch64);
  board.features.emplace_back("crc");
  for (const char* cpu : {"cortex-a72", "neoverse-v1"}) {  // LLVM knows aes and SVE there
    CAPTURE(cpu);
    board.cpu = cpu;
    auto traits = cpu_traits(board);
    if (!traits) FAIL(error_text(traits.takeError()));
    CHECK(traits->checked == std::vector<std::string>{"crc"});
    CHECK(traits->tune_cpu == cpu);
  }
}

TEST_CASE("disassembly has two stages") {
  auto backend = make_backend(znver4());
  REQUIRE(bool(backend));
  Kernel kernel = test::parsed_kernel(gemm(4, 2, 16));
  auto text = (*backend)->disassemble(kernel, "llvm");
  REQUIRE(bool(text));
  CHECK(count(*text, "llvm.fma.v16f32") >= 8);
  CHECK(count(*text, "alloca") == 0);
  CHECK(error_text((*backend)->disassemble(kernel, "ptx").takeError()).find("llvm and asm") !=
        std::string::npos);
}

TEST_CASE("assembly stands under the lines of the kernel") {
  std::string text = assembly(znver4(), test::parsed_kernel(gemm(4, 2, 16)));
  CHECK(text.find("# 1: kernel @gemm") == 0);
  std::string body = loop_body(text, "k");
  size_t line = body.find(": ");
  REQUIRE(line != std::string::npos);
  CHECK(body.find("c[") < body.find("vfmadd"));
  CHECK(count(text, ".loc") == 0);
  CHECK(count(text, "debug_") == 0);
  CHECK(count(text, ".Ltmp") == 0);
  std::string arm = assembly(aarch64(), test::parsed_kernel(gemm(4, 2, 4)));
  CHECK(arm.find("// 1: kernel @gemm") == 0);
}

TEST_CASE("fast_math relaxes arithmetic, and nothing else") {
  Kernel kernel = test::parsed_kernel(R"(kernel @k(x: in f32[16], y: in f32[16], z: out f32[16]) {
    for l in 16 vector { z: z[l] = select(is_nan(x[l]), 0.0, max(0.5, x[l]) / y[l] + exp(x[l])) }
  })");
  for (bool fast : {false, true}) {
    Target target = znver4();
    target.fast_math = fast;
    auto backend = make_backend(target);
    REQUIRE(bool(backend));
    auto text = (*backend)->disassemble(kernel, "llvm");
    REQUIRE(bool(text));
    CHECK(count(*text, "fdiv nnan nsz arcp <16 x float>") == fast);
    CHECK(count(*text, "fadd nnan nsz arcp <16 x float>") == fast);
    CHECK(count(*text, " nnan nsz arcp ") == 2 * fast);
    CHECK(count(*text, "fcmp nnan") + count(*text, "select nnan") + count(*text, "contract") +
              count(*text, "reassoc") ==
          0);
    CHECK(count(*text, "fcmp uno") + count(*text, "fcmp ord") == 1);
  }
}

TEST_CASE("one thread needs no pool, whatever the extents round a parallel loop are") {
  const std::string text = assembly(
      baseline_target(Arch::x86_64),
      test::parsed_kernel(R"(kernel @k[n](x: in f32[n, 64], y: out f32[n, 64]) {
    for t in n { for i in 64 parallel { y: y[t, i] = x[t, i] + 1.0 } }
  })"));
  CHECK(count(text, "tw_parallel_for") == 0);
}

// LLVM would fold the product into a fixed-point conversion, and take the outer loop's step, a
// register with the constant 1, as its number of bits.
TEST_CASE("conversions of MVE beside a product by a power of two") {
  const std::string text = assembly(cortex_m55(), test::parsed_kernel(R"(
    kernel @k(x: in i8[1000], w: in f32[1000], y: out f32[1000], z: out i32[1000]) {
      for i in 250 { for l in 4 vector {
        y: y[i * 4 + l] = f32(i32(x[i * 4 + l]) - 3:i32) * 0.5
      } }
      for j in 250 { for m in 4 vector { z: z[j * 4 + m] = i32(w[j * 4 + m] * 4.0) } }
    })"));
  CHECK(count(text, "vcvt.f32.s32\tq") == 1);
  CHECK(count(text, "vcvt.s32.f32\tq") == 1);
  CHECK(count(text, "vmul.f32") == 2);
}

// LLVM alone never ends on these: it extends numbers that fill a little more than half a register.
TEST_CASE("MVE extends numbers that lie behind a border") {
  for (const auto& [type, lanes] : {std::pair("i8", 9), std::pair("i16", 5)}) {
    CAPTURE(type);
    const std::string count = std::to_string(lanes);
    const std::string text = assembly(cortex_m55(), test::parsed_kernel(llvm::formatv(R"(
    kernel @k(x: in {0}[8, 6], t: const i8[256], y: out i8[6, {1}]) {{
      for i in 6 {{ for l in {1} vector {{
        y: y[i, l] = select(0 < l, t[i64(x[l - 1, i]) + 128], 0:i8)
      } }
    })",
                                                                                      type, count)
                                                                            .str()));
    CHECK(text.find("strb") != std::string::npos);
  }
}

TEST_CASE("MVE has vectors of halves that become doubles") {
  const std::string text = assembly(cortex_m55(), test::parsed_kernel(R"(
    kernel @k(x: in f16[4], w: in f16[4], y: out f32[4]) {
      for l in 4 vector { y: y[l] = pow(f32(x[l]), f32(w[l])) }
    })"));
  CHECK(count(text, "vcvt.f64.f32") >= 8);
}

// A number in a register of the core stands on the right, so that a comparison with it as the
// greater one would be `lt`, which holds for NaN.
TEST_CASE("MVE compares with a greater number in a vector") {
  for (const char* condition : {"x[l] < 0.5", "x[l] <= 0.5", "x[l] < 0.0", "is_nan(x[l])"}) {
    CAPTURE(condition);
    const std::string text = assembly(
        cortex_m55(), test::parsed_kernel(
                          std::string("kernel @k(x: in f32[4], y: out f32[4]) { for l in 4 vector "
                                      "{ y: y[l] = select(") +
                          condition + ", 1.0, x[l]) } }"));
    int comparisons = 0;
    for (const char* mnemonic : {"vpt.f32", "vpte.f32", "vcmp.f32", "vcmpt.f32", "vcmpe.f32"})
      for (size_t at = text.find(mnemonic); at != std::string::npos;
           at = text.find(mnemonic, at + 1), ++comparisons) {
        const std::string line = text.substr(at, text.find('\n', at) - at);
        CHECK_MESSAGE(count(line, ", q") == 2, line);
      }
    CHECK(comparisons > 0);
  }
}
