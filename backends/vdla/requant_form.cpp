#include "backends/vdla/requant_form.h"

#include <algorithm>
#include <cmath>

#include "backends/vdla/unsupported.h"

namespace tw::vdla {
namespace {

// An integer, also one in a float.
std::optional<int64_t> whole(const Expr& e) {
  if (e->kind == ExprKind::int_imm) return e->int_value;
  if (e->kind == ExprKind::cast) return whole(e->args[0]);
  if (e->kind != ExprKind::float_imm || std::abs(e->float_value) > 1e6 ||
      e->float_value != std::floor(e->float_value))
    return std::nullopt;
  return static_cast<int64_t>(e->float_value);
}

bool is(const Expr& e, BinaryOp op) { return e->kind == ExprKind::binary && e->binary == op; }

class Former {
 public:
  explicit Former(const Kernel& kernel) : kernel_(kernel) {}

  Expected<RequantForm> run(const Expr& value) {
    TW_TRY(peel(value));
    if (out_.zero_point < -128 || out_.zero_point > 127 || out_.low > out_.high)
      return unsupported("the store engine has no zero point {0} and clamp {1}..{2}",
                         out_.zero_point, out_.low, out_.high);
    return out_;
  }

 private:
  void clamp(int64_t low, int64_t high) {
    out_.low = std::max(out_.low, low + added_);
    out_.high = std::min(out_.high, high + added_);
  }

  // From the outside in: clamps and additions behind the rounding.
  Error peel(const Expr& e) {
    if (e->kind == ExprKind::unary && e->unary == UnaryOp::round) {
      out_.zero_point = added_;
      return product(e->args[0]);
    }
    if (e->kind == ExprKind::cast) {
      const DType from = e->args[0]->type;
      const bool widens = is_float(e->type)
                              ? from == DType::i8
                              : !is_float(from) && dtype_bytes(from) <= dtype_bytes(e->type);
      if (!e->saturate && !widens) return unsupported("the store engine rounds and saturates");
      if (e->saturate && e->type != DType::i8 && e->type != DType::i32)
        return unsupported("the store engine writes i8, not {0}", dtype_name(e->type));
      if (e->saturate && e->type == DType::i8) clamp(-128, 127);
      return peel(e->args[0]);
    }
    const bool guard = e->kind == ExprKind::select && whole(e->args[2]) &&
                       is(e->args[0], BinaryOp::lt) && as_const(e->args[0]->args[1]) &&
                       !out_.guarded.defined();
    if (guard) return out_.guarded = e->args[0]->args[0], peel(e->args[1]);
    if (e->kind == ExprKind::load) {
      if (e->type != DType::i8)
        return unsupported("sums that are stored as {0} are not requantized", dtype_name(e->type));
      out_.mode = StoreMode::sat;
      out_.zero_point = added_;
      return accumulator(e);
    }
    for (size_t i = 0; e->kind == ExprKind::binary && i < 2; ++i) {
      const std::optional<int64_t> number = whole(e->args[i]);
      if (!number) continue;
      const Expr& rest = e->args[1 - i];
      if (e->binary == BinaryOp::max) return clamp(*number, int64_t{1} << 40), peel(rest);
      if (e->binary == BinaryOp::min) return clamp(-(int64_t{1} << 40), *number), peel(rest);
      if (e->binary == BinaryOp::add) return added_ += *number, peel(rest);
      if (e->binary == BinaryOp::sub && i == 1) return added_ -= *number, peel(rest);
    }
    return unsupported("the store engine does not compute {0}", text(e));
  }

  Error product(const Expr& e) {
    out_.scale = float_imm(1);
    if (!is(e, BinaryOp::mul)) return sum(e);
    for (size_t i = 0; i < 2; ++i) {
      const Expr& factor = e->args[i];
      const bool constant = factor->kind == ExprKind::float_imm ||
                            (factor->kind == ExprKind::load &&
                             kernel_.buffer(factor->buffer).role == BufferRole::constant);
      if (!constant || e->type != DType::f32) continue;
      out_.scale = factor;
      return sum(e->args[1 - i]);
    }
    return unsupported("the store engine scales by a constant, in f32, not {0}", text(e));
  }

  Error sum(const Expr& e) {
    if (e->kind != ExprKind::cast || e->type != DType::f32 || e->args[0]->type != DType::i32)
      return unsupported("the store engine scales sums of integers, not {0}", text(e));
    return terms(e->args[0]);
  }

  Error terms(const Expr& e) {
    if (is(e, BinaryOp::add)) {
      TW_TRY(terms(e->args[0]));
      return terms(e->args[1]);
    }
    if (e->kind != ExprKind::load || e->type != DType::i32)
      return unsupported("the store engine adds constants to sums, not {0}", text(e));
    if (kernel_.buffer(e->buffer).role != BufferRole::constant) return accumulator(e);
    out_.biases.push_back(e);
    return Error::success();
  }

  Error accumulator(const Expr& load) {
    if (kernel_.buffer(load->buffer).role != BufferRole::temp || out_.acc.defined())
      return unsupported("the store engine adds nothing to its sums but constants, not {0}",
                         text(load));
    out_.acc = load;
    return Error::success();
  }

  std::string text(const Expr& e) const {
    return to_string(e, [&](BufferId id) { return kernel_.buffer(id).name; });
  }

  const Kernel& kernel_;
  RequantForm out_;
  int64_t added_ = 0;
};

}  // namespace

Expected<RequantForm> requant_form(const Kernel& kernel, const Expr& value) {
  TW_ASSIGN(RequantForm form, Former(kernel).run(value));
  if (!form.acc.defined()) return unsupported("the store engine stores sums");
  return form;
}

}  // namespace tw::vdla
