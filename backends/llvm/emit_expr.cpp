// Expressions: scalars where all lanes agree, vectors otherwise; loads under a condition are never
// executed outside it.
#include <cmath>
#include <limits>
#include <optional>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"
#include "ir/storage_types.h"

namespace tw::codegen {
namespace {

// round(value) + offset of f32
struct RoundedSum {
  Expr value;
  int64_t offset = 0;
};

// What a cast to 8 or 16 bits saturates, as quantized tensors have it: limits and offset are whole
// numbers, so the offset may be added behind the conversion.
std::optional<RoundedSum> rounded_sum(const Expr& cast) {
  const int width = dtype_bits(cast->type);
  if (!cast->saturate || !is_int(cast->type) || width < 8 || width > 16) return std::nullopt;
  RoundedSum sum{cast->args[0]};
  if (sum.value.type() != DType::f32) return std::nullopt;
  if (sum.value->kind == ExprKind::binary && sum.value->binary == BinaryOp::add) {
    const Expr &x = sum.value->args[0], &y = sum.value->args[1];
    const Expr& offset = y->kind == ExprKind::float_imm ? y : x;
    if (offset->kind != ExprKind::float_imm || std::abs(offset->float_value) > 1 << 16 ||
        offset->float_value != std::trunc(offset->float_value))
      return std::nullopt;
    sum = {&offset == &y ? x : y, static_cast<int64_t>(offset->float_value)};
  }
  if (sum.value->kind != ExprKind::unary || sum.value->unary != UnaryOp::round) return std::nullopt;
  sum.value = sum.value->args[0];
  return sum;
}

}  // namespace

Value* ExpressionEmitter::emit(const Expr& e) {
  if (known_.empty()) known_.emplace_back();
  for (auto scope = known_.rbegin(); scope != known_.rend(); ++scope) {
    auto known = scope->find(e.get());
    if (known != scope->end()) return known->second.value;
  }
  Value* value = emit_node(e);
  known_.back()[e.get()] = {e, value};
  return value;
}

Value* ExpressionEmitter::emit_node(const Expr& e) {
  switch (e->kind) {
    case ExprKind::int_imm:
      if (is_float(e->type))
        return llvm::ConstantFP::get(v_.compute_type(e->type), static_cast<double>(e->int_value));
      return llvm::ConstantInt::get(v_.compute_type(e->type), static_cast<uint64_t>(e->int_value),
                                    true, true);
    case ExprKind::float_imm:
      return llvm::ConstantFP::get(v_.compute_type(e->type), e->float_value);
    case ExprKind::var: {
      auto found = function_.vars.find(e->name);
      if (found != function_.vars.end()) return found->second;
      fail("variable '" + e->name + "' is not known here");
      return llvm::PoisonValue::get(v_.compute_type(e->type));
    }
    case ExprKind::load:
      return memory_.load(e->buffer,
                          memory_.access_of(memory_.form_of(e.get(), e->buffer, e->args)));
    case ExprKind::unary: return v_.unary(e->unary, e->args[0].type(), emit(e->args[0]));
    case ExprKind::binary: return emit_binary(e);
    case ExprKind::select: return emit_select(e);
    case ExprKind::cast:
      if (const auto sum = rounded_sum(e))
        return v_.float_to_narrow(emit(sum->value), e->type, true, sum->offset);
      return v_.convert(emit(e->args[0]), e->args[0].type(), e->type, e->saturate);
  }
  TW_UNREACHABLE("an expression");
}

// a to the power of 1/2: of -0 that is 0, of minus infinity infinity.
Value* ExpressionEmitter::square_root(Value* a) {
  const double infinity = std::numeric_limits<double>::infinity();
  return v_.select(v_.b.CreateFCmpOEQ(a, v_.real(a, -infinity)), v_.real(a, infinity),
                   v_.sqrt(v_.b.CreateFAdd(a, v_.real(a, 0))));
}

Value* ExpressionEmitter::emit_binary(const Expr& e) {
  const Expr &x = e->args[0], &y = e->args[1];
  DType t = x.type();
  if (t == DType::i64 && (e->binary == BinaryOp::floor_div || e->binary == BinaryOp::floor_mod))
    if (Value* quick = index_division(e)) return quick;
  if (t == DType::i64 && lanes_.count && (e->binary == BinaryOp::lt || e->binary == BinaryOp::le))
    if (Value* quick = lane_comparison(e)) return quick;
  bool sum = e->binary == BinaryOp::add || e->binary == BinaryOp::sub;
  if (sum && v_.traits.fma && (t == DType::f32 || t == DType::f64)) {
    auto is_product = [](const Expr& p) {
      return p->kind == ExprKind::binary && p->binary == BinaryOp::mul;
    };
    bool minus = e->binary == BinaryOp::sub;
    if (is_product(y)) {
      Value* a = emit(y->args[0]);
      Value* c = emit(x);
      return v_.fma(minus ? v_.b.CreateFNeg(a) : a, emit(y->args[1]), c);
    }
    if (is_product(x)) {
      Value* c = emit(y);
      return v_.fma(emit(x->args[0]), emit(x->args[1]), minus ? v_.b.CreateFNeg(c) : c);
    }
  }
  if (e->binary == BinaryOp::logical_and) {
    Value* first = emit(x);
    if (is_all_false(first)) return first;
    if (!needs_guard(y)) return v_.logical_and(first, emit(y));
  }
  if (e->binary == BinaryOp::pow && is_float(t) && y->kind == ExprKind::float_imm) {
    Value* a = emit(x);
    if (y->float_value == 1) return a;
    if (y->float_value == 2) return v_.b.CreateFMul(a, a);
    if (y->float_value == 3) return v_.b.CreateFMul(v_.b.CreateFMul(a, a), a);
    if (y->float_value == -1) return v_.b.CreateFDiv(v_.real(a, 1), a);
    if (y->float_value == 0.5) return square_root(a);
  }
  Value* a = emit(x);
  return v_.binary(e->binary, t, a, emit(y));
}

// floor_div and floor_mod of values known not to be negative: unsigned, and on lanes in 32 bits
// where they fit.
Value* ExpressionEmitter::index_division(const Expr& e) {
  auto divisor = as_const(e->args[1]);
  if (!divisor || *divisor <= 0) return nullptr;
  Bounds bounds = constant_bounds(e->args[0], emission_.ranges);
  if (!bounds.min || *bounds.min < 0) return nullptr;
  Value* x = emit(e->args[0]);
  llvm::Type* type = x->getType();
  bool narrow = Values::lanes(x) && bounds.max && *bounds.max <= INT32_MAX && *divisor <= INT32_MAX;
  if (narrow) x = v_.b.CreateTrunc(x, v_.with_lanes(v_.b.getInt32Ty(), Values::lanes(x)));
  Value* y = v_.integer(x, *divisor);
  Value* r = e->binary == BinaryOp::floor_div ? v_.b.CreateUDiv(x, y) : v_.b.CreateURem(x, y);
  return narrow ? v_.b.CreateZExt(r, type) : r;
}

// x < y where only a ramp of step 1 or -1 differs between lanes: one 32-bit comparison of the ramp
// with a limit.
Value* ExpressionEmitter::lane_comparison(const Expr& e) {
  if (may_wrap(e->args[0] - e->args[1])) return nullptr;
  const Access d = memory_.access_of(memory_.difference_form(e));
  if (d.lane_offsets || (d.lane_stride != 1 && d.lane_stride != -1)) return nullptr;
  auto& b = v_.b;
  bool down = d.lane_stride == -1;
  // Down: lane < rest (lt) or lane < rest + 1 (le). Up: not (lane < 1 - rest) (lt), not (lane <
  // -rest) (le).
  bool strict = e->binary == BinaryOp::lt;
  Value* rest = d.dynamic ? b.CreateAdd(d.dynamic, v_.i64(d.constant)) : v_.i64(d.constant);
  Value* limit = down ? b.CreateAdd(rest, v_.i64(strict ? 0 : 1))
                      : b.CreateSub(v_.i64(strict ? 1 : 0), rest);
  limit = v_.select(b.CreateICmpSLT(limit, v_.i64(0)), v_.i64(0), limit);
  limit = v_.select(b.CreateICmpSGT(limit, v_.i64(lanes_.count)), v_.i64(lanes_.count), limit);
  std::vector<llvm::Constant*> ramp;
  for (int i = 0; i < lanes_.count; ++i) ramp.push_back(b.getInt32(static_cast<uint32_t>(i)));
  Value* below = b.CreateICmpULT(llvm::ConstantVector::get(ramp),
                                 v_.splat(b.CreateTrunc(limit, b.getInt32Ty()), lanes_.count));
  return down ? below : v_.logical_not(below);
}

// Whether evaluating it outside its condition could read beyond a buffer.
bool ExpressionEmitter::needs_guard(const Expr& e) const {
  bool found = false;
  visit(e, [&](const Expr& n) {
    if (n->kind == ExprKind::load && kernel_.buffer(n->buffer).scope != "register") found = true;
  });
  return found;
}

Value* ExpressionEmitter::emit_select(const Expr& e) {
  Value* condition = emit(e->args[0]);
  if (is_all_true(condition)) return emit(e->args[1]);
  if (is_all_false(condition)) return emit(e->args[2]);
  auto side = [&](const Expr& value) { return in_scope([&] { return emit(value); }); };
  if (!needs_guard(e->args[1]) && !needs_guard(e->args[2])) {
    Value* x = emit(e->args[1]);
    return v_.select(condition, x, emit(e->args[2]));
  }
  if (!Values::lanes(condition))
    return v_.branch(condition, [&] { return side(e->args[1]); }, [&] { return side(e->args[2]); });
  Value* outer = lanes_.mask;
  auto masked_side = [&](const Expr& value, Value* when) {
    lanes_.mask = v_.logical_and(outer, when);
    Value* v = side(value);
    lanes_.mask = outer;
    return v;
  };
  Value* x = masked_side(e->args[1], condition);
  Value* y = masked_side(e->args[2], v_.logical_not(condition));
  return v_.select(condition, x, y);
}
}  // namespace tw::codegen
