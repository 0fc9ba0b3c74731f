// Expressions: scalars where all lanes agree, vectors otherwise. Loads under a condition are never
// executed outside of it.
#include <cmath>
#include <limits>
#include <optional>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"
#include "ir/storage_types.h"

namespace tw::codegen {
namespace {

// round(value) + offset, in f32
struct RoundedSum {
  Expr value;
  int64_t offset = 0;
};

// The operand of a saturating cast to 8 or 16 bits, as quantized tensors use it. Limits and offset
// are whole numbers, so the offset may be added after the conversion.
std::optional<RoundedSum> rounded_sum(const expr::Cast& cast, DType to) {
  const int width = dtype_bits(to);
  if (!cast.saturate || !is_int(to) || width < 8 || width > 16) return std::nullopt;
  if (cast.a.type() != DType::f32) return std::nullopt;
  Expr value = cast.a;
  int64_t added = 0;
  if (const auto* sum = as_binary(cast.a, BinaryOp::add)) {
    const auto* behind = as<expr::Float>(sum->b);
    const auto* offset = behind ? behind : as<expr::Float>(sum->a);
    if (!offset || std::abs(offset->value) > 1 << 16 || offset->value != std::trunc(offset->value))
      return std::nullopt;
    value = behind ? sum->a : sum->b;
    added = static_cast<int64_t>(offset->value);
  }
  const auto* rounded = as_unary(value, UnaryOp::round);
  if (!rounded) return std::nullopt;
  return RoundedSum{rounded->a, added};
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
  return match(
      e,
      [&](const expr::Int& number) -> Value* {
        if (is_float(e->type))
          return llvm::ConstantFP::get(v_.compute_type(e->type), static_cast<double>(number.value));
        return llvm::ConstantInt::get(v_.compute_type(e->type), static_cast<uint64_t>(number.value),
                                      true, true);
      },
      [&](const expr::Float& number) -> Value* {
        return llvm::ConstantFP::get(v_.compute_type(e->type), number.value);
      },
      [&](const expr::Var& var) -> Value* {
        auto found = function_.vars.find(var.name);
        if (found != function_.vars.end()) return found->second;
        fail("variable '" + var.name + "' is not known here");
        return llvm::PoisonValue::get(v_.compute_type(e->type));
      },
      [&](const expr::Load& load) {
        return memory_.load(load.buffer,
                            memory_.access_of(memory_.form_of(&load, load.buffer, load.indices)));
      },
      [&](const expr::Unary& unary) { return v_.unary(unary.op, unary.a.type(), emit(unary.a)); },
      [&](const expr::Binary& binary) { return emit_binary(binary); },
      [&](const expr::Select& select) { return emit_select(select); },
      [&](const expr::Cast& cast) {
        if (const auto sum = rounded_sum(cast, e->type))
          return v_.float_to_narrow(emit(sum->value), e->type, true, sum->offset);
        return v_.convert(emit(cast.a), cast.a.type(), e->type, cast.saturate);
      });
}

// a to the power of 1/2: 0 for -0, infinity for minus infinity.
Value* ExpressionEmitter::square_root(Value* a) {
  const double infinity = std::numeric_limits<double>::infinity();
  return v_.select(v_.b.CreateFCmpOEQ(a, v_.real(a, -infinity)), v_.real(a, infinity),
                   v_.sqrt(v_.b.CreateFAdd(a, v_.real(a, 0))));
}

Value* ExpressionEmitter::emit_binary(const expr::Binary& binary) {
  const auto& [op, x, y] = binary;
  DType t = x.type();
  if (t == DType::i64 && (op == BinaryOp::floor_div || op == BinaryOp::floor_mod))
    if (Value* quick = index_division(binary)) return quick;
  if (t == DType::i64 && lanes_.count && (op == BinaryOp::lt || op == BinaryOp::le))
    if (Value* quick = lane_comparison(binary)) return quick;
  bool sum = op == BinaryOp::add || op == BinaryOp::sub;
  if (sum && v_.traits.fma && (t == DType::f32 || t == DType::f64)) {
    bool minus = op == BinaryOp::sub;
    if (const auto* product = as_binary(y, BinaryOp::mul)) {
      Value* a = emit(product->a);
      Value* c = emit(x);
      return v_.fma(minus ? v_.b.CreateFNeg(a) : a, emit(product->b), c);
    }
    if (const auto* product = as_binary(x, BinaryOp::mul)) {
      Value* c = emit(y);
      return v_.fma(emit(product->a), emit(product->b), minus ? v_.b.CreateFNeg(c) : c);
    }
  }
  if (op == BinaryOp::logical_and) {
    Value* first = emit(x);
    if (is_all_false(first)) return first;
    if (!needs_guard(y)) return v_.logical_and(first, emit(y));
  }
  const auto* power = as<expr::Float>(y);
  if (power && op == BinaryOp::pow && is_float(t)) {
    Value* a = emit(x);
    if (power->value == 1) return a;
    if (power->value == 2) return v_.b.CreateFMul(a, a);
    if (power->value == 3) return v_.b.CreateFMul(v_.b.CreateFMul(a, a), a);
    if (power->value == -1) return v_.b.CreateFDiv(v_.real(a, 1), a);
    if (power->value == 0.5) return square_root(a);
  }
  Value* a = emit(x);
  return v_.binary(op, t, a, emit(y));
}

// floor_div and floor_mod of values that are known not to be negative: unsigned, and in 32 bits for
// lanes that fit
Value* ExpressionEmitter::index_division(const expr::Binary& division) {
  auto divisor = as_const(division.b);
  if (!divisor || *divisor <= 0) return nullptr;
  Bounds bounds = constant_bounds(division.a, emission_.ranges);
  if (!bounds.min || *bounds.min < 0) return nullptr;
  Value* x = emit(division.a);
  llvm::Type* type = x->getType();
  bool narrow = Values::lanes(x) && bounds.max && *bounds.max <= INT32_MAX && *divisor <= INT32_MAX;
  if (narrow) x = v_.b.CreateTrunc(x, v_.with_lanes(v_.b.getInt32Ty(), Values::lanes(x)));
  Value* y = v_.integer(x, *divisor);
  Value* r = division.op == BinaryOp::floor_div ? v_.b.CreateUDiv(x, y) : v_.b.CreateURem(x, y);
  return narrow ? v_.b.CreateZExt(r, type) : r;
}

// x < y where only a ramp of step 1 or -1 differs between lanes: one 32-bit comparison of the ramp
// with a limit
Value* ExpressionEmitter::lane_comparison(const expr::Binary& comparison) {
  if (may_wrap(comparison.a - comparison.b)) return nullptr;
  const Access d = memory_.access_of(memory_.difference_form(comparison));
  if (d.lane_offsets || (d.lane_stride != 1 && d.lane_stride != -1)) return nullptr;
  auto& b = v_.b;
  bool down = d.lane_stride == -1;
  // Down: lane < rest (lt) or lane < rest + 1 (le). Up: not (lane < 1 - rest) (lt), not (lane <
  // -rest) (le).
  bool strict = comparison.op == BinaryOp::lt;
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

// True if evaluating the expression outside of its condition could read beyond a buffer.
bool ExpressionEmitter::needs_guard(const Expr& e) const {
  bool found = false;
  visit(e, [&](const Expr& n) {
    const auto* load = as<expr::Load>(n);
    if (load && kernel_.buffer(load->buffer).scope != "register") found = true;
  });
  return found;
}

Value* ExpressionEmitter::emit_select(const expr::Select& select) {
  const Expr &then = select.then, &otherwise = select.otherwise;
  Value* condition = emit(select.condition);
  if (is_all_true(condition)) return emit(then);
  if (is_all_false(condition)) return emit(otherwise);
  auto side = [&](const Expr& value) { return in_scope([&] { return emit(value); }); };
  if (!needs_guard(then) && !needs_guard(otherwise)) {
    Value* x = emit(then);
    return v_.select(condition, x, emit(otherwise));
  }
  if (!Values::lanes(condition))
    return v_.branch(condition, [&] { return side(then); }, [&] { return side(otherwise); });
  Value* outer = lanes_.mask;
  auto masked_side = [&](const Expr& value, Value* when) {
    lanes_.mask = v_.logical_and(outer, when);
    Value* v = side(value);
    lanes_.mask = outer;
    return v;
  };
  Value* x = masked_side(then, condition);
  Value* y = masked_side(otherwise, v_.logical_not(condition));
  return v_.select(condition, x, y);
}
}  // namespace tw::codegen
