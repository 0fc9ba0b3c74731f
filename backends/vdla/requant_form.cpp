#include "backends/vdla/requant_form.h"

#include <algorithm>
#include <cmath>

#include "backends/vdla/unsupported.h"

namespace tw::vdla {
namespace {

// The integer value of a constant, which may be a float
std::optional<int64_t> whole(const Expr& e) {
  if (const auto known = as_const(e)) return known;
  if (const auto* converted = as<expr::Cast>(e)) return whole(converted->a);
  const auto* number = as<expr::Float>(e);
  if (!number || std::abs(number->value) > 1e6 || number->value != std::floor(number->value))
    return std::nullopt;
  return static_cast<int64_t>(number->value);
}

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

  // Peels clamps and additions behind the rounding, from the outside in.
  Error peel(const Expr& e) {
    if (const auto* rounded = as_unary(e, UnaryOp::round)) {
      out_.zero_point = added_;
      return product(rounded->a);
    }
    if (const auto* converted = as<expr::Cast>(e)) return peel_cast(*converted, e->type);
    if (const auto* choice = as<expr::Select>(e)) {
      const auto* below = as_binary(choice->condition, BinaryOp::lt);
      const bool guard = below && as_const(below->b) && whole(choice->otherwise) &&
                         !out_.guarded.defined();
      if (guard) return out_.guarded = below->a, peel(choice->then);
    }
    if (const auto* load = as<expr::Load>(e)) {
      if (e->type != DType::i8)
        return unsupported("sums that are stored as {0} are not requantized", dtype_name(e->type));
      out_.mode = StoreMode::sat;
      out_.zero_point = added_;
      return accumulator(e, *load);
    }
    if (const auto* pair = as<expr::Binary>(e))
      for (const bool first : {true, false}) {
        const std::optional<int64_t> number = whole(first ? pair->a : pair->b);
        if (!number) continue;
        const Expr& rest = first ? pair->b : pair->a;
        if (pair->op == BinaryOp::max) return clamp(*number, int64_t{1} << 40), peel(rest);
        if (pair->op == BinaryOp::min) return clamp(-(int64_t{1} << 40), *number), peel(rest);
        if (pair->op == BinaryOp::add) return added_ += *number, peel(rest);
        if (pair->op == BinaryOp::sub && !first) return added_ -= *number, peel(rest);
      }
    return unsupported("the store engine does not compute {0}", text(e));
  }

  Error peel_cast(const expr::Cast& cast, DType to) {
    const DType from = cast.a.type();
    const bool widens = is_float(to) ? from == DType::i8
                                     : !is_float(from) && dtype_bytes(from) <= dtype_bytes(to);
    if (!cast.saturate && !widens) return unsupported("the store engine rounds and saturates");
    if (cast.saturate && to != DType::i8 && to != DType::i32)
      return unsupported("the store engine writes i8, not {0}", dtype_name(to));
    if (cast.saturate && to == DType::i8) clamp(-128, 127);
    return peel(cast.a);
  }

  bool is_constant(const Expr& factor) const {
    const auto* load = as<expr::Load>(factor);
    return load ? kernel_.buffer(load->buffer).role == BufferRole::constant
                : is<expr::Float>(factor);
  }

  Error product(const Expr& e) {
    out_.scale = float_imm(1);
    const auto* scaled = as_binary(e, BinaryOp::mul);
    if (!scaled) return sum(e);
    for (const bool first : {true, false}) {
      const Expr& factor = first ? scaled->a : scaled->b;
      if (!is_constant(factor) || e->type != DType::f32) continue;
      out_.scale = factor;
      return sum(first ? scaled->b : scaled->a);
    }
    return unsupported("the store engine scales by a constant, in f32, not {0}", text(e));
  }

  Error sum(const Expr& e) {
    const auto* converted = as<expr::Cast>(e);
    if (!converted || e->type != DType::f32 || converted->a.type() != DType::i32)
      return unsupported("the store engine scales sums of integers, not {0}", text(e));
    return terms(converted->a);
  }

  Error terms(const Expr& e) {
    if (const auto* added = as_binary(e, BinaryOp::add)) {
      TW_TRY(terms(added->a));
      return terms(added->b);
    }
    const auto* load = as<expr::Load>(e);
    if (!load || e->type != DType::i32)
      return unsupported("the store engine adds constants to sums, not {0}", text(e));
    if (kernel_.buffer(load->buffer).role != BufferRole::constant) return accumulator(e, *load);
    out_.biases.push_back(e);
    return Error::success();
  }

  Error accumulator(const Expr& e, const expr::Load& load) {
    if (kernel_.buffer(load.buffer).role != BufferRole::temp || out_.acc.defined())
      return unsupported("the store engine adds nothing to its sums but constants, not {0}",
                         text(e));
    out_.acc = e;
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
