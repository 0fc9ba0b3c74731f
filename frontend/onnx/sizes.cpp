// Sizes that are made while the model runs: data symbols, and symbols that turn out to be one.
#include <algorithm>

#include "frontend/onnx/builder.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxOperands = 64;

// Broadcast operands, aligned at the last axis: pairs of dims that are neither known to be equal
// nor 1.
void pair_up(const Shape& a, const Shape& b, size_t skip,
             std::vector<std::pair<Expr, Expr>>& pairs) {
  for (size_t i = skip; i < std::min(a.size(), b.size()); ++i) {
    const Expr &x = a[a.size() - 1 - i], &y = b[b.size() - 1 - i];
    if (!is_const(x, 1) && !is_const(y, 1) && !equal(Shape{x}, Shape{y})) pairs.emplace_back(x, y);
  }
}

int64_t node_count(const Expr& e) {
  int64_t count = 0;
  visit(e, [&](const Expr&) { ++count; });
  return count;
}

}  // namespace

Expr Builder::current(const Expr& dim) const {
  if (replaced_.empty() || !dim.defined()) return dim;
  bool changed = false;
  const Expr now = rewrite(dim, [&](const Expr& e) {
    if (e->kind != ExprKind::var) return Expr();
    auto found = replaced_.find(e->name);
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

Expr Builder::element(Val v, int64_t index, const Expr& bound) {
  if (const auto known = known_element(v, index)) return *known;
  for (const Symbol& symbol : data_symbols_)
    if (symbol.value == v && symbol.element == index && !replaced_.count(symbol.name))
      return var(symbol.name);
    else if (symbol.value == v && symbol.element == index) return current(var(symbol.name));
  // Around the region nobody else has the name, now or later
  const std::string stem = depth_ > 0 ? "d" + std::to_string(depth_) + "_" : "d";
  std::string name;
  for (size_t number = data_symbols_.size(); name.empty() || symbols_.count(name); ++number)
    name = symbol_name(stem + std::to_string(number), 0);
  data_symbols_.push_back({name, v, index, bound.defined() ? current(bound) : Expr(), {}});
  symbols_.emplace(name, symbol_range(name));
  return var(name);
}

Expr Builder::most_outside(const Expr& dim) const {
  Expr most = current(dim);
  // Bounds have symbols that were made before
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

// By something that is known earlier: a size of the inputs by sizes of the inputs, one made from
// data by those made before.
bool Builder::may_replace(const std::string& symbol, const Expr& by) {
  const Symbol* own = data_symbol(symbol);
  // The graph around a region decides about its own
  bool earlier = !uses_var(by, symbol) && !around_.count(symbol);
  visit(by, [&](const Expr& e) {
    const Symbol* other = e->kind == ExprKind::var ? data_symbol(e->name) : nullptr;
    if (other)
      earlier = earlier && own &&
                std::pair(other->value.index, other->element) <
                    std::pair(own->value.index, own->element);
  });
  return earlier;
}

void Builder::replace_symbol(const std::string& symbol, const Expr& by) {
  if (Symbol* data = data_symbol(symbol)) data->equals = by;
  for (auto& [name, now] : replaced_) now = simplified(substitute(now, symbol, by));
  replaced_[symbol] = by;
  std::erase(symbol_order_, symbol);
  refresh();
}

// After news of symbols.
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

// A size of the inputs that is to be min(itself, a number), as where a table is cut to it, is at
// most that number.
bool Builder::limit(const Expr& symbol, const Expr& cut) {
  if (symbol->kind != ExprKind::var || !std::ranges::count(symbol_order_, symbol->name) ||
      around_.count(symbol->name))
    return false;
  if (cut->kind != ExprKind::binary || cut->binary != BinaryOp::min) return false;
  const Expr &a = cut->args[0], &b = cut->args[1];
  const std::optional<int64_t> most = equal(a, symbol)   ? as_const(b)
                                      : equal(b, symbol) ? as_const(a)
                                                         : std::nullopt;
  if (!most || *most < 1) return false;
  SymbolLimits& limits =
      limits_.try_emplace(symbol->name, limits_of({}, symbol->name)).first->second;
  limits.most = std::min(limits.most, *most);
  symbols_[symbol->name].max = Expr(limits.most);
  refresh();
  return true;
}

bool Builder::unify(const Expr& first, const Expr& second) {
  const Expr a = current(first), b = current(second);
  if (equal(Shape{a}, Shape{b}) || limit(a, b) || limit(b, a)) return true;
  // Sizes made from data go before those of inputs, later ones before earlier ones.
  const auto rank = [&](const Expr& e) {
    return e->kind != ExprKind::var ? -1 : least_of(e->name) == 0 ? 1 : 0;
  };
  std::vector<std::pair<Expr, Expr>> ways = {{b, a}, {a, b}};
  std::ranges::stable_sort(
      ways, [&](const auto& x, const auto& y) { return rank(x.first) > rank(y.first); });
  for (const auto& [symbol, by] : ways) {
    if (rank(symbol) < 0 || !may_replace(symbol->name, by)) continue;
    const std::string name = symbol->name;
    if (rank(symbol) == 0 && constant_bounds(by, symbols_).min.value_or(1) < 1) continue;
    replace_symbol(name, by);
    return true;
  }
  return false;
}

// What the operator needs to be equal and is not known to be. False: there is nothing to be done
// about it.
bool Builder::unify_operands(const OpAttrs& attrs, const std::vector<Val>& inputs) {
  std::vector<std::pair<Expr, Expr>> pairs;
  const auto shape = [&](size_t i) -> const Shape& { return type(inputs[i]).shape; };
  if (std::holds_alternative<op::Binary>(attrs) || std::holds_alternative<op::Select>(attrs)) {
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t k = 0; k < i; ++k) pair_up(shape(k), shape(i), 0, pairs);
  } else if (const auto* expand = std::get_if<op::Expand>(&attrs)) {
    pair_up(shape(0), expand->shape, 0, pairs);
  } else if (const auto* product = std::get_if<op::MatMul>(&attrs);
             product && shape(0).size() >= 2 && shape(1).size() >= 2) {
    pair_up(shape(0), shape(1), 2, pairs);
    pairs.emplace_back(shape(0)[shape(0).size() - (product->trans_a ? 2 : 1)],
                       shape(1)[shape(1).size() - (product->trans_b ? 1 : 2)]);
  } else if (const auto* concat = std::get_if<op::Concat>(&attrs)) {
    for (size_t i = 1; i < inputs.size() && shape(i).size() == shape(0).size(); ++i)
      for (size_t axis = 0; axis < shape(0).size(); ++axis)
        if (static_cast<int64_t>(axis) != concat->axis)
          pairs.emplace_back(shape(0)[axis], shape(i)[axis]);
  } else if (std::holds_alternative<op::Recurrent>(attrs) && shape(0).size() == 3) {
    // The batch of the lengths, and of the first states
    for (const auto& [input, axis] : {std::pair<size_t, size_t>{3, 0}, {4, 1}, {5, 1}})
      if (input < inputs.size() && inputs[input].valid() && axis < shape(input).size())
        pairs.emplace_back(shape(0)[1], shape(input)[axis]);
  } else if (std::holds_alternative<op::LayerNorm>(attrs)) {
    for (size_t i = 1; i < inputs.size(); ++i) pair_up(shape(0), shape(i), 0, pairs);
  } else if (std::holds_alternative<op::BatchNorm>(attrs) && shape(0).size() >= 2) {
    for (size_t i = 1; i < inputs.size(); ++i)
      if (shape(i).size() == 1) pairs.emplace_back(shape(0)[1], shape(i)[0]);
  }
  bool changed = false;
  for (const auto& [a, b] : pairs) {
    if (equal(Shape{current(a)}, Shape{current(b)})) continue;
    if (!unify(a, b)) return false;
    changed = true;
  }
  return changed;
}

// Where operands of an element-wise operator or a concat have sizes that are equal for some sizes
// of the inputs alone, as an up-sampled map and the one beside it, they get the simplest of them: a
// run looks at it. False: some cannot be equal, or the operator is another one.
bool Builder::fit_operands(const OpAttrs& attrs, std::vector<Val>& inputs, const Origin& origin) {
  const auto* concat = std::get_if<op::Concat>(&attrs);
  if (!concat && !std::holds_alternative<op::Binary>(attrs) &&
      !std::holds_alternative<op::Select>(attrs))
    return false;
  std::vector<Shape> shapes;
  size_t rank = 0;
  for (const Val input : inputs) {
    shapes.push_back(type(input).shape);
    rank = std::max(rank, shapes.back().size());
  }
  std::vector<bool> changed(inputs.size());
  for (size_t axis = 0; axis < rank; ++axis) {  // counted from the last one
    if (concat && static_cast<int64_t>(rank - 1 - axis) == concat->axis) continue;
    std::vector<Expr*> dims(inputs.size());
    const Expr* simplest = nullptr;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (axis >= shapes[i].size()) continue;
      Expr& dim = shapes[i][shapes[i].size() - 1 - axis];
      if (is_const(dim, 1)) continue;
      dims[i] = &dim;
      if (!simplest || node_count(dim) < node_count(*simplest)) simplest = &dim;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!dims[i] || equal(Shape{*dims[i]}, Shape{*simplest})) continue;
      if (!may_be_equal_for_some(*dims[i], *simplest)) return false;
      *dims[i] = *simplest;
      changed[i] = true;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!changed[i]) continue;
    Expected<Val> fitted = emit(op::Expand{shapes[i], true}, {inputs[i]}, origin);
    if (!fitted) return llvm::consumeError(fitted.takeError()), false;
    inputs[i] = *fitted;
  }
  return std::ranges::find(changed, true) != changed.end();
}

void Builder::need_symbols(const std::vector<Expr>& dims, std::vector<bool>& needed) {
  for (const Expr& dim : dims) {
    if (!dim.defined()) continue;
    visit(dim, [&](const Expr& e) {
      const Symbol* symbol = e->kind == ExprKind::var ? data_symbol(e->name) : nullptr;
      if (!symbol) return;
      const auto index = static_cast<size_t>(symbol->value.index);
      if (needed[index]) return;
      needed[index] = true;
      need_symbols({symbol->bound, symbol->equals}, needed);
    });
  }
}

}  // namespace tw::onnx_import
