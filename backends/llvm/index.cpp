#include "backends/llvm/index.h"

#include <algorithm>

namespace tw::codegen {
namespace {
using Terms = std::vector<IndexTerm>;  // a term without factors is a constant

bool same_factors(const IndexTerm& x, const IndexTerm& y) {
  if (x.factors.size() != y.factors.size()) return false;
  return std::is_permutation(x.factors.begin(), x.factors.end(), y.factors.begin(),
                             [](const Expr& a, const Expr& b) { return equal(a, b); });
}

void add_to(Terms& sum, const Terms& more, int64_t scale) {
  for (const IndexTerm& t : more) {
    auto same = std::find_if(sum.begin(), sum.end(),
                             [&](const IndexTerm& s) { return same_factors(s, t); });
    if (same == sum.end()) {
      sum.push_back(t);
      sum.back().coefficient *= scale;
    } else {
      same->coefficient += t.coefficient * scale;
    }
  }
}

Terms product(const Terms& x, const Terms& y) {
  Terms result;
  for (const IndexTerm& a : x)
    for (const IndexTerm& b : y) {
      IndexTerm t = a;
      t.factors.insert(t.factors.end(), b.factors.begin(), b.factors.end());
      t.coefficient *= b.coefficient;
      add_to(result, {t}, 1);
    }
  return result;
}

Terms terms_of(const Expr& e) {
  if (auto value = as_const(e)) return *value ? Terms{{{}, *value, 0}} : Terms{};
  if (const auto* pair = as<expr::Binary>(e); pair && e->type == DType::i64) {
    if (pair->op == BinaryOp::add || pair->op == BinaryOp::sub) {
      Terms sum = terms_of(pair->a);
      add_to(sum, terms_of(pair->b), pair->op == BinaryOp::add ? 1 : -1);
      return sum;
    }
    if (pair->op == BinaryOp::mul) return product(terms_of(pair->a), terms_of(pair->b));
  }
  if (const auto* negated = as_unary(e, UnaryOp::neg); negated && e->type == DType::i64) {
    Terms sum;
    add_to(sum, terms_of(negated->a), -1);
    return sum;
  }
  return {{{e}, 1, 0}};
}

// The division by a constant that is the term's only factor, or null
const expr::Binary* division(const IndexTerm& t, BinaryOp op) {
  const auto* found = t.factors.size() == 1 ? as_binary(t.factors[0], op) : nullptr;
  return found && as_const(found->b) ? found : nullptr;
}

// c * (e floor_div c) + e floor_mod c is e. So contiguous dimensions that a fused loop runs through
// are one ramp.
void join_divisions(Terms& sum) {
  for (size_t i = 0; i < sum.size(); ++i) {
    const expr::Binary* rest = division(sum[i], BinaryOp::floor_mod);
    if (!rest || sum[i].coefficient == 0) continue;
    const int64_t scale = sum[i].coefficient;
    const auto whole = std::ranges::find_if(sum, [&](const IndexTerm& t) {
      const expr::Binary* q = division(t, BinaryOp::floor_div);
      return q && equal(q->a, rest->a) && equal(q->b, rest->b) &&
             t.coefficient == scale * *as_const(rest->b);
    });
    if (whole == sum.end()) continue;
    const Expr e = rest->a;
    whole->coefficient = sum[i].coefficient = 0;
    add_to(sum, terms_of(e), scale);
  }
}

IndexForm finish(Terms terms, const LoopDepths& depths) {
  IndexForm form;
  join_divisions(terms);
  for (IndexTerm& t : terms) {
    if (t.coefficient == 0) continue;
    if (t.factors.empty()) {
      form.constant += t.coefficient;
      continue;
    }
    for (const Expr& factor : t.factors)
      visit(factor, [&](const Expr& e) {
        const auto* variable = as<expr::Var>(e);
        if (!variable) return;
        auto depth = depths.find(variable->name);
        if (depth != depths.end()) t.depth = std::max(t.depth, depth->second);
      });
    auto place = std::upper_bound(form.terms.begin(), form.terms.end(), t.depth,
                                  [](int depth, const IndexTerm& o) { return depth < o.depth; });
    form.terms.insert(place, std::move(t));
  }
  return form;
}
}  // namespace

IndexForm index_form(const Expr& e, const LoopDepths& depths) {
  return finish(terms_of(e), depths);
}

IndexForm offset_form(const Buffer& buffer, const std::vector<Expr>& indices,
                      const LoopDepths& depths) {
  Terms sum, stride = {{{}, 1, 0}};
  for (size_t d = indices.size(); d-- > 0;) {
    add_to(sum, product(terms_of(indices[d]), stride), 1);
    stride = product(stride, terms_of(buffer.shape[d]));
  }
  return finish(std::move(sum), depths);
}
}  // namespace tw::codegen
