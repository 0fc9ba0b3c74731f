// Vector loops as floatN. Each value is one scalar for all lanes, or a vector. Operations without a
// vector form are computed lane by lane.
#include <algorithm>
#include <utility>

#include "backends/opencl/emitter.h"

namespace tw::opencl {
namespace {

bool real(DType t) { return t == DType::f32 || t == DType::f64; }

}  // namespace

// The distance in elements between neighbouring lanes; nullopt where it varies
std::optional<int64_t> Emitter::lane_stride(BufferId id, const std::vector<Expr>& indices,
                                            const std::string& var) const {
  int64_t stride = 0;
  for (const IndexTerm& term : offset_form(kernel_.buffer(id), indices, depths_).terms) {
    if (term.factors.size() == 1 && is_var(term.factors[0], var)) {
      stride += term.coefficient;
      continue;
    }
    for (const Expr& factor : term.factors)
      if (uses_var(factor, var)) return std::nullopt;
  }
  return stride;
}

// True for statements whose lanes form one vector: contiguous float elements, under conditions that
// all lanes share.
bool Emitter::has_lanes(const Stmt& s, const std::string& var) {
  const auto differs = [&](const Expr& e) { return e.defined() && uses_var(e, var); };
  return match(
      s,
      [&](const stmt::Sequence& sequence) {
        return std::ranges::all_of(sequence.body,
                                   [&](const Stmt& child) { return has_lanes(child, var); });
      },
      [&](const stmt::If& guard) {
        return !differs(guard.condition) && has_lanes(guard.body, var);
      },
      [&](const stmt::Block& block) { return has_lanes(block.body, var); },
      [&](const stmt::Store& store) {
        return real(kernel_.buffer(store.buffer).dtype) &&
               lane_stride(store.buffer, store.indices, var) == 1 && !differs(store.where);
      },
      [](const stmt::Prefetch&) { return true; }, [](const stmt::Loop&) { return false; },
      [](const stmt::Roles&) { return false; }, [](const stmt::Signal&) { return false; },
      [](const stmt::Wait&) { return false; }, [](const stmt::Barrier&) { return false; });
}

bool Emitter::emit_vector(const stmt::Loop& loop) {
  const int64_t lanes = as_const(loop.extent).value_or(0);
  const bool width = lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
  if (!width || !lane_.empty() || !has_lanes(loop.body, loop.var)) return false;
  lane_ = loop.var;
  lane_count_ = static_cast<int>(lanes);
  emit_stmt(loop.body);
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
  const DType t = e.type();
  if (const auto* load = as<expr::Load>(e); load && is_float(t)) return lanes_load(e, *load);
  if (const auto* unary = as<expr::Unary>(e); unary && is_float(t)) return lanes_unary(e, *unary);
  if (const auto* binary = as<expr::Binary>(e); binary && real(t) && real(binary->a.type()))
    return lanes_binary(e, *binary);
  const auto* select = as<expr::Select>(e);
  if (select && is_float(t) && !uses_var(select->condition, lane_)) {
    const Text condition = value(select->condition);
    const bool before = std::exchange(inline_, true);
    const Text a = splat(lanes_of(select->then), t), b = splat(lanes_of(select->otherwise), t);
    inline_ = before;
    return {"(" + condition.text + " ? " + a.text + " : " + b.text + ")", false, lane_count_,
            std::max(a.depth, b.depth) + 1};
  }
  const auto* cast = as<expr::Cast>(e);
  const bool same = cast && t == DType::f32 && value_type(cast->a.type()) == "float";
  return same ? lanes_of(cast->a) : each_lane(e);
}

Text Emitter::lanes_load(const Expr& e, const expr::Load& load) {
  const std::optional<int64_t> stride = lane_stride(load.buffer, load.indices, lane_);
  if (!stride || *stride > 1 || *stride < 0 || e.type() == DType::bf16) return each_lane(e);
  std::vector<Expr> first;
  for (const Expr& index : load.indices) first.push_back(substitute(index, lane_, Expr(0)));
  const Text at = offset(load.buffer, first);
  if (*stride == 0) return read(load.buffer, at);
  if (e.type() == DType::f16)
    return {"vload_half" + std::to_string(lane_count_) + "(0, " + half_pointer(load.buffer) +
                " + (" + at.text + "))",
            false, lane_count_, 1};
  return element(load.buffer, at);
}

Text Emitter::lanes_unary(const Expr& e, const expr::Unary& unary) {
  static constexpr UnaryOp kElementwise[] = {
      UnaryOp::exp,  UnaryOp::exp2, UnaryOp::expm1, UnaryOp::log,  UnaryOp::log1p, UnaryOp::sqrt,
      UnaryOp::tanh, UnaryOp::erf,  UnaryOp::sin,   UnaryOp::cos,  UnaryOp::tan,   UnaryOp::asin,
      UnaryOp::acos, UnaryOp::atan, UnaryOp::floor, UnaryOp::ceil, UnaryOp::trunc};
  const auto call = [&](const std::string& f) {
    const Text a = splat(lanes_of(unary.a), e.type());
    return Text{f + "(" + a.text + ")", false, lane_count_, a.depth + 1};
  };
  const std::string one = literal(1.0, e.type());
  if (unary.op == UnaryOp::neg) {
    const Text a = splat(lanes_of(unary.a), e.type());
    return {"(-" + a.text + ")", false, lane_count_, a.depth + 1};
  }
  if (unary.op == UnaryOp::abs) return call("fabs");
  if (unary.op == UnaryOp::round) return call("rint");
  if (unary.op == UnaryOp::rsqrt) {
    const Text root = call("sqrt");
    return {"(" + one + " / " + root.text + ")", false, lane_count_, root.depth + 1};
  }
  if (unary.op == UnaryOp::sigmoid) {
    const Text power = call("exp(-");
    return {"(" + one + " / (" + one + " + " + power.text + ")))", false, lane_count_,
            power.depth + 1};
  }
  if (unary.op == UnaryOp::normal_cdf) {
    const Text tail = call("erfc(" + literal(-0.70710678118654752, e.type()) + " * ");
    return {"(" + literal(0.5, e.type()) + " * " + tail.text + "))", false, lane_count_,
            tail.depth + 1};
  }
  return std::ranges::find(kElementwise, unary.op) != std::end(kElementwise)
             ? call(op_name(unary.op))
             : each_lane(e);
}

Text Emitter::lanes_binary(const Expr& e, const expr::Binary& binary) {
  const Expr &x = binary.a, &y = binary.b;
  const std::string type = value_type(e.type());
  const auto operand = [&](const Expr& o) { return splat(lanes_of(o), o.type()); };
  const bool sum = binary.op == BinaryOp::add || binary.op == BinaryOp::sub;
  const auto *left = as_binary(x, BinaryOp::mul), *right = as_binary(y, BinaryOp::mul);
  if (sum && (left || right)) {
    const expr::Binary& product = right ? *right : *left;
    const bool minus = binary.op == BinaryOp::sub;
    const Text p = operand(product.a), q = operand(product.b), r = operand(right ? x : y);
    return {"tw_fma_" + type + "(" + (minus && right ? "-" : "") + p.text + ", " + q.text + ", " +
                (minus && !right ? "-" : "") + r.text + ")",
            false, lane_count_, std::max({p.depth, q.depth, r.depth}) + 1};
  }
  const bool limits = binary.op == BinaryOp::min || binary.op == BinaryOp::max;
  const char* op = binary.op == BinaryOp::add   ? " + "
                   : binary.op == BinaryOp::sub ? " - "
                   : binary.op == BinaryOp::mul ? " * "
                   : binary.op == BinaryOp::div ? " / "
                                                : "";
  if (!limits && !*op) return each_lane(e);
  if (limits) {
    const Text a = operand(x), b = operand(y);
    return {std::string("tw_") + op_name(binary.op) + "_" + type + std::to_string(lane_count_) +
                "(" + a.text + ", " + b.text + ")",
            false, lane_count_, std::max(a.depth, b.depth) + 1};
  }
  // At least one of them is a vector; the other is widened.
  const Text a = lanes_of(x), b = lanes_of(y);
  return {"(" + a.text + op + b.text + ")", false, std::max(a.lanes, b.lanes),
          std::max(a.depth, b.depth) + 1};
}

}  // namespace tw::opencl
