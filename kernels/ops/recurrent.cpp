// Recurrent networks as they are defined. A matrix product in front computes the input half of all
// steps, and here the steps run in a scan:
//
//   for t in steps scan {
//     for ab in batch { for aj in cells { for ag in gates { for ak in cells reduce {
//       acc: acc[ab, aj, ag] += h[t, ab, ak] * weights[row, ag * cells + aj, ak] init 0
//     } } } }
//     for b in batch { for j in cells {
//       c: c[t + 1, b, j] = ..
//       h: h[t + 1, b, j] = ..
//       y: y[t, b, j] = h[t + 1, b, j]
//     } }
//   }
//
// The states are rows of h and c, one for each step; h.first and c.first store the first ones. GRUs
// that reset before the product first compute gates z and q = reset * h, then the sums accn over q.
// After the scan come the last states.
//
// Integer weights are multiplied by rounded states. A step first finds the range of h (low, high)
// and the scale of the rounding (unit, zero). It then rounds h to bytes, which count from zero.
#include "kernels/recurrent/recurrent.h"
#include "kernels/common/group_builder.h"

namespace tw {
namespace {

enum Input { kX, kR, kBias, kLengths, kH0, kC0, kPeepholes, kScales };

constexpr int64_t kMostByte = 255;

class RecurrentDefinition {
 public:
  RecurrentDefinition(GroupBuilder& b, const Node& node)
      : b_(b),
        node_(node),
        a_(std::get<op::Recurrent>(node.attrs)),
        type_(b.type(node.output).dtype),
        t_(accumulator_type(type_)),
        steps_(b.type(node.inputs[kX]).shape[0]),
        batch_(b.type(node.inputs[kX]).shape[1]),
        hidden_(b.type(node.inputs[kR]).shape[2]) {}

  Lowered<RecurrentStages> run() {
    const bool two_products = a_.kind == RecurrentKind::gru && !a_.linear_before_reset;
    h_ = state("h", kH0);
    if (a_.kind == RecurrentKind::lstm) c_ = state("c", kC0);
    y_ = b_.output(node_.output);
    b_.scan({"t", steps_, AxisRole::scan}, [&] {
      if (given(kScales)) round_states();
      sums("acc", h_, 0, two_products ? 2 : a_.gates());
      if (two_products) reset_gates();
      else cells();
    });
    if (a_.states) last_states();
    return b_.finish(std::move(m_));
  }

 private:
  using Store = GroupBuilder::Store;

  bool given(Input i) const {
    return static_cast<size_t>(i) < node_.inputs.size() && node_.inputs[i].valid();
  }
  Expr read(Input i, const Index& at) { return widen(b_.parameter_element(node_.inputs[i], at)); }
  Expr widen(const Expr& e) const { return e.type() == t_ ? e : cast(t_, e); }
  Expr narrow(const Expr& e) const { return e.type() == type_ ? e : cast(type_, e); }
  Expr number(double v) const { return imm(v, t_); }

  // The least or greatest state of a step, and of 0, over the sequences that take the step or have
  // just ended
  Expr end_of(const std::string& name, Combiner combiner) {
    const std::string p = name.substr(0, 1);
    const std::vector<Axis> axes = {{p + "b", batch_, AxisRole::reduce},
                                    {p + "k", hidden_, AxisRole::reduce}};
    b_.declare(axes);
    const Expr there = takes_step(axis(axes, 0), a_.reverse ? 0 : 1),
               state = load(h_, t_, {var("t"), axis(axes, 0), axis(axes, 1)});
    const BufferId end = b_.temp(name, t_, {});
    const Stage stage = b_.stage(name, axes, end, {},
                                 there.defined() ? select(there, state, number(0)) : state,
                                 combiner, number(0));
    m_.ends.push_back({stage, {}, loops(axes)});
    return load(end, t_, {});
  }

  // A stage that computes one number of the step
  BufferId once(const std::string& name, DType type, const Expr& value) {
    const BufferId made = b_.temp(name, type, {});
    b_.stage(name, {}, made, {}, value);
    return made;
  }

  // hq[b, k]: the states as bytes
  void round_states() {
    const Expr low = end_of("low", Combiner::min), high = end_of("high", Combiner::max);
    const Expr most = number(kMostByte);
    const Expr span = binary(BinaryOp::div, high - low, most);
    unit_ = once("unit", t_, select(eq(span, number(0)), number(1), span));
    const Expr unit = load(unit_, t_, {});
    zero_ = once(
        "zero", t_,
        min(max(unary(UnaryOp::round, binary(BinaryOp::div, number(0) - low, unit)), number(0)),
            most));
    const std::vector<Axis> axes = {{"qb", batch_}, {"qk", hidden_}};
    b_.declare(axes);
    const Expr steps = unary(
        UnaryOp::round,
        binary(BinaryOp::div, load(h_, t_, {var("t"), axis(axes, 0), axis(axes, 1)}), unit));
    const Expr byte = min(max(steps + load(zero_, t_, {}), number(0)), most);
    rounded_ = b_.temp("hq", DType::u8, extents(axes));
    m_.rounded = b_.stage("hq", axes, rounded_, variables(axes), cast(DType::u8, byte));
    m_.rounded_cell = axes[1].loop();
  }
  static Expr axis(const std::vector<Axis>& axes, size_t i) { return var(axes[i].name); }

  // Rows of a state. Stores the first row.
  BufferId state(const std::string& name, Input first) {
    const BufferId rows = b_.temp(name, t_, {simplify(steps_ + Expr(1)), batch_, hidden_});
    const std::vector<Axis> axes = {{name + "0_b", batch_}, {name + "0_j", hidden_}};
    b_.declare(axes);
    const Expr sequence = axis(axes, 0), cell = axis(axes, 1);
    m_.copies.push_back(
        b_.stage(name + ".first", axes, rows, {Expr(0), sequence, cell},
                 given(first) ? read(first, {Expr(a_.row), sequence, cell}) : number(0)));
    m_.first_cells.push_back(axes[1].loop());
    return rows;
  }

  // NAME[b, j, gate]: products of a state's row with the weights of some gates
  void sums(const std::string& name, BufferId state, int64_t first_gate, int64_t gates) {
    const std::string p = name == "acc" ? "a" : "n";
    std::vector<Axis> axes = {{p + "b", batch_}, {p + "j", hidden_}, {p + "g", Expr(gates)}};
    const ValueId r = node_.inputs[kR];
    const DType type = given(kScales) ? DType::i32 : t_, w = b_.type(r).dtype;
    const BufferId acc = b_.temp(name, type, extents(axes));
    const Index at = variables(axes);
    axes.push_back({p + "k", hidden_, AxisRole::reduce});
    b_.declare(axes);
    const Expr k = var(p + "k"), row = (at[2] + Expr(first_gate)) * hidden_ + at[1];
    const BufferId weights = b_.input(r, {}, "weights");
    const Expr left = given(kScales) ? cast(type, load(rounded_, DType::u8, {at[0], k})) -
                                           cast(type, load(zero_, t_, {}))
                      : state == h_  ? load(h_, t_, {var("t"), at[0], k})
                                     : load(state, t_, {at[0], k});
    const Expr weight = load(weights, w, {Expr(a_.row), row, k}),
               right = w == type ? weight : cast(type, weight);
    const Stage stage = b_.stage(name, axes, acc, at, left * right, Combiner::add, imm(0, type));
    const Loops l = loops(axes);
    const BufferName constant = b_.graph.is_constant(r) ? b_.name_of(weights) : BufferName();
    m_.phases.push_back({stage, constant, l[0], l[1], l[2], l[3], {}, {}, w});
    (name == "acc" ? acc_ : accn_) = acc;
  }

  struct Point {
    std::vector<Axis> axes;
    Expr b, cell, valid;
  };
  Point point(const std::string& prefix) {
    Point p;
    p.axes = {{prefix + "b", batch_}, {prefix + "j", hidden_}};
    b_.declare(p.axes);
    m_.phases.back().cells = {p.axes[0].loop(), p.axes[1].loop(), {}};
    p.b = axis(p.axes, 0), p.cell = axis(p.axes, 1);
    p.valid = takes_step(p.b);
    return p;
  }
  // True: the sequence takes this step, or would if it were `longer` steps longer. Undefined: all
  // sequences do.
  Expr takes_step(const Expr& sequence, int64_t longer = 0) {
    if (!given(kLengths)) return {};
    const Expr length = cast(DType::i64, b_.parameter_element(node_.inputs[kLengths], {sequence}));
    return lt(step(), longer == 0 ? length : length + imm(static_cast<double>(longer), DType::i64));
  }
  Expr step() const { return a_.reverse ? steps_ - Expr(1) - var("t") : var("t"); }
  Expr old(BufferId rows, const Point& p) const { return load(rows, t_, {var("t"), p.b, p.cell}); }
  Expr made(BufferId rows, const Point& p) const {
    return load(rows, t_, {var("t") + Expr(1), p.b, p.cell});
  }
  Expr sum(BufferId acc, int64_t gate, const Point& p) {
    const Index at = {p.b, p.cell, Expr(gate)};
    if (!given(kScales)) return load(acc, t_, at);
    const Expr scale = load(unit_, t_, {}) *
                       read(kScales, {Expr(a_.row), Expr(gate) * hidden_ + p.cell});
    return cast(t_, load(acc, DType::i32, at)) * scale;
  }
  Expr input(int64_t gate, const Point& p) {
    return read(kX, {step(), p.b, Expr((a_.row * a_.gates() + gate)) * hidden_ + p.cell});
  }
  Expr bias(int64_t which, const Point& p) {
    return given(kBias) ? read(kBias, {Expr(a_.row), Expr(which) * hidden_ + p.cell}) : number(0);
  }
  // The input half of a gate, with both biases
  Expr half(int64_t gate, const Point& p) {
    Expr x = input(gate, p);
    return given(kBias) ? x + (bias(gate, p) + bias(a_.gates() + gate, p)) : x;
  }
  Expr clipped(const Expr& x) const {
    return a_.clip > 0 ? min(max(x, number(-a_.clip)), number(a_.clip)) : x;
  }
  Expr f(const Expr& x) const { return activate(a_.f, clipped(x), 0); }
  Expr g(const Expr& x) const { return activate(a_.g, clipped(x), 1); }
  Expr activate(GateFunction function, const Expr& x, size_t which) const;
  Expr masked(const Expr& value, const Expr& before, const Point& p) const {
    return p.valid.defined() ? select(p.valid, value, before) : value;
  }

  // Stores h (its row t + 1) and y, behind the stores that compute h.
  void finish(const Point& p, std::vector<Store> stores, const Expr& h) {
    stores.push_back({"h", h_, {var("t") + Expr(1), p.b, p.cell}, masked(h, old(h_, p), p), {}});
    stores.push_back(
        {"y", y_, {step(), p.b, p.cell}, narrow(masked(made(h_, p), number(0), p)), {}});
    b_.nest(p.axes, stores);
  }

  // The cell's part of a gate; undefined: there is none
  Expr peephole(int64_t which, const Expr& c, const Point& p) {
    if (!given(kPeepholes)) return {};
    return read(kPeepholes, {Expr(a_.row), Expr(which) * hidden_ + p.cell}) * c;
  }

  // The argument of a gate. With integers the order of the sums is that of onnxruntime, so that
  // rounded states agree more often.
  Expr lstm_gate(int64_t gate, const Point& p, const Expr& peep) {
    const bool biases_last = given(kScales) && given(kBias);
    Expr x = (biases_last ? input(gate, p) : half(gate, p)) + sum(acc_, gate, p);
    if (peep.defined()) x = x + peep;
    return biases_last ? x + (bias(gate, p) + bias(a_.gates() + gate, p)) : x;
  }

  void cells() {
    Point p = point("");
    if (a_.kind == RecurrentKind::rnn) return finish(p, {}, f(half(0, p) + sum(acc_, 0, p)));
    if (a_.kind == RecurrentKind::gru) {
      Expr z = f(half(0, p) + sum(acc_, 0, p)), reset = f(half(1, p) + sum(acc_, 1, p));
      Expr n = g(input(2, p) + bias(2, p) + reset * (sum(acc_, 2, p) + bias(5, p)));
      return finish(p, {}, n + z * (old(h_, p) - n));
    }
    auto gate = [&](int64_t g, int64_t which, const Expr& c) {
      return f(lstm_gate(g, p, peephole(which, c, p)));
    };
    Expr i = gate(0, 0, old(c_, p)), forget = a_.coupled ? number(1) - i : gate(2, 2, old(c_, p));
    Expr c = forget * old(c_, p) + i * g(lstm_gate(3, p, {}));
    Expr o = gate(1, 1, made(c_, p));
    finish(p, {{"c", c_, {var("t") + Expr(1), p.b, p.cell}, masked(c, old(c_, p), p), {}}},
           o * activate(a_.h, made(c_, p), 2));
  }

  // For a GRU that scales the state before the product: all resets are known before the third
  // gate's sums start.
  void reset_gates() {
    Point p = point("q_");
    BufferId z = b_.temp("z", t_, {batch_, hidden_}), q = b_.temp("q", t_, {batch_, hidden_});
    Expr update = f(half(0, p) + sum(acc_, 0, p)), reset = f(half(1, p) + sum(acc_, 1, p));
    b_.nest(p.axes,
            {{"z", z, {p.b, p.cell}, update, {}}, {"q", q, {p.b, p.cell}, reset * old(h_, p), {}}});
    sums("accn", q, 2, 1);
    p = point("");
    Expr n = g(half(2, p) + sum(accn_, 0, p)), zp = load(z, t_, {p.b, p.cell});
    finish(p, {}, n + zp * (old(h_, p) - n));
  }

  void last_states() {
    auto write = [&](const std::string& name, BufferId rows, int64_t at) {
      std::vector<Axis> axes = {{name + "_b", batch_}, {name + "_j", hidden_}};
      const Index to = {steps_ + Expr(at), axis(axes, 0), axis(axes, 1)};
      m_.copies.push_back(b_.stage("y." + name, axes, y_, to,
                                   narrow(load(rows, t_, {steps_, axis(axes, 0), axis(axes, 1)}))));
    };
    write("lasth", h_, 0);
    if (a_.kind == RecurrentKind::lstm) write("lastc", c_, 1);
  }

  GroupBuilder& b_;
  const Node& node_;
  const op::Recurrent& a_;
  DType type_, t_;
  Expr steps_, batch_, hidden_;
  RecurrentStages m_;
  BufferId h_{}, c_{}, y_{}, acc_{}, accn_{};
  BufferId unit_{}, zero_{}, rounded_{};  // for integers
};

Expr RecurrentDefinition::activate(GateFunction function, const Expr& x, size_t which) const {
  Expr alpha = number(a_.alphas[which]), beta = number(a_.betas[which]), zero = number(0);
  switch (function) {
    case GateFunction::sigmoid: return unary(UnaryOp::sigmoid, x);
    case GateFunction::tanh: return unary(UnaryOp::tanh, x);
    case GateFunction::relu: return max(zero, x);
    case GateFunction::affine: return alpha * x + beta;
    case GateFunction::leaky_relu: return select(lt(x, zero), alpha * x, x);
    case GateFunction::thresholded_relu: return select(lt(alpha, x), x, zero);
    case GateFunction::scaled_tanh: return alpha * unary(UnaryOp::tanh, beta * x);
    case GateFunction::hard_sigmoid: return min(max(zero, alpha * x + beta), number(1));
    case GateFunction::elu: return select(lt(x, zero), alpha * unary(UnaryOp::expm1, x), x);
    case GateFunction::softsign:
      return binary(BinaryOp::div, x, number(1) + unary(UnaryOp::abs, x));
    case GateFunction::softplus: {
      Expr small = unary(UnaryOp::exp, zero - unary(UnaryOp::abs, x));
      return unary(UnaryOp::log1p, small) + max(zero, x);
    }
  }
  TW_UNREACHABLE("bad gate function");
}

}  // namespace

Lowered<RecurrentStages> define_recurrent(GroupBuilder& b, const Node& node) {
  return RecurrentDefinition(b, node).run();
}

}  // namespace tw
