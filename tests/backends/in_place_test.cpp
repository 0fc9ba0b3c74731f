// Compiled kernels whose output may share an input's memory: values are the same in place and
// elsewhere, and LLVM gets no promise that would forbid it.
#include "tests/backends/oracle.h"

using namespace tw;

namespace {

// Random whole numbers, whose sums are exact
AlignedBytes whole_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  AlignedBytes bytes(static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(random() % 9) - 4;
    std::memcpy(bytes.data + static_cast<size_t>(i) * sizeof(float), &value, sizeof value);
  }
  return bytes;
}

// Runs the kernel with its one output in memory of its own, and in place of each input that it
// names. All results equal the interpreter's.
void check_in_place(const std::string& text) {
  const Kernel kernel = test::sound_kernel(text);
  std::vector<KernelArgument> expected;
  std::vector<AlignedBytes> initial;
  size_t out = 0;
  for (const Buffer& b : kernel.buffers) {
    if (b.role == BufferRole::temp) continue;
    if (b.role == BufferRole::output) out = initial.size();
    initial.push_back(whole_numbers(element_count(b, {}), static_cast<unsigned>(initial.size())));
    expected.push_back({{initial.back().data, initial.back().data + initial.back().bytes}});
  }
  REQUIRE(error_text(interpret(kernel, expected)) == "");
  AlignedBytes workspace(size_t(
      eval_int(workspace_layout(kernel).bytes, [](std::string_view) { return int64_t{1}; })));
  std::vector<size_t> places = {out};
  for (const std::string& input : kernel.buffers[out].in_place)
    places.push_back(static_cast<size_t>(kernel.find_buffer(input)->index));
  REQUIRE(places.size() > 1);
  for (const Target& target : {host_target(), baseline_target(Arch::x86_64)}) {
    CAPTURE(target.cpu);
    auto compiled = LoadedKernel::compile(target, kernel);
    REQUIRE_MESSAGE(bool(compiled), error_text(compiled.takeError()));
    for (size_t place : places) {
      CAPTURE(place);
      AlignedBytes bytes(initial[place].bytes);
      std::memcpy(bytes.data, initial[place].data, bytes.bytes);
      std::vector<void*> pointers;
      for (const AlignedBytes& a : initial) pointers.push_back(a.data);
      pointers[out] = pointers[place] = bytes.data;
      (*compiled)(pointers, workspace.data);
      CHECK(bytes.intact());
      CHECK(std::memcmp(bytes.data, expected[out].bytes.data(), bytes.bytes) == 0);
    }
  }
}

}  // namespace

TEST_CASE("in place: tiles of sums and a residual") {
  check_in_place(
      R"(kernel @gemm(x: in f32[24, 20], w: const f32[20, 32], r: in f32[24, 32], y: out f32[24, 32] inplace r) {
    temp c: f32[4, 32] register
    for io in 6 parallel {
      for i0 in 4 unroll { for j0 in 2 unroll { for l0 in 16 vector { c0: c[i0, j0 * 16 + l0] = 0.0 } } }
      for k in 20 reduce { for i in 4 unroll { for j in 2 unroll { for l in 16 vector {
        c: c[i, j * 16 + l] += x[io * 4 + i, k] * w[k, j * 16 + l]
      } } } }
      for i2 in 4 unroll { for j2 in 2 unroll { for l2 in 16 vector {
        y: y[io * 4 + i2, j2 * 16 + l2] = max(0.0, c[i2, j2 * 16 + l2] + r[io * 4 + i2, j2 * 16 + l2])
      } } }
    }
  })");
}

TEST_CASE("in place: masked tails, single elements, either of two inputs") {
  check_in_place(R"(kernel @sum(a: in f32[45], b: in f32[45], y: out f32[45] inplace b inplace a) {
    for i in 3 { for l in 16 vector { if i * 16 + l < 45 { s: y[i * 16 + l] = a[i * 16 + l] * 2.0 + b[i * 16 + l] } } }
  })");
  check_in_place(
      "kernel @sum(a: in f32[9, 5], y: out f32[9, 5] inplace a) { for i in 9 vector { for j in 5 "
      "unroll { s: y[8 - i, j] = a[8 - i, j] + 1.0 } } }");
}

TEST_CASE(
    "in place: a row is read several times before it is written, a matrix before it is "
    "transposed") {
  check_in_place(R"(kernel @rows(a: in f32[6, 32], y: out f32[6, 32] inplace a) {
    temp sum: f32[6] stack
    for i in 6 parallel {
      for k in 32 reduce { sum: sum[i] += a[i, k] init 0.0 }
      for j in 32 vector { y: y[i, j] = a[i, j] * 32.0 - sum[i] }
    }
  })");
  check_in_place(R"(kernel @turn(a: in f32[16, 16], y: out f32[16, 16] inplace a) {
    temp t: f32[16, 16] stack
    for i in 16 unroll { for j in 16 vector { t: t[i, j] = a[j, i] } }
    for p in 16 { for q in 16 vector { y: y[p, q] = t[p, q] } }
  })");
}

TEST_CASE("in place: only the two that may coincide lose noalias") {
  auto backend = make_backend(host_target());
  REQUIRE(bool(backend));
  auto text = (*backend)->disassemble(
      test::sound_kernel("kernel @sum(a: in f32[8], b: in f32[8], y: out f32[8] inplace b) { for i "
                         "in 8 { s: y[i] = a[i] + b[i] } }"),
      "llvm");
  REQUIRE(bool(text));
  auto promised = [&](const std::string& name) {
    const size_t end = text->find(" %" + name), begin = text->rfind("ptr", end);
    REQUIRE(end != std::string::npos);
    return text->substr(begin, end - begin).find("noalias") != std::string::npos;
  };
  CHECK(promised("a"));
  CHECK_FALSE(promised("b"));
  CHECK_FALSE(promised("y"));
}
