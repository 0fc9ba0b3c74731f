// On every architecture, all operators and conversions compile without a call into any library: the
// linker refuses unknown symbols.
#include <doctest/doctest.h>

#include "runtime/embedded.h"
#include "tests/backends/harness.h"

using namespace tw;

namespace {
const DType kAll[] = {DType::f32, DType::f64, DType::f16,    DType::bf16, DType::i8,
                      DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                      DType::u32, DType::u64, DType::boolean};

Target target_of(Arch arch, std::vector<std::string> features = {}) {
  Target t = baseline_target(arch);
  for (std::string& f : features) t.features.push_back(std::move(f));
  return t;
}

// Builds a kernel of stores, each to its own row of y: y[row, i] = f(x[i], z[i]), in lanes of 8 and
// once more in scalars.
class Rows {
 public:
  Rows(const char* name, DType from, DType to) : from_(from) {
    kernel_.name = name;
    for (const char* n : {"x", "z", "y"}) {
      Buffer b;
      b.name = n, b.dtype = *n == 'y' ? to : from,
      b.role = *n == 'y' ? BufferRole::output : BufferRole::input;
      b.shape = {32};
      kernel_.buffers.push_back(b);
    }
  }
  template <class F>
  void add(const F& f) {
    for (bool lanes : {true, false}) {
      std::string n = std::to_string(rows_++);
      Expr at = var("i" + n) * 8 + var("l" + n);
      stmt::Store s;
      s.label = "y" + n, s.buffer = BufferId{2}, s.indices = {Expr(rows_ - 1), at};
      s.value = f(load(BufferId{0}, from_, {at}), load(BufferId{1}, from_, {at}));
      body_.push_back(make_loop(
          "i" + n, 4,
          make_loop("l" + n, 8, make_store(s), lanes ? LoopKind::vector : LoopKind::serial)));
    }
  }
  Kernel done() {
    kernel_.buffers[2].shape = {rows_, 32};
    kernel_.body = make_sequence(body_);
    return kernel_;
  }

 private:
  Kernel kernel_;
  DType from_;
  int64_t rows_ = 0;
  std::vector<Stmt> body_;
};

// Compiles and links. An undefined symbol fails the link.
void check_links(const Target& target, const Kernel& kernel) {
  CAPTURE(target.triple);
  CAPTURE(target.features.size());
  CAPTURE(kernel.name);
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  auto object = (*backend)->compile_kernel(kernel);
  REQUIRE_MESSAGE(bool(object), error_text(object.takeError()));
  LinkRequest request;
  request.objects = {*object}, request.fallback = {std::string(runtime_object(target.triple))},
  request.exports = {kernel.name};
  auto image = link_shared(request);
  CHECK_MESSAGE(bool(image), error_text(image.takeError()));
}

std::vector<Target> targets() {
  return {target_of(Arch::x86_64),
          target_of(Arch::x86_64, {"avx2", "fma"}),
          target_of(Arch::x86_64, {"avx512f", "avx512bw", "avx512vl", "avx512dq"}),
          target_of(Arch::arm),
          target_of(Arch::arm, {"hwdiv-arm", "fp16"}),
          target_of(Arch::aarch64),
          target_of(Arch::aarch64, {"fullfp16", "dotprod", "sve"}),
          target_of(Arch::riscv64),
          target_of(Arch::riscv64, {"v"})};
}
}  // namespace

TEST_CASE("elementary functions need no library") {
  for (const Target& target : targets())
    for (DType t : {DType::f32, DType::f64, DType::f16}) {
      Rows rows("functions", t, t);
      for (int op = 0; op < kUnaryOpCount; ++op) {
        UnaryOp u = static_cast<UnaryOp>(op);
        if (u == UnaryOp::is_nan || u == UnaryOp::is_inf || u == UnaryOp::logical_not ||
            operand_error(u, t))
          continue;
        rows.add([&](Expr x, Expr) { return unary(u, x); });
      }
      for (BinaryOp op : {BinaryOp::add, BinaryOp::div, BinaryOp::mod, BinaryOp::floor_div,
                          BinaryOp::floor_mod, BinaryOp::pow, BinaryOp::min, BinaryOp::max})
        rows.add([&](Expr x, Expr z) { return binary(op, x, z); });
      check_links(target, rows.done());
    }
}

TEST_CASE("conversions between all types need no library") {
  for (const Target& target : targets())
    for (DType from : kAll)
      for (DType to : kAll) {
        Rows rows("conversions", from, to);
        rows.add([&](Expr x, Expr) { return cast(to, x); });
        if (!is_float(to) && to != DType::boolean && from != DType::boolean)
          rows.add([&](Expr x, Expr) { return cast(to, x, true); });
        check_links(target, rows.done());
      }
}

TEST_CASE("integer operators need no library") {
  for (const Target& target : targets())
    for (DType t : kAll) {
      if (is_float(t) || t == DType::boolean) continue;
      Rows rows("integers", t, t);
      for (BinaryOp op :
           {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div, BinaryOp::mod,
            BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::pow, BinaryOp::min, BinaryOp::max,
            BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor, BinaryOp::shl, BinaryOp::shr})
        rows.add([&](Expr x, Expr z) { return binary(op, x, z); });
      check_links(target, rows.done());
    }
}
