// Vector loops as floatN: each value is one for all lanes, a vector, or put together of its lanes
// where there is no such operation.
#include <algorithm>
#include <utility>

#include "backends/opencl/emitter.h"

namespace tw::opencl {
namespace {

bool real(DType t) { return t == DType::f32 || t == DType::f64; }

}  // namespace

// Elements between neighbouring lanes; nullopt: not the same everywhere.
std::optional<int64_t> Emitter::lane_stride(BufferId id, const std::vector<Expr>& indices,
                                            const std::string& var) const {
  int64_t stride = 0;
  for (const IndexTerm& term : offset_form(kernel_.buffer(id), indices, depths_).terms) {
    if (term.factors.size() == 1 && term.factors[0]->kind == ExprKind::var &&
        term.factors[0]->name == var) {
      stride += term.coefficient;
      continue;
    }
    for (const Expr& factor : term.factors)
      if (uses_var(factor, var)) return std::nullopt;
  }
  return stride;
}

// Statements whose lanes are one vector: float elements side by side, under conditions that all
// lanes share.
bool Emitter::has_lanes(const Stmt& s, const std::string& var) {
  const auto differs = [&](const Expr& e) { return e.defined() && uses_var(e, var); };
  switch (s->kind) {
    case StmtKind::sequence:
      return std::ranges::all_of(s->body, [&](const Stmt& child) { return has_lanes(child, var); });
    case StmtKind::if_then: return !differs(s->condition) && has_lanes(s->body[0], var);
    case StmtKind::block: return has_lanes(s->body[0], var);
    case StmtKind::store:
      return real(kernel_.buffer(s->buffer).dtype) &&
             lane_stride(s->buffer, s->indices, var) == 1 && !differs(s->where);
    case StmtKind::prefetch: return true;
    case StmtKind::loop:
    case StmtKind::roles:
    case StmtKind::signal:
    case StmtKind::wait:
    case StmtKind::barrier: return false;
  }
  TW_UNREACHABLE("bad statement kind");
}

bool Emitter::emit_vector(const Stmt& loop) {
  const int64_t lanes = as_const(loop->extent).value_or(0);
  const bool width = lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
  if (!width || !lane_.empty() || !has_lanes(loop->body[0], loop->var)) return false;
  lane_ = loop->var;
  lane_count_ = static_cast<int>(lanes);
  emit_stmt(loop->body[0]);
  lane_.clear();
  return true;
}

Text Emitter::splat(const Text& t, DType type) const {
  if (t.lanes) return t;
  return {"(" + value_type(type) + std::to_string(lane_count_) + ")(" + t.text + ")", false,
          lane_count_, t.depth + 1};
}

Text Emitter::each_lane(const Expr& e) {
  std::string all;
  for (int i = 0; i < lane_count_; ++i) {
    kept_.push_back(substitute(e, lane_, Expr(i)));
    const Expr lane = kept_.back();
    all += (i ? ", " : "") + value(lane).text;
  }
  return {"(" + value_type(e.type()) + std::to_string(lane_count_) + ")(" + all + ")", false,
          lane_count_, 1};
}

Text Emitter::lanes_of(const Expr& e) {
  if (!uses_var(e, lane_)) return value(e);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto known = scope->known.find(e.get()); known != scope->known.end())
      return known->second;
  Text t = lanes_node(e);
  const auto uses = counts_.find(e.get());
  const bool shared = uses != counts_.end() && uses->second > 1;
  if (inline_ || !t.lanes || (!shared && t.depth <= 24)) return t;
  t = {named(value_type(e.type()) + std::to_string(lane_count_), t), false, lane_count_};
  if (uses != counts_.end()) scopes_.back().known[e.get()] = t;
  return t;
}

Text Emitter::lanes_node(const Expr& e) {
  if (e->kind == ExprKind::load && is_float(e.type())) {
    const std::optional<int64_t> stride = lane_stride(e->buffer, e->args, lane_);
    if (!stride || *stride > 1 || *stride < 0 || e.type() == DType::bf16) return each_lane(e);
    std::vector<Expr> first;
    for (const Expr& index : e->args) first.push_back(substitute(index, lane_, Expr(0)));
    const Text at = offset(e->buffer, first);
    if (*stride == 0) return read(e->buffer, at);
    if (e.type() == DType::f16)
      return {"vload_half" + std::to_string(lane_count_) + "(0, " + half_pointer(e->buffer) +
                  " + (" + at.text + "))",
              false, lane_count_, 1};
    return element(e->buffer, at);
  }
  if (e->kind == ExprKind::unary && is_float(e.type())) return lanes_unary(e);
  if (e->kind == ExprKind::binary && real(e.type()) && real(e->args[0].type()))
    return lanes_binary(e);
  if (e->kind == ExprKind::select && is_float(e.type()) && !uses_var(e->args[0], lane_)) {
    const Text condition = value(e->args[0]);
    const bool before = std::exchange(inline_, true);
    const Text a = splat(lanes_of(e->args[1]), e.type()), b = splat(lanes_of(e->args[2]), e.type());
    inline_ = before;
    return {"(" + condition.text + " ? " + a.text + " : " + b.text + ")", false, lane_count_,
            std::max(a.depth, b.depth) + 1};
  }
  const bool same = e->kind == ExprKind::cast && e.type() == DType::f32 &&
                    value_type(e->args[0].type()) == "float";
  return same ? lanes_of(e->args[0]) : each_lane(e);
}

Text Emitter::lanes_unary(const Expr& e) {
  static constexpr UnaryOp kElementwise[] = {
      UnaryOp::exp,  UnaryOp::exp2, UnaryOp::expm1, UnaryOp::log,  UnaryOp::log1p, UnaryOp::sqrt,
      UnaryOp::tanh, UnaryOp::erf,  UnaryOp::sin,   UnaryOp::cos,  UnaryOp::tan,   UnaryOp::asin,
      UnaryOp::acos, UnaryOp::atan, UnaryOp::floor, UnaryOp::ceil, UnaryOp::trunc};
  const auto call = [&](const std::string& f) {
    const Text a = splat(lanes_of(e->args[0]), e.type());
    return Text{f + "(" + a.text + ")", false, lane_count_, a.depth + 1};
  };
  const std::string one = literal(1.0, e.type());
  if (e->unary == UnaryOp::neg) {
    const Text a = splat(lanes_of(e->args[0]), e.type());
    return {"(-" + a.text + ")", false, lane_count_, a.depth + 1};
  }
  if (e->unary == UnaryOp::abs) return call("fabs");
  if (e->unary == UnaryOp::round) return call("rint");
  if (e->unary == UnaryOp::rsqrt) {
    const Text root = call("sqrt");
    return {"(" + one + " / " + root.text + ")", false, lane_count_, root.depth + 1};
  }
  if (e->unary == UnaryOp::sigmoid) {
    const Text power = call("exp(-");
    return {"(" + one + " / (" + one + " + " + power.text + ")))", false, lane_count_,
            power.depth + 1};
  }
  if (e->unary == UnaryOp::normal_cdf) {
    const Text tail = call("erfc(" + literal(-0.70710678118654752, e.type()) + " * ");
    return {"(" + literal(0.5, e.type()) + " * " + tail.text + "))", false, lane_count_,
            tail.depth + 1};
  }
  return std::ranges::find(kElementwise, e->unary) != std::end(kElementwise)
             ? call(op_name(e->unary))
             : each_lane(e);
}

Text Emitter::lanes_binary(const Expr& e) {
  const Expr &x = e->args[0], &y = e->args[1];
  const std::string type = value_type(e.type());
  const auto operand = [&](const Expr& o) { return splat(lanes_of(o), o.type()); };
  const bool sum = e->binary == BinaryOp::add || e->binary == BinaryOp::sub;
  const auto is_product = [](const Expr& p) {
    return p->kind == ExprKind::binary && p->binary == BinaryOp::mul;
  };
  if (sum && (is_product(x) || is_product(y))) {
    const Expr &product = is_product(y) ? y : x, &other = is_product(y) ? x : y;
    const bool minus = e->binary == BinaryOp::sub;
    const Text p = operand(product->args[0]), q = operand(product->args[1]), r = operand(other);
    return {"tw_fma_" + type + "(" + (minus && is_product(y) ? "-" : "") + p.text + ", " + q.text +
                ", " + (minus && !is_product(y) ? "-" : "") + r.text + ")",
            false, lane_count_, std::max({p.depth, q.depth, r.depth}) + 1};
  }
  const bool limits = e->binary == BinaryOp::min || e->binary == BinaryOp::max;
  const char* op = e->binary == BinaryOp::add   ? " + "
                   : e->binary == BinaryOp::sub ? " - "
                   : e->binary == BinaryOp::mul ? " * "
                   : e->binary == BinaryOp::div ? " / "
                                                : "";
  if (!limits && !*op) return each_lane(e);
  if (limits) {
    const Text a = operand(x), b = operand(y);
    return {std::string("tw_") + op_name(e->binary) + "_" + type + std::to_string(lane_count_) +
                "(" + a.text + ", " + b.text + ")",
            false, lane_count_, std::max(a.depth, b.depth) + 1};
  }
  // One of them at least is a vector, the other is widened
  const Text a = lanes_of(x), b = lanes_of(y);
  return {"(" + a.text + op + b.text + ")", false, std::max(a.lanes, b.lanes),
          std::max(a.depth, b.depth) + 1};
}

}  // namespace tw::opencl
