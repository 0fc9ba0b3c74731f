#include "ir/schedule/factor.h"

#include <functional>

namespace tw::sched {

Expr factor_of(const Expr& value, Factor side) {
  const auto* product = as_binary(value, BinaryOp::mul);
  if (!product) return {};
  return side == Factor::left ? product->a : product->b;
}

Expr with_factor(const Expr& value, Factor side, const Expr& with) {
  const auto& product = *as_binary(value, BinaryOp::mul);
  return side == Factor::left ? with * product.b : product.a * with;
}

Counted counted(const Expr& factor) {
  const auto* difference = as_binary(factor, BinaryOp::sub);
  if (difference && as_const(difference->b)) return {difference->a, *as_const(difference->b)};
  return {factor};
}

Expr less(const Expr& value, int64_t zero) {
  return zero == 0 ? value : value - int_imm(zero, value.type());
}

Expr number_in(const Expr& factor) {
  Expr number = counted(factor).value;
  if (const auto* rounded = as_unary(number, UnaryOp::tf32)) number = rounded->a;
  const auto* cast = as<expr::Cast>(number);
  const bool widens = cast && dtype_bytes(cast->a.type()) < dtype_bytes(number.type());
  return widens ? cast->a : number;
}

Expr with_number(const Expr& factor, const Expr& number) {
  const Expr old = number_in(factor);
  const std::function<Expr(const Expr&)> replaced = [&](const Expr& e) {
    return e.get() == old.get() ? number : with_operands(e, replaced);
  };
  return replaced(factor);
}

}  // namespace tw::sched
