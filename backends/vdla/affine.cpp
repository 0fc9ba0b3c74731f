#include "backends/vdla/affine.h"

#include <algorithm>

namespace tw::vdla {
namespace {

std::optional<Sum> sum_of(const Expr& e) {
  if (const auto known = as_const(e)) return Sum{*known, {}};
  if (const auto* variable = as<expr::Var>(e)) return Sum{0, {{variable->name, 1}}};
  const auto* pair = as<expr::Binary>(e);
  if (!pair) return std::nullopt;
  const std::optional<Sum> a = sum_of(pair->a), b = sum_of(pair->b);
  if (!a || !b) return std::nullopt;
  const bool scales = pair->op == BinaryOp::mul && (a->strides.empty() || b->strides.empty());
  if (scales) {
    const int64_t factor = a->strides.empty() ? a->base : b->base;
    Sum out = a->strides.empty() ? *b : *a;
    out.base *= factor;
    for (auto& [name, stride] : out.strides) stride *= factor;
    return out;
  }
  if (pair->op != BinaryOp::add && pair->op != BinaryOp::sub) return std::nullopt;
  const int64_t sign = pair->op == BinaryOp::add ? 1 : -1;
  Sum out = *a;
  out.base += sign * b->base;
  for (const auto& [name, stride] : b->strides) out.strides[name] += sign * stride;
  return out;
}

Expr with_values(const Expr& e, const Values& values) {
  return rewrite(e, [&](const Expr& n) -> Expr {
    const auto* variable = as<expr::Var>(n);
    if (!variable) return {};
    const auto found = values.find(variable->name);
    return found == values.end() ? Expr() : Expr(found->second);
  });
}

// nullopt: the shape is not constant.
std::optional<Expr> flat_index(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!as_const(buffer.shape[d])) return std::nullopt;
    flat = flat * buffer.shape[d] + indices[d];
  }
  return flat;
}

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

int64_t Affine::at(const std::vector<int64_t>& point) const {
  int64_t value = base;
  for (size_t i = 0; i < strides.size(); ++i) value += strides[i] * point[i];
  return value;
}

std::optional<Affine> affine(const Sum& sum, const Values& values, const Nest& nest) {
  Affine out{sum.base, std::vector<int64_t>(nest.loops.size())};
  for (const auto& [name, stride] : sum.strides) {
    const auto loop = std::ranges::find(nest.loops, name, &NestLoop::var);
    if (loop != nest.loops.end()) {
      out.strides[static_cast<size_t>(loop - nest.loops.begin())] = stride;
      continue;
    }
    const auto value = values.find(name);
    if (value == values.end()) return std::nullopt;
    out.base += stride * value->second;
  }
  return out;
}

std::optional<Affine> affine(const Expr& e, const Values& values, const Nest& nest) {
  const std::optional<Sum> sum = sum_of(simplify(with_values(e, values), nest.ranges));
  return sum ? affine(*sum, {}, nest) : std::nullopt;
}

std::optional<Sum> flat_sum(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Nest& nest) {
  const std::optional<Expr> flat = flat_index(buffer, indices);
  return flat ? sum_of(simplify(*flat, nest.ranges)) : std::nullopt;
}

std::optional<Affine> flat_affine(const Buffer& buffer, const std::vector<Expr>& indices,
                                  const Values& values, const Nest& nest) {
  const std::optional<Expr> flat = flat_index(buffer, indices);
  return flat ? affine(*flat, values, nest) : std::nullopt;
}

std::optional<Nest> nest_of(const Stmt& s, std::vector<Expr>* conditions) {
  Nest nest;
  for (Stmt at = s;; at = body_of(at)) {
    const auto* block = as<stmt::Block>(at);
    if (is<stmt::Store>(at) || (block && !block->intrinsic.empty())) {
      nest.leaf = at;
      return nest;
    }
    if (const auto* guard = as<stmt::If>(at)) {
      conditions->push_back(guard->condition);
      continue;
    }
    const auto* loop = as<stmt::Loop>(at);
    if (!loop || is_concurrent(loop->kind)) return std::nullopt;
    const std::optional<int64_t> extent = as_const(loop->extent);
    if (!extent) return std::nullopt;
    nest.loops.push_back({loop->var, *extent, 0, *extent, loop->role});
    nest.ranges[loop->var] = {Expr(0), Expr(*extent - 1)};
  }
}

bool restrict(Nest& nest, const Expr& condition, const Values& values) {
  if (const auto* both = as_binary(condition, BinaryOp::logical_and))
    return restrict(nest, both->a, values) && restrict(nest, both->b, values);
  const Expr known = simplify(with_values(condition, values), nest.ranges);
  if (const auto holds = as_const(known)) {
    nest.empty |= *holds == 0;
    return true;
  }
  if (const auto* both = as_binary(known, BinaryOp::logical_and))
    return restrict(nest, both->a, {}) && restrict(nest, both->b, {});
  const auto* comparison = as<expr::Binary>(known);
  const bool less = comparison && comparison->op == BinaryOp::lt;
  if (!less && !(comparison && comparison->op == BinaryOp::le)) return false;
  // The condition is rest >= 0.
  const std::optional<Affine> rest = affine(comparison->b - comparison->a - Expr(less ? 1 : 0), {},
                                            nest);
  if (!rest) return false;
  const auto moves = [](int64_t stride) { return stride != 0; };
  if (std::ranges::count_if(rest->strides, moves) != 1) return false;
  const size_t l = static_cast<size_t>(std::ranges::find_if(rest->strides, moves) -
                                       rest->strides.begin());
  NestLoop& loop = nest.loops[l];
  const int64_t stride = rest->strides[l];
  if (stride > 0) loop.first = std::max(loop.first, -floor_quotient(rest->base, stride));
  else loop.end = std::min(loop.end, floor_quotient(rest->base, -stride) + 1);
  nest.empty |= loop.first >= loop.end;
  return true;
}

}  // namespace tw::vdla
