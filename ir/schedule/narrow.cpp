// narrow c left u8
//   c: c[i, j] += (i32(x[i, k]) - -128) * i32(w[k, j])
//     ->
//   c: c[i, j] += i32(u8(x[i, k]) + 128:u8) * i32(w[k, j])
//
// The factor is computed in a narrower integer type and then widened, so that a copy of it is
// small, and code generation sees what suffices. Legal: the factor is made of widened integers,
// constants, sums, differences and selections, and all its values fit the type.
#include <algorithm>

#include "ir/schedule/factor.h"
#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

bool is_narrow(DType type) { return is_byte(type) || type == DType::i16 || type == DType::u16; }

struct Values {
  int64_t least = 0, most = 0;
};

Values values_of(DType type) {
  const int64_t count = int64_t{1} << (8 * dtype_bytes(type));
  return is_signed_int(type) ? Values{-count / 2, count / 2 - 1} : Values{0, count - 1};
}

constexpr int64_t kFar = int64_t{1} << 30;  // limit of constants

// The values that the expression may have, before they wrap; nullopt: it has other parts
std::optional<Values> values_of(const Expr& e) {
  if (is_narrow(e.type()) && is<expr::Load>(e)) return values_of(e.type());
  if (const auto* cast = as<expr::Cast>(e)) {
    if (cast->saturate || !is_narrow(cast->a.type()) || !is_int(e.type()) ||
        dtype_bytes(e.type()) <= dtype_bytes(cast->a.type()))
      return std::nullopt;
    return values_of(cast->a.type());
  }
  if (const auto known = as_const(e)) {
    if (*known < -kFar || *known > kFar) return std::nullopt;
    return Values{*known, *known};
  }
  if (const auto* select = as<expr::Select>(e)) {
    const auto a = values_of(select->then), b = values_of(select->otherwise);
    if (!a || !b) return std::nullopt;
    return Values{std::min(a->least, b->least), std::max(a->most, b->most)};
  }
  const auto* sum = as_binary(e, BinaryOp::add);
  const auto* difference = as_binary(e, BinaryOp::sub);
  if (!sum && !difference) return std::nullopt;
  const expr::Binary& both = sum ? *sum : *difference;
  const auto a = values_of(both.a), b = values_of(both.b);
  if (!a || !b) return std::nullopt;
  return sum ? Values{a->least + b->least, a->most + b->most}
             : Values{a->least - b->most, a->most - b->least};
}

// The number less a constant, modulo the range of its type. A selection between a number and a
// constant takes it inside.
Expr less_constant(const Expr& e, int64_t constant) {
  const DType type = e.type();
  const auto* select = as<expr::Select>(e);
  if (const auto otherwise = select ? as_const(select->otherwise) : std::nullopt)
    return tw::select(select->condition, less_constant(select->then, constant),
                      int_imm(*otherwise - constant, type));
  const Values values = values_of(type);
  return constant < values.least || constant > values.most ? e + int_imm(-constant, type)
                                                           : e - int_imm(constant, type);
}

// The expression in the type, modulo its range
Expr narrowed(const Expr& e, DType type) {
  if (e.type() == type) return e;
  if (const auto* widened = as<expr::Cast>(e)) return narrowed(widened->a, type);
  if (const auto known = as_const(e)) return int_imm(*known, type);  // wraps
  if (const auto* select = as<expr::Select>(e))
    return tw::select(select->condition, narrowed(select->then, type),
                      narrowed(select->otherwise, type));
  if (const auto* sum = as_binary(e, BinaryOp::add))
    return narrowed(sum->a, type) + narrowed(sum->b, type);
  if (const auto* difference = as_binary(e, BinaryOp::sub)) {
    const Expr a = narrowed(difference->a, type);
    const auto constant = as_const(difference->b);
    return constant ? less_constant(a, *constant) : a - narrowed(difference->b, type);
  }
  return cast(type, e);  // a narrow load
}

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
  const auto values = values_of(factor);
  const Values fitting = values_of(s.type);
  if (!values || values->least < fitting.least || values->most > fitting.most)
    return illegal("it cannot be shown that the factor of stage '{0}' fits {1}", s.stage,
                   dtype_name(s.type));
  store.value = with_factor(store.value, s.factor, cast(factor.type(), narrowed(factor, s.type)));
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), make_store(std::move(store)));
  return out;
}

}  // namespace tw::sched
