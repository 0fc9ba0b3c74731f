#include "autotune/features/statements.h"

#include <algorithm>
#include <cmath>

namespace tw::features {
namespace {

struct Span {
  double lo = 0, hi = 0;
};

// The ranges of variables for bounds of an expression: loops from `level` inwards run, outer loops
// stand still, and symbols have a fixed value.
class Environment {
 public:
  Environment(const std::vector<LoopAround>& loops, size_t level) : loops_(loops), level_(level) {}
  Span of(std::string_view var) const {
    for (size_t i = loops_.size(); i-- > 0;)
      if (loops_[i].node->var == var)
        return i >= level_ ? Span{0, std::max(0.0, loops_[i].extent - 1)} : Span{};
    return {kSymbolValue, kSymbolValue};
  }

 private:
  const std::vector<LoopAround>& loops_;
  size_t level_;
};

Span joined(Span a, Span b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

template <class Op>
Span corners(Span a, Span b, Op op) {
  const double v[] = {op(a.lo, b.lo), op(a.lo, b.hi), op(a.hi, b.lo), op(a.hi, b.hi)};
  return {*std::min_element(std::begin(v), std::end(v)),
          *std::max_element(std::begin(v), std::end(v))};
}

template <class Env>
Span bound(const Expr& e, const Env& env);

template <class Env>
Span bound_binary(const expr::Binary& binary, const Env& env) {
  const Span a = bound(binary.a, env), b = bound(binary.b, env);
  switch (binary.op) {
    case BinaryOp::add: return {a.lo + b.lo, a.hi + b.hi};
    case BinaryOp::sub: return {a.lo - b.hi, a.hi - b.lo};
    case BinaryOp::mul: return corners(a, b, [](double x, double y) { return x * y; });
    case BinaryOp::div:
    case BinaryOp::floor_div:
      return corners(a, b, [](double x, double y) { return y == 0 ? 0 : std::floor(x / y); });
    case BinaryOp::mod:
    case BinaryOp::floor_mod: {
      const double m = std::max(1.0, std::abs(b.hi));
      if (std::floor(a.lo / m) == std::floor(a.hi / m))
        return {a.lo - m * std::floor(a.lo / m), a.hi - m * std::floor(a.hi / m)};
      return {0, m - 1};
    }
    case BinaryOp::min: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case BinaryOp::max: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor: return {0, 1};
    case BinaryOp::pow:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return joined(a, b);
  }
  TW_UNREACHABLE("a binary operator");
}

template <class Env>
Span bound(const Expr& e, const Env& env) {
  return match(
      e,
      [](const expr::Int& number) {
        const auto value = static_cast<double>(number.value);
        return Span{value, value};
      },
      [](const expr::Float& number) { return Span{number.value, number.value}; },
      [&](const expr::Var& variable) { return env.of(variable.name); },
      [](const expr::Load&) { return Span{}; },  // nothing is known of a gathered index
      [&](const expr::Unary& unary) {
        const Span a = bound(unary.a, env);
        return unary.op == UnaryOp::neg ? Span{-a.hi, -a.lo} : a;
      },
      [&](const expr::Binary& binary) { return bound_binary(binary, env); },
      [&](const expr::Select& select) {
        return joined(bound(select.then, env), bound(select.otherwise, env));
      },
      [&](const expr::Cast& cast) { return bound(cast.a, env); });
}

struct Middle {  // every loop stands at its middle
  const std::vector<LoopAround>& loops;
  Span of(std::string_view var) const {
    for (const LoopAround& l : loops)
      if (l.node->var == var) return {std::floor(l.extent / 2), std::floor(l.extent / 2)};
    return {kSymbolValue, kSymbolValue};
  }
};

struct One {  // one variable is 1, all other loops are 0
  const std::vector<LoopAround>& loops;
  std::string_view one;
  Span of(std::string_view var) const {
    if (var == one) return {1, 1};
    for (const LoopAround& l : loops)
      if (l.node->var == var) return {};
    return {kSymbolValue, kSymbolValue};
  }
};

double extent_of_dim(const Buffer& buffer, size_t dim) {
  const std::optional<int64_t> extent = as_const(buffer.shape[dim]);
  if (extent) return static_cast<double>(*extent);
  const std::vector<LoopAround> none;
  return std::max(1.0, bound(buffer.shape[dim], Middle{none}).hi);
}

void add_use(Statement& s, BufferId buffer, const std::vector<Expr>& indices, bool written) {
  auto touch = std::find_if(s.touches.begin(), s.touches.end(),
                            [&](const Touch& t) { return t.buffer == buffer; });
  if (touch == s.touches.end())
    touch = s.touches.insert(s.touches.end(), Touch{buffer, false, false, {}});
  (written ? touch->written : touch->read) = true;
  const auto same_index = [](const Expr& a, const Expr& b) { return equal(a, b); };
  const auto same = [&](const Use& use) {
    return std::equal(use.indices.begin(), use.indices.end(), indices.begin(), indices.end(),
                      same_index);
  };
  if (std::any_of(touch->uses.begin(), touch->uses.end(), same)) return;
  Use use{indices, {}};
  for (const LoopAround& l : s.loops)
    use.moved.push_back(std::any_of(indices.begin(), indices.end(),
                                    [&](const Expr& i) { return uses_var(i, l.node->var); }));
  touch->uses.push_back(std::move(use));
}

void count_op(Statement& s, const expr::Unary& unary) {
  OpCounts& ops = is_float(unary.a.type()) ? s.floats : s.ints;
  ++(unary.op == UnaryOp::logical_not                       ? s.bools
     : unary.op == UnaryOp::neg || unary.op == UnaryOp::abs ? ops.other
                                                            : ops.math);
}

void count_op(Statement& s, const expr::Binary& binary) {
  OpCounts& ops = is_float(binary.a.type()) ? s.floats : s.ints;
  switch (binary.op) {
    case BinaryOp::add:
    case BinaryOp::sub:
      // The product itself is counted later.
      if (as_binary(binary.a, BinaryOp::mul) || as_binary(binary.b, BinaryOp::mul))
        ++ops.mad, --ops.mul;
      else ++ops.add;
      return;
    case BinaryOp::mul: ++ops.mul; return;
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod: ++ops.div; return;
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::min:
    case BinaryOp::max: ++ops.compare; return;
    case BinaryOp::pow: ++ops.math; return;
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor: ++s.bools; return;
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: ++ops.other; return;
  }
}

void count_ops(Statement& s, const Expr& e) {
  visit(e, [&](const Expr& n) {
    if (is<expr::Select>(n)) ++s.selects;
    if (const auto* unary = as<expr::Unary>(n)) count_op(s, *unary);
    if (const auto* binary = as<expr::Binary>(n)) count_op(s, *binary);
  });
}

void read_store(Statement& s) {
  const stmt::Store& store = *s.store;
  add_use(s, store.buffer, store.indices, true);
  std::vector<Expr> expressions = store.indices;
  for (const Expr& e : {store.value, store.where})
    if (e.defined()) expressions.push_back(e);
  for (const Expr& e : expressions) {
    count_ops(s, e);
    visit(e, [&](const Expr& n) {
      if (const auto* load = as<expr::Load>(n)) add_use(s, load->buffer, load->indices, false);
    });
  }
  if (store.combiner == Combiner::none) return;
  s.touches.front().read = true;
  OpCounts& ops = is_float(store.value.type()) ? s.floats : s.ints;
  const bool product = as_binary(store.value, BinaryOp::mul) != nullptr;
  switch (store.combiner) {
    case Combiner::none: return;
    case Combiner::add:
      if (product) ++ops.mad, --ops.mul;
      else ++ops.add;
      return;
    case Combiner::mul: ++ops.mul; return;
    case Combiner::min:
    case Combiner::max: ++ops.compare; return;
  }
}

void collect(const Stmt& s, Statement& around, std::vector<Statement>& out) {
  if (const auto* store = as<stmt::Store>(s)) {
    out.push_back(around);
    out.back().store = store;
    out.back().guards += store->where.defined();
    read_store(out.back());
    return;
  }
  const auto* loop = as<stmt::Loop>(s);
  const bool guard = is<stmt::If>(s);
  if (loop)
    around.loops.push_back({loop, std::max(1.0, bound(loop->extent, Middle{around.loops}).hi)});
  around.guards += guard;
  for (const Stmt& child : children(s)) collect(child, around, out);
  around.guards -= guard;
  if (loop) around.loops.pop_back();
}

// For each dimension, the number of elements from the first to the last touched one
std::vector<double> box(const Kernel& kernel, const Statement& s, const Touch& touch,
                        size_t level) {
  const Buffer& buffer = kernel.buffer(touch.buffer);
  const Environment env(s.loops, level);
  std::vector<double> out;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    Span all = bound(touch.uses.front().indices[d], env);
    for (const Use& use : touch.uses) all = joined(all, bound(use.indices[d], env));
    out.push_back(std::clamp(all.hi - all.lo + 1, 1.0, extent_of_dim(buffer, d)));
  }
  return out;
}

}  // namespace

double Statement::iterations(size_t from) const {
  double product = 1;
  for (size_t i = from; i < loops.size(); ++i) product *= loops[i].extent;
  return product;
}

std::vector<Statement> statements_of(const Kernel& kernel) {
  std::vector<Statement> out;
  Statement around;
  collect(kernel.body, around, out);
  return out;
}

const Statement* main_statement(const std::vector<Statement>& statements) {
  const auto work = [](const Statement& s) { return s.iterations() * (1 + s.floats.total()); };
  const auto main = std::ranges::max_element(statements, {}, work);
  return main == statements.end() ? nullptr : &*main;
}

double elements(const Kernel& kernel, const Statement& s, const Touch& touch, size_t level) {
  double product = 1, most = 0;
  for (const double extent : box(kernel, s, touch, level)) product *= extent;
  for (const Use& use : touch.uses) most += count(s, use, level);
  return std::min(product, most);  // strided accesses skip elements of the box
}

double lines(const Kernel& kernel, const Statement& s, const Touch& touch, size_t level,
             double line_bytes) {
  const std::vector<double> extents = box(kernel, s, touch, level);
  const Buffer& buffer = kernel.buffer(touch.buffer);
  double run = dtype_bytes(buffer.dtype), runs = 1;  // contiguous bytes, and number of such runs
  bool together = true;
  for (size_t d = extents.size(); d-- > 0;) {
    (together ? run : runs) *= extents[d];
    together = together && extents[d] >= extent_of_dim(buffer, d);
  }
  return std::min(runs * std::ceil(run / line_bytes), elements(kernel, s, touch, level));
}

double count(const Statement& s, const Use& use, size_t level) {
  double product = 1;
  for (size_t i = level; i < s.loops.size(); ++i)
    if (use.moved[i]) product *= s.loops[i].extent;
  return product;
}

double reuse(const Statement& s, const Use& use, size_t level) {
  double product = 1;
  for (size_t i = level; i < s.loops.size(); ++i)
    if (!use.moved[i]) product *= s.loops[i].extent;
  return product;
}

bool moves(const Touch& touch, size_t loop) {
  return std::any_of(touch.uses.begin(), touch.uses.end(),
                     [&](const Use& use) { return use.moved[loop]; });
}

double stride(const Kernel& kernel, const Statement& s, const Use& use, size_t loop) {
  if (!use.moved[loop]) return 0;
  const Touch* owner = nullptr;
  for (const Touch& t : s.touches)
    for (const Use& u : t.uses)
      if (&u == &use) owner = &t;
  TW_CHECK(owner, "a use of another statement");
  const Buffer& buffer = kernel.buffer(owner->buffer);
  const One at{s.loops, s.loops[loop].node->var}, zero{s.loops, {}};
  double flat = 0, step = 1;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    flat += step * (bound(use.indices[d], at).lo - bound(use.indices[d], zero).lo);
    step *= extent_of_dim(buffer, d);
  }
  return std::abs(flat);
}

double modulus(const Use& use, std::string_view var) {
  double out = 0;
  for (const Expr& index : use.indices)
    visit(index, [&](const Expr& n) {
      const auto* mod = as_binary(n, BinaryOp::floor_mod);
      if (mod && uses_var(mod->a, var))
        out = static_cast<double>(as_const(mod->b).value_or(static_cast<int64_t>(kSymbolValue)));
    });
  return out;
}

double bytes_of(const Kernel& kernel, BufferId id) {
  const Buffer& buffer = kernel.buffer(id);
  double bytes = dtype_bytes(buffer.dtype);
  for (size_t d = 0; d < buffer.shape.size(); ++d) bytes *= extent_of_dim(buffer, d);
  return bytes;
}

}  // namespace tw::features
