// Sizes made during a run: data symbols, and symbols that turn out to be equal.
#include <algorithm>

#include "frontend/onnx/builder.h"
#include "ir/graph/unequal_dims.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxOperands = 64;

int64_t node_count(const Expr& e) {
  int64_t count = 0;
  visit(e, [&](const Expr&) { ++count; });
  return count;
}

Expected<std::vector<TensorType>> infer_outputs(const OpAttrs& attrs,
                                                const std::vector<const TensorType*>& inputs) {
  const OpInfo& info = op_info(attrs);
  if (has_several_outputs(attrs)) return info.infer_all(attrs, inputs);
  TW_ASSIGN(TensorType only, info.infer(attrs, inputs));
  return std::vector<TensorType>{std::move(only)};
}

}  // namespace

Expr Builder::current(const Expr& dim) const {
  if (replaced_.empty() || !dim.defined()) return dim;
  bool changed = false;
  const Expr now = rewrite(dim, [&](const Expr& e) {
    const std::string* name = var_name(e);
    if (!name) return Expr();
    auto found = replaced_.find(*name);
    changed = changed || found != replaced_.end();
    return found == replaced_.end() ? Expr() : found->second;
  });
  return changed ? simplified(now) : dim;
}

std::optional<Expr> Builder::known_element(Val& v, int64_t& index) {
  for (int64_t steps = 0; steps < kMaxOperands; ++steps) {
    if (const std::vector<Expr>* list = elements(v)) return (*list)[static_cast<size_t>(index)];
    const Entry& e = entry(v);
    if (e.kind != Kind::op) return std::nullopt;
    if (const auto* cast = std::get_if<op::Cast>(&*e.attrs);
        (cast && is_int(type(e.inputs[0]).dtype)) ||
        std::holds_alternative<op::Reshape>(*e.attrs)) {
      v = e.inputs[0];
    } else if (const auto* slice = std::get_if<op::Slice>(&*e.attrs);
               slice && slice->starts.size() == 1 && as_const(slice->starts[0])) {
      index = *as_const(slice->starts[0]) + index * slice->steps[0];
      v = e.inputs[0];
    } else if (std::holds_alternative<op::Concat>(*e.attrs) && e.type.shape.size() == 1) {
      const std::vector<Val>& parts = e.inputs;
      size_t part = 0;
      for (; part < parts.size(); ++part) {
        const auto extent = as_const(type(parts[part]).shape[0]);
        if (!extent) return std::nullopt;
        if (index < *extent) break;
        index -= *extent;
      }
      v = parts[part];
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Expr Builder::element(Val v, int64_t index, const Expr& bound, const Origin& origin) {
  if (const auto known = known_element(v, index)) return *known;
  for (const Symbol& symbol : data_symbols_)
    if (symbol.value == v && symbol.element == index && !replaced_.count(symbol.name))
      return var(symbol.name);
    else if (symbol.value == v && symbol.element == index) return current(var(symbol.name));
  // The name must be new in the graphs around the region, too, now and later.
  const std::string stem = depth_ > 0 ? "d" + std::to_string(depth_) + "_" : "d";
  std::string name;
  for (size_t number = data_symbols_.size(); name.empty() || symbols_.count(name); ++number)
    name = symbol_name(stem + std::to_string(number), 0);
  data_symbols_.push_back(
      {name, v, index, bound.defined() ? current(bound) : Expr(), {}, origin.title()});
  symbols_.emplace(name, symbol_range(name));
  return var(name);
}

Expr Builder::most_outside(const Expr& dim) const {
  Expr most = current(dim);
  // Bounds use symbols that were made earlier
  for (auto symbol = data_symbols_.rbegin(); symbol != data_symbols_.rend(); ++symbol) {
    if (!uses_var(most, symbol->name)) continue;
    if (!symbol->bound.defined()) return {};
    const auto ends = interval_over(most, {{symbol->name, {Expr(0), symbol->bound}}}, symbols_);
    if (!ends || !ends->max.defined() || uses_var(ends->max, symbol->name)) return {};
    most = ends->max;
  }
  return simplified(most);
}

bool Builder::is_made_here(const Shape& shape) const {
  return std::ranges::any_of(data_symbols_, [&](const Symbol& symbol) {
    return std::ranges::any_of(shape, [&](const Expr& dim) { return uses_var(dim, symbol.name); });
  });
}

Builder::Symbol* Builder::data_symbol(std::string_view name) {
  auto found = std::ranges::find(data_symbols_, name, &Symbol::name);
  return found == data_symbols_.end() ? nullptr : &*found;
}

// True if the symbol may be replaced by something known earlier: a size of the inputs by other
// sizes of inputs, a symbol made from data by those made before.
bool Builder::may_replace(const std::string& symbol, const Expr& by) {
  const Symbol* own = data_symbol(symbol);
  // The graph around a region decides about its own symbols
  bool earlier = !uses_var(by, symbol) && !around_.count(symbol);
  visit(by, [&](const Expr& e) {
    const std::string* name = var_name(e);
    const Symbol* other = name ? data_symbol(*name) : nullptr;
    if (other)
      earlier = earlier && own &&
                std::pair(other->value.index, other->element) <
                    std::pair(own->value.index, own->element);
  });
  return earlier;
}

void Builder::replace_symbol(const std::string& symbol, const Expr& by, const Origin& origin) {
  if (Symbol* data = data_symbol(symbol)) {
    data->equals = by;
    data->needed_by = origin.title();
  } else if (const auto size = as_const(by)) {
    fixed_sizes_.push_back(llvm::formatv("the free dimension '{0}' can be {1} alone: {2} needs it",
                                         symbol_name(symbol_names_, symbol), *size, origin.title())
                               .str());
  }
  for (auto& [name, now] : replaced_) now = simplified(substitute(now, symbol, by));
  replaced_[symbol] = by;
  std::erase(symbol_order_, symbol);
  refresh();
}

// Applies replaced symbols and new limits to all entries.
void Builder::refresh() {
  const auto now = [&](const Expr& dim) { return dim.defined() ? simplified(current(dim)) : dim; };
  for (Entry& e : entries_) {
    for (Expr& dim : e.type.shape) dim = now(dim);
    if (e.attrs) e.attrs = map_dims(*e.attrs, now);
    if (e.elements)
      for (Expr& value : *e.elements) value = now(value);
  }
  for (Symbol& other : data_symbols_) {
    other.bound = now(other.bound);
    other.equals = now(other.equals);
  }
}

// Handles a size of the inputs that must equal min(itself, a number), as when a table is cut to it:
// the number becomes its upper limit.
bool Builder::limit(const Expr& symbol, const Expr& cut) {
  const std::string* name = var_name(symbol);
  const auto* smaller = as_binary(cut, BinaryOp::min);
  if (!name || !smaller || !std::ranges::count(symbol_order_, *name) || around_.count(*name))
    return false;
  const std::optional<int64_t> most = equal(smaller->a, symbol)   ? as_const(smaller->b)
                                      : equal(smaller->b, symbol) ? as_const(smaller->a)
                                                                  : std::nullopt;
  if (!most || *most < 1) return false;
  SymbolLimits& limits = limits_.try_emplace(*name, limits_of({}, *name)).first->second;
  limits.most = std::min(limits.most, *most);
  symbols_[*name].max = Expr(limits.most);
  refresh();
  return true;
}

// An Expand to an extent that data decide demands nothing of its operand. If the extent turns out
// to be known earlier, the operand's extent is the same.
void Builder::unify_expanded() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const auto* expand = e.attrs ? std::get_if<op::Expand>(&*e.attrs) : nullptr;
    if (!expand || expand->exact) continue;
    const Shape &from = type(e.inputs[0]).shape, to = expand->shape;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const Expr &own = from[axis], &wanted = to[to.size() - from.size() + axis];
      if (!as_const(own) && is_data_dependent(own) && !is_data_dependent(wanted) &&
          !equal(Shape{own}, Shape{wanted}))
        unify(own, wanted, e.origin);
    }
  }
}

static bool lies_in(const SymbolLimits& limits, int64_t size) {
  return size >= limits.least && size <= limits.most && size % limits.step == 0;
}

bool Builder::unify(const Expr& first, const Expr& second, const Origin& origin) {
  const Expr a = current(first), b = current(second);
  if (equal(Shape{a}, Shape{b}) || limit(a, b) || limit(b, a)) return true;
  // Symbols made from data are replaced before those of inputs, later ones before earlier ones.
  const auto rank = [&](const Expr& e) {
    const std::string* name = var_name(e);
    return !name ? -1 : least_of(*name) == 0 ? 1 : 0;
  };
  std::vector<std::pair<Expr, Expr>> ways = {{b, a}, {a, b}};
  std::ranges::stable_sort(
      ways, [&](const auto& x, const auto& y) { return rank(x.first) > rank(y.first); });
  for (const auto& [symbol, by] : ways) {
    if (rank(symbol) < 0) continue;
    const std::string name = *var_name(symbol);
    if (!may_replace(name, by)) continue;
    if (rank(symbol) == 0 && constant_bounds(by, symbols_).min.value_or(1) < 1) continue;
    if (const auto limits = limits_.find(name); limits != limits_.end() && as_const(by))
      if (!lies_in(limits->second, *as_const(by))) continue;
    replace_symbol(name, by, origin);
    unify_expanded();
    return true;
  }
  return false;
}

// The operand with extents `to` in place of `from`, which the run checks; nullopt if it has no such
// extent.
Expected<std::optional<Val>> Builder::with_extents(Val operand, const Expr& from, const Expr& to,
                                                   const Origin& origin) {
  Shape shape = type(operand).shape;
  bool changed = false;
  for (Expr& dim : shape)
    if (equal(Shape{dim}, Shape{from})) dim = to, changed = true;
  if (!changed) return std::nullopt;
  TW_ASSIGN(Val fitted, emit(op::Expand{std::move(shape), true}, {operand}, origin));
  return fitted;
}

// Gives operands the simpler one of two extents, as for an up-sampled map and one beside it.
// Returns false if no operand has either extent.
Expected<bool> Builder::fit_operands(Expr simple, Expr other, std::vector<Val>& inputs,
                                     const Origin& origin) {
  if (node_count(other) < node_count(simple)) std::swap(simple, other);
  for (const auto& [from, to] : {std::pair(other, simple), std::pair(simple, other)}) {
    bool changed = false;
    for (Val& input : inputs) {
      if (!input.valid() || list_kind(input)) continue;
      TW_ASSIGN(const std::optional<Val> fitted, with_extents(input, from, to, origin));
      if (fitted) input = *fitted, changed = true;
    }
    if (changed) return true;
  }
  return false;
}

// Makes extents one that the operator needs to be equal, or lets the run check them.
Expected<std::vector<TensorType>> Builder::infer(OpAttrs& attrs, std::vector<Val>& inputs,
                                                 const Origin& origin) {
  if (const auto* reshape = std::get_if<op::Reshape>(&attrs))
    if (const auto counts = counts_without_common_factors(type(inputs[0]).shape, reshape->shape))
      unify(counts->first, counts->second, origin);
  for (int64_t steps = 0;; ++steps) {
    std::vector<const TensorType*> types;
    for (const Val input : inputs) types.push_back(input.valid() ? &type(input) : nullptr);
    attrs = map_dims(attrs, [&](const Expr& dim) { return current(dim); });
    Expected<std::vector<TensorType>> inferred = infer_outputs(attrs, types);
    if (inferred) return inferred;
    Error error = inferred.takeError();
    const auto unequal = extents_to_compare(error);
    if (!unequal || steps == kMaxOperands) return error;
    const auto& [a, b] = *unequal;
    if (!unify(a, b, origin)) {
      Expected<bool> fits = fit_operands(current(a), current(b), inputs, origin);
      if (!fits) return llvm::joinErrors(std::move(error), fits.takeError());
      if (!*fits) return error;
    }
    llvm::consumeError(std::move(error));
  }
}

Expected<Val> Builder::with_extent(Val v, size_t axis, const Expr& to, const Origin& origin) {
  if (unify(type(v).shape[axis], to, origin)) return v;
  Shape shape = type(v).shape;
  shape[axis] = current(to);
  return emit(op::Expand{std::move(shape), true}, {v}, origin);
}

void Builder::add_symbol_values(const std::vector<Expr>& dims, std::vector<Val>& values) {
  for (const Expr& dim : dims) {
    if (!dim.defined()) continue;
    visit(dim, [&](const Expr& e) {
      const std::string* name = var_name(e);
      const Symbol* symbol = name ? data_symbol(*name) : nullptr;
      if (symbol) values.push_back(symbol->value);
    });
  }
}

}  // namespace tw::onnx_import
