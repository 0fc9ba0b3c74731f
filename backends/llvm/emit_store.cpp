// Stores: their conditions, their combiners, and asynchronous copies by a device
#include <limits>

#include "backends/llvm/kernel_emitter.h"
#include "ir/kernel/copies.h"

namespace tw::codegen {
namespace {
constexpr int64_t kMaxStatements = 20000;  // most stores after expansion

// The x of select(is_nan(x), identity, x) in a minimum or maximum, which therefore ignores NaNs
Expr number_of(const stmt::Store& store) {
  if (store.combiner != Combiner::min && store.combiner != Combiner::max) return {};
  const auto* choice = as<expr::Select>(store.value);
  if (!choice) return {};
  const Expr& x = choice->otherwise;
  const auto* asked = as_unary(choice->condition, UnaryOp::is_nan);
  const auto* identity = as<expr::Float>(choice->then);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool numbers = asked && equal(asked->a, x) && identity &&
                       identity->value == (store.combiner == Combiner::max ? -infinity : infinity);
  return numbers ? x : Expr();
}
}  // namespace

// A uniform i1: all enclosing reduce loops are at their first iteration. Lane 0 stands for a vector
// loop.
Value* KernelEmitter::first_reduce_iteration() {
  Value* first = v_.b.getTrue();
  for (const stmt::Loop* loop : loops_) {
    if (loop->role != AxisRole::reduce || loop->var == lanes_.var) continue;
    Value* index = function_.vars[loop->var];
    first = v_.logical_and(first, v_.b.CreateICmpEQ(index, v_.i64(0)));
  }
  return first;
}

// The condition at the present iteration of the expanded loops. If that decides it, it costs no
// instruction.
Expr KernelEmitter::resolved(const Expr& condition) {
  Expr e = condition;
  for (const auto& [name, value] : expanded_)
    if (uses_var(e, name)) e = substitute(e, name, Expr(value));
  if (e.get() == condition.get()) return e;
  resolved_.push_back(simplify(e, emission_.ranges));
  return resolved_.back();
}

void KernelEmitter::emit_store(const stmt::Store& store) {
  if (++emitted_ > kMaxStatements)
    return fail("more than " + std::to_string(kMaxStatements) + " statements after unrolling");
  expressions_.begin_statement();
  if (emission_.lines) emission_.at_line(emission_.lines->store(store.label));
  if (store.async && emission_.environment && emission_.environment->holds(store.buffer))
    return emit_async(store);
  Access access = memory_.access_of(memory_.form_of(&store, store.buffer, store.indices));
  if (store.init.defined()) {
    v_.branch(
        first_reduce_iteration(),
        [&]() -> Value* {
          expressions_.in_scope(
              [&] { memory_.store(store.buffer, access, expressions_.emit(store.init)); });
          return nullptr;
        },
        []() -> Value* { return nullptr; });
  }
  if (!store.where.defined()) return emit_update(store, access);
  Value* where = expressions_.emit(resolved(store.where));
  if (is_all_true(where)) return emit_update(store, access);
  if (is_all_false(where)) return;
  if (Values::lanes(where)) {
    Value* outer = lanes_.mask;
    lanes_.mask = v_.logical_and(lanes_.mask, where);
    if (is_all_true(lanes_.mask)) lanes_.mask = outer;
    if (!is_all_false(lanes_.mask)) emit_update(store, access);
    lanes_.mask = outer;
    return;
  }
  v_.branch(
      where,
      [&]() -> Value* {
        expressions_.in_scope([&] { emit_update(store, access); });
        return nullptr;
      },
      []() -> Value* { return nullptr; });
}

// The lanes of a vector loop form one copy where they are contiguous.
void KernelEmitter::emit_async(const stmt::Store& store) {
  const auto* choice = as<expr::Select>(store.value);
  const Expr copied = copied_load(store.value);
  const auto& from = *as<expr::Load>(copied);
  Value* there = choice ? expressions_.emit(resolved(choice->condition)) : nullptr;
  const Access to_access = memory_.access_of(memory_.form_of(&store, store.buffer, store.indices)),
               from_access = memory_.access_of(memory_.form_of(&from, from.buffer, from.indices));
  const int64_t size = dtype_bytes(kernel_.buffer(store.buffer).dtype);
  const bool side_by_side = !lanes_.count ||
                            (to_access.lane_stride == 1 && from_access.lane_stride == 1 &&
                             !to_access.lane_offsets && !from_access.lane_offsets);
  if (lanes_.mask || !side_by_side || (there && Values::lanes(there)))
    return fail("the lanes of the asynchronous stage '" + store.label + "' are no one copy");
  const int64_t bytes = size * std::max(lanes_.count, 1);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return fail("the asynchronous stage '" + store.label + "' copies " + std::to_string(bytes) +
                " bytes at a time, not 4, 8 or 16");
  emission_.environment->copy(v_, memory_.pointer(store.buffer, to_access, 0),
                              memory_.pointer(from.buffer, from_access, 0), bytes,
                              there && !is_all_true(there) ? there : nullptr);
}

void KernelEmitter::emit_update(const stmt::Store& store, const Access& access) {
  DType t = kernel_.buffer(store.buffer).dtype;
  if (store.combiner == Combiner::none)
    return memory_.store(store.buffer, access, expressions_.emit(store.value));
  bool uniform = !access.lane_stride && !access.lane_offsets;
  if (uniform && lanes_.count) {  // lanes are combined first, as their order is free
    Value* value = v_.splat(expressions_.emit(store.value), lanes_.count);
    if (lanes_.mask) value = v_.select(lanes_.mask, value, v_.identity(store.combiner, t));
    Value* sum = v_.horizontal(store.combiner, t, value, number_of(store).defined());
    Value* outer = lanes_.mask;
    lanes_.mask = nullptr;
    memory_.store(store.buffer, access,
                  v_.combine(store.combiner, t, memory_.load(store.buffer, access), sum));
    lanes_.mask = outer;
    return;
  }
  if (access.lane_offsets) {  // lanes may meet in one element, so they go one after the other
    Value* value = v_.splat(expressions_.emit(store.value), lanes_.count);
    Value* offsets = access.lane_offsets;
    Value* mask = lanes_.mask;
    int count = std::exchange(lanes_.count, 0);
    lanes_.mask = nullptr;
    for (int i = 0; i < count; ++i) {
      Access one = access;
      Value* offset = v_.b.CreateExtractElement(offsets, static_cast<uint64_t>(i));
      one.dynamic = one.dynamic ? v_.b.CreateAdd(one.dynamic, offset) : offset;
      one.lane_offsets = nullptr;
      Value* active = mask ? v_.b.CreateExtractElement(mask, static_cast<uint64_t>(i))
                           : v_.b.getTrue();
      v_.branch(
          active,
          [&]() -> Value* {
            memory_.store(store.buffer, one,
                          v_.combine(store.combiner, t, memory_.load(store.buffer, one),
                                     v_.b.CreateExtractElement(value, static_cast<uint64_t>(i))));
            return nullptr;
          },
          []() -> Value* { return nullptr; });
    }
    lanes_.count = count;
    lanes_.mask = mask;
    return;
  }
  const auto* product = as_binary(store.value, BinaryOp::mul);
  if (product && v_.traits.fma && store.combiner == Combiner::add && store.value->type == t &&
      (t == DType::f32 || t == DType::f64)) {
    Value* x = expressions_.emit(product->a);
    Value* y = expressions_.emit(product->b);
    return memory_.store(store.buffer, access, v_.fma(x, y, memory_.load(store.buffer, access)));
  }
  if (const Expr number = number_of(store); number.defined()) {
    Value* value = expressions_.emit(number);
    Value* old = memory_.load(store.buffer, access);
    return memory_.store(store.buffer, access, v_.combine_numbers(store.combiner, old, value));
  }
  Value* value = expressions_.emit(store.value);
  memory_.store(store.buffer, access,
                v_.combine(store.combiner, t, memory_.load(store.buffer, access), value));
}

}  // namespace tw::codegen
