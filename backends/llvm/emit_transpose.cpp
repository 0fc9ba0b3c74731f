// Copies that turn columns into rows: for j in 16 unroll { for i in 16 vector { y[.., j, i] = x[..,
// i, j] } }, with any distance between x's rows and between y's. Whole vectors are read along x's
// rows, transposed in registers and stored along y's rows. Loading single elements would take a
// load for each. And pairs: for p in 2 unroll { for i in 16 vector { y[.., i, p] = f(p, i) } }
// becomes two vectors, whose elements one store writes in turn.
#include <array>
#include <bit>

#include "backends/llvm/kernel_emitter.h"

namespace tw::codegen {
namespace {

// The distance between elements at neighbouring values of the variable; nullopt where it varies
std::optional<int64_t> stride_of(const IndexForm& form, const std::string& name) {
  int64_t stride = 0;
  for (const IndexTerm& term : form.terms) {
    const bool alone = term.factors.size() == 1 && is_var(term.factors[0], name);
    if (alone) stride += term.coefficient;
    else if (std::ranges::any_of(term.factors, [&](const Expr& e) { return uses_var(e, name); }))
      return std::nullopt;
  }
  return stride;
}

// Element i of vector j becomes element j of vector i: blocks of half the size swap places, then
// the same happens inside each block.
void transpose(Values& v, std::vector<Value*>& rows) {
  const int n = static_cast<int>(rows.size());
  for (int half = n / 2; half > 0; half /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) {
      low.push_back(i & half ? n + i - half : i);
      high.push_back(i & half ? n + i : i + half);
    }
    for (int i = 0; i < n; ++i) {
      if (i & half) continue;
      Value *&a = rows[static_cast<size_t>(i)], *&b = rows[static_cast<size_t>(i + half)];
      Value* first = v.shuffle(a, b, low);
      b = v.shuffle(a, b, high);
      a = first;
    }
  }
}

}  // namespace

bool KernelEmitter::emit_transpose(const stmt::Loop& loop) {
  const auto* inner = as<stmt::Loop>(loop.body);
  const auto extent = as_const(loop.extent);
  if (lanes_.count || lanes_.mask || !extent || !inner || inner->kind != LoopKind::vector ||
      as_const(inner->extent) != extent)
    return false;
  const auto* copy = as<stmt::Store>(inner->body);
  if (*extent < 2 || *extent > 16 || !std::has_single_bit(static_cast<uint64_t>(*extent)) || !copy)
    return false;
  const auto* load = as<expr::Load>(copy->value);
  if (copy->combiner != Combiner::none || copy->init.defined() || copy->where.defined() || !load)
    return false;
  const Buffer &from = kernel_.buffer(load->buffer), &to = kernel_.buffer(copy->buffer);
  if (from.scope == "register" || to.scope == "register" || from.dtype != to.dtype) return false;
  const IndexForm &source = memory_.form_of(load, load->buffer, load->indices),
                  &target = memory_.form_of(copy, copy->buffer, copy->indices);
  const auto rows_apart = stride_of(source, inner->var),
             columns_apart = stride_of(source, loop.var), along = stride_of(target, inner->var);
  if (!rows_apart || *rows_apart == 0 || columns_apart != 1 || along != 1 ||
      !stride_of(target, loop.var))
    return false;

  std::vector<llvm::Constant*> ramp;
  for (int64_t i = 0; i < *extent; ++i) ramp.push_back(v_.b.getInt64(static_cast<uint64_t>(i)));
  lanes_.count = static_cast<int>(*extent);
  // Returns the access of vector `number` along `lane`.
  auto access = [&](const IndexForm& form, const std::string& lane, const std::string& other,
                    int64_t number) {
    expressions_.begin_statement();
    lanes_.var = lane;
    function_.vars[lane] = llvm::ConstantVector::get(ramp);
    function_.vars[other] = v_.i64(number);
    return memory_.access_of(form);
  };
  emitted_ += *extent;
  if (emission_.lines) emission_.at_line(emission_.lines->store(copy->label));
  std::vector<Value*> rows;
  for (int64_t i = 0; i < *extent; ++i)
    rows.push_back(memory_.load_memory(load->buffer, access(source, loop.var, inner->var, i),
                                       v_.storage_type(from.dtype)));
  transpose(v_, rows);
  for (int64_t i = 0; i < *extent; ++i)
    memory_.store_memory(copy->buffer, access(target, inner->var, loop.var, i),
                         rows[static_cast<size_t>(i)]);
  lanes_.var.clear();
  lanes_.count = 0;
  function_.vars.erase(inner->var);
  return true;
}

bool KernelEmitter::emit_pairs(const stmt::Loop& loop) {
  const auto* inner = as<stmt::Loop>(loop.body);
  const auto count = inner ? as_const(inner->extent) : std::nullopt;
  if (lanes_.count || lanes_.mask || !is_const(loop.extent, 2) || !count || *count < 2 ||
      inner->kind != LoopKind::vector)
    return false;
  const auto* store = as<stmt::Store>(inner->body);
  if (!store || store->combiner != Combiner::none || store->where.defined() || store->async)
    return false;
  const Buffer& to = kernel_.buffer(store->buffer);
  const IndexForm& target = memory_.form_of(store, store->buffer, store->indices);
  if (to.scope == "register" || stride_of(target, loop.var) != 1 ||
      stride_of(target, inner->var) != 2)
    return false;

  const auto lanes_along = [&](const std::string& variable, int64_t lanes) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < lanes; ++i) ramp.push_back(v_.b.getInt64(static_cast<uint64_t>(i)));
    lanes_.var = variable;
    lanes_.count = static_cast<int>(lanes);
    function_.vars[variable] = llvm::ConstantVector::get(ramp);
  };
  if (emission_.lines) emission_.at_line(emission_.lines->store(store->label));
  std::array<Value*, 2> halves{};
  lanes_along(inner->var, *count);
  for (int64_t p = 0; p < 2; ++p) {
    ++emitted_;
    expressions_.begin_statement();
    function_.vars[loop.var] = v_.i64(p);
    expanded_[loop.var] = p;
    halves[static_cast<size_t>(p)] = v_.to_storage(
        v_.splat(expressions_.emit(store->value), lanes_.count), to.dtype);
  }
  expanded_.erase(loop.var);
  std::vector<int> in_turn;
  for (int i = 0; i < lanes_.count; ++i) in_turn.insert(in_turn.end(), {i, i + lanes_.count});
  Value* both = v_.shuffle(halves[0], halves[1], in_turn);
  expressions_.begin_statement();
  function_.vars[inner->var] = v_.i64(0);
  lanes_along(loop.var, 2 * *count);
  memory_.store_memory(store->buffer, memory_.access_of(target), both);
  lanes_.var.clear();
  lanes_.count = 0;
  function_.vars.erase(inner->var);
  return true;
}

}  // namespace tw::codegen
