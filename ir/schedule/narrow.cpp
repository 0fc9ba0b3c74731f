// narrow c left u8
//   c: c[i, j] += (i32(x[i, k]) - -128) * i32(w[k, j])
//     ->
//   c: c[i, j] += i32(u8(x[i, k]) + 128:u8) * i32(w[k, j])
//
// The factor is computed in a narrower integer type and then widened, so that a copy of it is
// small, and code generation sees what suffices. Legal: the factor is made of widened integers,
// constants, sums, differences, products, selections, and bits that are moved right or masked. All
// its values fit the type.
#include "ir/schedule/factor.h"
#include "ir/schedule/nest.h"
#include "ir/schedule/number_range.h"

namespace tw::sched {

namespace {

DType without_sign(DType type) { return dtype_bytes(type) == 1 ? DType::u8 : DType::u16; }

// Computes integer expressions in a narrower type, modulo its range.
class Narrowing {
 public:
  Narrowing(DType type, const Ranges& ranges) : type_(type), ranges_(ranges) {}

  Expr narrowed(const Expr& e) const {
    if (e.type() == type_) return e;
    if (e.type() == DType::i64 && !has_load(e)) return cast(type_, e);  // an index
    if (const auto* widened = as<expr::Cast>(e))
      return keeps_values(widened->a) ? narrowed(widened->a) : cast(type_, widened->a);
    if (const auto known = as_const(e)) return int_imm(*known, type_);  // wraps
    if (const auto* select = as<expr::Select>(e))
      return tw::select(select->condition, narrowed(select->then), narrowed(select->otherwise));
    if (const auto* difference = as_binary(e, BinaryOp::sub)) {
      const Expr a = narrowed(difference->a);
      const auto constant = as_const(difference->b);
      return constant ? less_constant(a, *constant) : a - narrowed(difference->b);
    }
    const auto* both = as<expr::Binary>(e);
    if (both && (both->op == BinaryOp::add || both->op == BinaryOp::mul))
      return binary(both->op, narrowed(both->a), narrowed(both->b));
    if (both && (both->op == BinaryOp::bit_and || both->op == BinaryOp::shr)) return bits_of(e);
    return cast(type_, e);  // a narrow load
  }

 private:
  // True: the expression's values do not wrap in its type.
  bool keeps_values(const Expr& e) const {
    const auto values = values_of(e, ranges_);
    return values && has_values(e.type(), *values);
  }

  // The number less a constant. A selection between a number and a constant takes it inside.
  Expr less_constant(const Expr& e, int64_t constant) const {
    const auto* select = as<expr::Select>(e);
    if (const auto otherwise = select ? as_const(select->otherwise) : std::nullopt)
      return tw::select(select->condition, less_constant(select->then, constant),
                        int_imm(*otherwise - constant, type_));
    return has_values(type_, {constant, constant}) ? e - int_imm(constant, type_)
                                                   : e + int_imm(-constant, type_);
  }

  // Bits are moved and masked in a type without a sign, where zeros move in from above.
  Expr bits_of(const Expr& e) const {
    const Narrowing bits(without_sign(type_), ranges_);
    if (bits.type_ != type_) return cast(type_, bits.bits_of(e));
    const auto& both = *as<expr::Binary>(e);
    const auto fits = [&](const Expr& part) {
      const auto values = values_of(part, ranges_);
      return values && has_values(type_, *values) && has_values(part.type(), *values);
    };
    if (both.op == BinaryOp::shr && !(fits(both.a) && fits(both.b))) return cast(type_, e);
    return binary(both.op, narrowed(both.a), narrowed(both.b));
  }

  DType type_;
  const Ranges& ranges_;
};

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Narrow& s) {
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(kernel, s.stage));
  stmt::Store store = get<stmt::Store>(path.back());
  const Expr factor = factor_of(store.value, s.factor);
  if (!factor.defined()) return illegal("the value of stage '{0}' is not a product", s.stage);
  if (!is_narrow(s.type) || !is_int(factor.type()) ||
      dtype_bytes(s.type) >= dtype_bytes(factor.type()))
    return illegal("{0} is no narrower integer than {1}", dtype_name(s.type),
                   dtype_name(factor.type()));
  const Ranges ranges = ranges_of(kernel, path);
  const auto values = values_of(factor, ranges);
  if (!values || !has_values(s.type, *values))
    return illegal("it cannot be shown that the factor of stage '{0}' fits {1}", s.stage,
                   dtype_name(s.type));
  store.value = with_factor(store.value, s.factor,
                            cast(factor.type(), Narrowing(s.type, ranges).narrowed(factor)));
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), make_store(std::move(store)));
  return out;
}

}  // namespace tw::sched
