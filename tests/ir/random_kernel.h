// Random kernels of every element type and construct, legal for the verifier, for property tests of
// the text form.
#pragma once
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw::testing {

class RandomKernels {
 public:
  explicit RandomKernels(uint64_t seed) : rng_(seed) {}

  Kernel kernel() {
    kernel_ = {};
    kernel_.name = "k" + std::to_string(pick(100));
    if (pick(2)) kernel_.symbols = {"batch"};
    size_t parameters = 2 + pick(3), temps = pick(3);
    for (size_t b = 0; b < parameters + temps; ++b) {
      Buffer buffer{.name = "b" + std::to_string(b), .dtype = dtype(), .shape = {}};
      buffer.role = b >= parameters ? BufferRole::temp
                    : b == 0        ? BufferRole::input
                    : b == 1        ? BufferRole::output
                                    : BufferRole::constant;
      for (size_t d = pick(4); d > 0; --d) buffer.shape.push_back(extent());
      if (buffer.role == BufferRole::temp && pick(2)) buffer.scope = "stack";
      kernel_.buffers.push_back(buffer);
    }
    names_ = 0;
    vars_ = kernel_.symbols;
    kernel_.body = make_sequence({statement(3), statement(2)});
    return kernel_;
  }

  Expr expr(DType type, int depth) {
    if (depth == 0) return leaf(type);
    switch (pick(6)) {
      case 0: return leaf(type);
      case 1:
        return select(expr(DType::boolean, depth - 1), expr(type, depth - 1),
                      expr(type, depth - 1));
      case 2: return cast(type, expr(dtype(), depth - 1), pick(2) != 0);
      case 3: {
        auto op = static_cast<UnaryOp>(pick(kUnaryOpCount));
        bool asks = op == UnaryOp::is_nan || op == UnaryOp::is_inf;
        DType from = asks ? DType::f32 : type;
        bool fits = !operand_error(op, from) && asks == (type == DType::boolean && from != type);
        return fits ? unary(op, expr(from, depth - 1)) : leaf(type);
      }
      default: {
        auto op = static_cast<BinaryOp>(pick(kBinaryOpCount));
        DType from = is_comparison(op) ? dtype() : type;
        bool fits = !operand_error(op, from, from) &&
                    (type == DType::boolean || !is_comparison(op));
        return fits ? binary(op, expr(from, depth - 1), expr(from, depth - 1)) : leaf(type);
      }
    }
  }
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(rng_); }

 private:
  DType dtype() { return static_cast<DType>(pick(kArithmeticDTypeCount)); }
  Expr extent() {
    return kernel_.symbols.empty() || pick(3) ? Expr(int64_t(1 + pick(40)))
                                              : var("batch") * int64_t(1 + pick(3));
  }

  Expr leaf(DType type) {
    if (!in_index_ && pick(3) == 0)
      for (size_t b = 0; b < kernel_.buffers.size(); ++b)
        if (kernel_.buffers[b].dtype == type)
          return load(BufferId{static_cast<int32_t>(b)}, type, indices(kernel_.buffers[b]));
    if (type == DType::i64 && !vars_.empty() && pick(2)) return var(vars_[pick(vars_.size())]);
    if (!is_float(type)) return int_imm(static_cast<int64_t>(rng_()) >> pick(64), type);
    static const double kSpecial[] = {0.0, -0.0, 1.5, INFINITY, -INFINITY, NAN, 1e30, 1e-40, 0.1};
    return float_imm(
        pick(2) ? kSpecial[pick(9)] : std::ldexp(static_cast<double>(rng_()), -int(pick(90))),
        type);
  }
  std::vector<Expr> indices(const Buffer& buffer) {
    std::vector<Expr> out;
    in_index_ = true;
    for (size_t d = 0; d < buffer.shape.size(); ++d)
      out.push_back(expr(DType::i64, static_cast<int>(pick(3))));
    in_index_ = false;
    return out;
  }
  Stmt statement(int depth) {
    if (depth == 0 || pick(6) == 0) return store();
    if (pick(4) == 0) return make_if(expr(DType::boolean, 2), statement(depth - 1));
    std::string name = "i" + std::to_string(names_++);
    auto kind = static_cast<LoopKind>(pick(static_cast<int>(LoopKind::unroll) + 1));
    if (kind == LoopKind::parallel && vars_.size() > kernel_.symbols.size())
      kind = LoopKind::serial;
    bool constant = kind == LoopKind::vector || kind == LoopKind::unroll;
    Expr trip = constant ? Expr(8) : extent();
    vars_.push_back(name);
    std::vector<Stmt> body = {statement(depth - 1)};
    if (pick(3) == 0) body.push_back(statement(depth - 1));
    vars_.pop_back();
    const AxisRole role = kind == LoopKind::parallel ? AxisRole::spatial
                                                     : static_cast<AxisRole>(pick(3));
    return make_loop(name, trip, make_sequence(body), kind,
                     role == AxisRole::scan && kind == LoopKind::vector ? AxisRole::reduce : role);
  }
  Stmt store() {
    stmt::Store s;
    s.label = "s" + std::to_string(names_++);
    std::vector<size_t> writable;
    for (size_t b = 0; b < kernel_.buffers.size(); ++b)
      if (kernel_.buffers[b].role == BufferRole::output ||
          kernel_.buffers[b].role == BufferRole::temp)
        writable.push_back(b);
    s.buffer = BufferId{static_cast<int32_t>(writable[pick(writable.size())])};
    const Buffer& buffer = kernel_.buffer(s.buffer);
    s.indices = indices(buffer);
    s.value = expr(buffer.dtype, 3);
    if (buffer.dtype != DType::boolean) s.combiner = static_cast<Combiner>(pick(5));
    if (pick(3) == 0) s.where = expr(DType::boolean, 2);
    if (s.combiner != Combiner::none && pick(2)) s.init = expr(buffer.dtype, 0);
    return make_store(std::move(s));
  }

  std::mt19937_64 rng_;
  Kernel kernel_;
  std::vector<std::string> vars_;
  int names_ = 0;
  bool in_index_ = false;  // indices hold no loads: these would nest without end
};

}  // namespace tw::testing
