#include "ir/schedule/filling.h"

#include <algorithm>
#include <limits>

#include "ir/kernel/guards.h"
#include "ir/scalar_ops.h"
#include "ir/schedule/factor.h"
#include "ir/schedule/nest.h"
#include "ir/storage_types.h"

namespace tw::sched {

Expr identity_of(Combiner combiner, DType type) {
  const double inf = std::numeric_limits<double>::infinity();
  const int bits = dtype_bits(type) - (is_signed_int(type) ? 1 : 0);
  const int64_t most = bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  switch (combiner) {
    case Combiner::none: break;
    case Combiner::add: return imm(0, type);
    case Combiner::mul: return imm(1, type);
    case Combiner::min: return is_float(type) ? imm(inf, type) : int_imm(most, type);
    case Combiner::max:
      return is_float(type) ? imm(-inf, type) : int_imm(is_signed_int(type) ? -most - 1 : 0, type);
  }
  TW_UNREACHABLE("nothing is combined");
}

namespace {

// The one stage that sets the buffer; none: several do, or they combine.
StoreRef setter_of(const Kernel& kernel, BufferId buffer) {
  StoreRef setter;
  for (const StoreRef& store : stores_of(kernel.body)) {
    if (store->buffer != buffer) continue;
    if (setter) return {};
    setter = store;
  }
  return setter && setter->combiner == Combiner::none ? setter : StoreRef();
}

// True: the reader's condition says that the setter has written the place that it loads.
bool is_written(const stmt::Store& setter, const expr::Load& read, const Expr& where,
                const Ranges& ranges) {
  return std::ranges::all_of(conjuncts(setter.where), [&](const Expr& asked) {
    const Expr there = at_place(asked, setter, read.indices);
    return there.defined() && asks_for(where, there, ranges);
  });
}

// Where a condition fails, the number that its temp holds at the place that the reader loads;
// undefined: it may be another one.
Expr number_where(const Kernel& kernel, const expr::Load& read, const Fails& fails) {
  if (kernel.buffer(read.buffer).role != BufferRole::temp) return {};
  const StoreRef setter = setter_of(kernel, read.buffer);
  const auto* choice = setter ? as<expr::Select>(setter->value) : nullptr;
  if (!choice) return {};
  const Expr condition = at_place(choice->condition, *setter, read.indices);
  return condition.defined() && fails(condition) ? choice->otherwise : Expr();
}

bool is_number(const Expr& e, const Expr& number) {
  const auto* float_a = as<expr::Float>(e);
  const auto* float_b = as<expr::Float>(number);
  if (float_a && float_b) return float_a->value == float_b->value;
  return as_const(e) && as_const(e) == as_const(number);
}

// The load that an operand is: widened, or in place of NaN, which counts for nothing
const expr::Load* load_in(Expr operand, Combiner combiner) {
  const auto* choice = as<expr::Select>(operand);
  const auto* test = choice ? as_unary(choice->condition, UnaryOp::is_nan) : nullptr;
  if (test && equal(test->a, choice->otherwise) &&
      is_number(choice->then, identity_of(combiner, operand.type())))
    operand = choice->otherwise;
  while (const auto* widened = as<expr::Cast>(operand)) operand = widened->a;
  return as<expr::Load>(operand);
}

}  // namespace

Expr at_place(Expr condition, const stmt::Store& store, const std::vector<Expr>& place) {
  for (size_t dim = 0; dim < place.size(); ++dim) {
    const std::string* loop = var_name(store.indices[dim]);
    if (loop) condition = substitute(condition, *loop, place[dim]);
    else if (!is_const(store.indices[dim], 0)) return {};
  }
  return condition;
}

bool asks_for(const Expr& where, const Expr& condition, const Ranges& ranges) {
  return std::ranges::any_of(conjuncts(where),
                             [&, asked = simplify(condition, ranges)](const Expr& own) {
                               return equal(simplify(own, ranges), asked);
                             });
}

bool is_whole(const Kernel& kernel, BufferId buffer, bool guarded) {
  if (kernel.buffer(buffer).role != BufferRole::temp) return true;
  const Ranges symbols = ranges_of(kernel, {});
  Expr elements(1);
  for (const Expr& extent : kernel.buffer(buffer).shape) elements = elements * extent;
  return std::ranges::any_of(stores_of(kernel.body), [&](const StoreRef& store) {
    if (store->buffer != buffer) return false;
    if (!guarded && store->where.defined() && !store->init.defined()) return false;
    Expr points(1);
    std::vector<std::string> variables;
    for (const Stmt& around : find_path(kernel.body, store.stmt())) {
      if (const auto* loop = as<stmt::Loop>(around);
          loop && std::ranges::any_of(store->indices, [&](const Expr& index) {
            return uses_var(index, loop->var);
          }))
        points = points * loop->extent, variables.push_back(loop->var);
      if (const auto* some = as<stmt::If>(around);
          some && std::ranges::any_of(variables, [&](const std::string& variable) {
            return uses_var(some->condition, variable);
          }))
        return false;
    }
    return is_const(simplify(points - elements, symbols), 0);
  });
}

bool reads_written(const Kernel& kernel, const Expr& value, const Expr& where,
                   const Ranges& ranges) {
  bool written = true;
  visit(value, [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    if (!read) return;
    for (const StoreRef& other : stores_of(kernel.body))
      if (other->buffer == read->buffer && other->where.defined() && !other->init.defined())
        written &= is_written(*other, *read, where, ranges);
  });
  return written;
}

bool adds_nothing(const Kernel& kernel, const stmt::Store& store, const Ranges& ranges,
                  const Fails& fails, bool finite) {
  if (!reads_written(kernel, store.value, store.where, ranges)) return false;
  const auto holds = [&](const Expr& operand, Combiner combiner, int64_t zero) {
    const expr::Load* read = load_in(operand, combiner);
    if (!read) return false;
    const Expr number = number_where(kernel, *read, fails);
    if (!number.defined()) return false;
    return zero != 0 ? as_const(number) == zero
                     : is_number(number, identity_of(combiner, number.type()));
  };
  const Expr left = factor_of(store.value, Factor::left),
             right = factor_of(store.value, Factor::right);
  if (!left.defined()) return holds(store.value, store.combiner, 0);
  if (store.combiner != Combiner::add) return false;
  const auto is_zero = [&](const Expr& factor) {
    return holds(number_in(factor), Combiner::add, counted(factor).zero);
  };
  const bool one_suffices = finite || is_int(left.type());
  return one_suffices ? is_zero(left) || is_zero(right) : is_zero(left) && is_zero(right);
}

}  // namespace tw::sched
