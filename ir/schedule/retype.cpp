// retype c f32
//   temp c: i32[8]                              temp c: f32[8]
//   for i in 8 { for k in 16 reduce {           for i in 8 { for k in 16 reduce {
//     c: c[i] += i32(x[i, k]) * i32(w[k])   ->    c: c[i] += f32(x[i, k]) * f32(w[k])
//       init 0:i32                                  init 0.0
//   } }                                         } }
//   y: y[i] = f32(c[i]) * 0.5                   y: y[i] = c[i] * 0.5
//
// A temp keeps its integers in another type: in one that an instruction reads, or in floats where
// the target multiplies these faster. Short floats may be kept widened, and are rounded when they
// are read unless a reader widens them. Readers get the same numbers.
//
// Legal: a temp that no block uses. Its stages set it, or combine integers with an init. The type
// has all values of the temp, of a sum's terms, and of a sum so far, as types and constants show.
// A temp that has the type already stays as it is.
#include <algorithm>

#include "ir/schedule/nest.h"
#include "ir/schedule/number_range.h"

namespace tw::sched {

namespace {

bool is_small(DType type) { return is_int(type) && dtype_bytes(type) <= 4; }

// An integer as the type has it
Expr number_as(DType type, const Expr& e, const Ranges& ranges) {
  const auto suits = [&](const Expr& part) {
    const auto values = values_of(part, ranges);
    return values && has_values(type, *values) && has_values(part.type(), *values);
  };
  if (e.type() == type) return e;
  if (const auto known = as_const(e))
    return is_float(type) ? imm(static_cast<double>(*known), type) : int_imm(*known, type);
  if (const auto* widened = as<expr::Cast>(e); widened && suits(e) && suits(widened->a))
    return number_as(type, widened->a, ranges);
  const auto* both = as<expr::Binary>(e);
  const bool computes = both && (both->op == BinaryOp::add || both->op == BinaryOp::sub ||
                                 both->op == BinaryOp::mul);
  if (computes && suits(e) && suits(both->a) && suits(both->b))
    return binary(both->op, number_as(type, both->a, ranges), number_as(type, both->b, ranges));
  return cast(type, e);
}

// The values of a sum that `count` terms make, also while it is not finished; nullopt: unknown
std::optional<Values> values_of_sum(const Values& term, const Values& init, int64_t count) {
  Values sum{std::min<int64_t>(term.least, 0), std::max<int64_t>(term.most, 0)};
  for (int64_t* end : {&sum.least, &sum.most})
    if (__builtin_mul_overflow(*end, count, end) ||
        __builtin_add_overflow(*end, end == &sum.least ? init.least : init.most, end))
      return std::nullopt;
  return sum;
}

// The values that the stage gives to a temp of the type; nullopt: they may wrap.
std::optional<Values> values_in(const stmt::Store& store, DType type, std::span<const Stmt> path,
                                const Ranges& ranges) {
  const auto kept = [&](const std::optional<Values>& values) -> std::optional<Values> {
    return values && has_values(type, *values) ? values : std::nullopt;
  };
  const std::optional<Values> value = kept(values_of(store.value, ranges));
  if (store.combiner == Combiner::add) {
    const std::optional<Values> init = kept(values_of(store.init, ranges));
    int64_t count = 1;
    for (const Stmt& around : path)
      if (const auto* loop = as<stmt::Loop>(around); loop && loop->role == AxisRole::reduce)
        if (__builtin_mul_overflow(count, as_const(loop->extent).value_or(0), &count)) return {};
    return value && init && count > 0 ? kept(values_of_sum(*value, *init, count)) : std::nullopt;
  }
  if (store.combiner == Combiner::mul) return std::nullopt;
  if (store.combiner == Combiner::none && value) return value;
  return is_small(type) ? std::optional(all_of(type)) : std::nullopt;
}

// True: a reader widens an element of the temp at once. It will take the element as it is, which
// must then have been rounded.
bool is_widened(const Kernel& kernel, BufferId temp) {
  bool found = false;
  for (const StoreRef& store : stores_of(kernel.body))
    visit(store->value, [&](const Expr& e) {
      const auto* outer = as<expr::Cast>(e);
      const auto* read = outer ? as<expr::Load>(outer->a) : nullptr;
      found |= read && read->buffer == temp && is_float(e.type());
    });
  return found;
}

// The stage's store in the type. Error: the type may lack a value.
Expected<Stmt> retyped(const Kernel& kernel, std::span<const Stmt> path, DType old, DType type) {
  stmt::Store store = get<stmt::Store>(path.back());
  if (store.async) return illegal("stage '{0}' is an asynchronous copy", store.label);
  if (store.combiner != Combiner::none && !store.init.defined())
    return illegal("stage '{0}' adds to what another stage has stored", store.label);
  if (is_float(old)) {
    if (store.combiner != Combiner::none)
      return illegal(
          "stage '{0}' combines numbers in {1}, each rounded to it: floats are kept in another "
          "type only where their stages set them",
          store.label, dtype_name(old));
    const auto* rounds = as<expr::Cast>(store.value);
    const bool may_keep = rounds && rounds->a.type() == type && !is_widened(kernel, store.buffer);
    store.value = may_keep ? rounds->a : cast(type, store.value);
    return make_store(std::move(store));
  }
  const Ranges ranges = ranges_of(kernel, path);
  const std::optional<Values> values = values_in(store, old, path, ranges);
  if (!values || !has_values(type, *values))
    return illegal("it cannot be shown that the numbers of stage '{0}' fit {1}", store.label,
                   dtype_name(type));
  store.value = number_as(type, store.value, ranges);
  if (store.init.defined()) store.init = number_as(type, store.init, ranges);
  return make_store(std::move(store));
}

// The body whose loads of the temp, which had type `old`, are of the new type
Stmt with_loads(const Stmt& body, BufferId temp, DType old, DType type) {
  const auto is_old = [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    return read && read->buffer == temp && e.type() == old;
  };
  const std::function<Expr(const Expr&)> retyped = [&](const Expr& e) -> Expr {
    const Expr inner = is_old(e) ? e : with_operands(e, retyped);
    if (is_old(inner)) {
      const Expr at = with_operands(inner, retyped);
      return cast(old, load(temp, type, as<expr::Load>(at)->indices));
    }
    // The number may be cast at once, unless integers of the first type wrap.
    const auto* outer = as<expr::Cast>(inner);
    const auto* first = outer ? as<expr::Cast>(outer->a) : nullptr;
    const auto* read = first ? as<expr::Load>(first->a) : nullptr;
    if (!read || read->buffer != temp || outer->saturate) return inner;
    const bool keeps = is_float(inner.type()) || (is_narrow(old) && is_int(inner.type()) &&
                                                  has_values(inner.type(), all_of(old)));
    if (!keeps) return inner;
    return inner.type() == type ? first->a : cast(inner.type(), first->a);
  };
  return rewrite_exprs(body, retyped);
}

const char* may_become(DType type) {
  if (is_int(type)) return "it may be another integer or a float";
  if (type == DType::f64) return "it stays f64";
  return is_float(type) ? "it may be f32 or f64, and not shorter" : "only numbers are retyped";
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Retype& s) {
  TW_ASSIGN(const BufferId temp, buffer_named(kernel, s.buffer));
  const Buffer& buffer = kernel.buffer(temp);
  if (buffer.role != BufferRole::temp)
    return illegal("'{0}' is a parameter of the kernel: its type is given", s.buffer);
  if (buffer.dtype == s.type) return kernel;
  const bool widens = is_float(buffer.dtype) && (s.type == DType::f32 || s.type == DType::f64) &&
                      dtype_bytes(s.type) >= dtype_bytes(buffer.dtype);
  if (!widens && !(is_int(buffer.dtype) && (is_int(s.type) || is_float(s.type))))
    return illegal("'{0}' has elements of type {1}, which cannot be {2}: {3}", s.buffer,
                   dtype_name(buffer.dtype), dtype_name(s.type), may_become(buffer.dtype));
  if (contains(kernel.body, [&](const StmtNode& inner) {
        const auto* block = as<stmt::Block>(inner);
        return block && (reads(block->body, temp) || writes(block->body, temp));
      }))
    return illegal("a block uses '{0}'", s.buffer);
  Kernel out = kernel;
  for (const StoreRef& store : stores_of(kernel.body)) {
    if (store->buffer != temp) continue;
    TW_ASSIGN(const Stmt with,
              retyped(kernel, find_path(kernel.body, store), buffer.dtype, s.type));
    out.body = replace(out.body, store, with);
  }
  out.buffer(temp).dtype = s.type;
  out.body = with_loads(out.body, temp, buffer.dtype, s.type);
  return out;
}

}  // namespace tw::sched
