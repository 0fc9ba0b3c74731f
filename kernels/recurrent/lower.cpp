// Recurrent networks. The input half of all steps is a matrix product in front; here the steps run
// in a scan. The recurrent weights are packed in panels [cells/P][K][gate][P], so that one panel's
// sums are all gates of P cells. The states are rows of h and c (workspace, a row a step), padded
// to whole panels. Stages: r (run-time packing only), h.first, c.first; in scan t: acc and the nest
// of the cells (c, h, y); for GRUs that reset before the product, gates z and q = reset * h first,
// then the sums accn over q; after the scan the last states.
#include "kernels/common/group_builder.h"
#include "kernels/recurrent/recurrent.h"

namespace tw {
namespace {

enum Input { kX, kR, kBias, kLengths, kH0, kC0, kPeepholes };

class RecurrentLowering {
 public:
  RecurrentLowering(GroupBuilder& b, const Node& node)
      : b_(b),
        node_(node),
        a_(std::get<op::Recurrent>(node.attrs)),
        type_(b.type(node.output).dtype),
        t_(accumulator_type(type_)),
        steps_(b.type(node.inputs[kX]).shape[0]),
        batch_(b.type(node.inputs[kX]).shape[1]),
        hidden_(b.type(node.inputs[kR]).shape[2]),
        lanes_(std::max(1, b.target.lanes(dtype_bytes(t_)))) {}

  Expected<Lowered<RecurrentStages>> run() {
    bool two_products = a_.kind == RecurrentKind::gru && !a_.linear_before_reset;
    int64_t gates = two_products ? 2 : a_.gates();
    cells_ = lanes_ * ((4 + gates - 1) / gates);  // of a panel: four vectors or a few more
    blocks_ = simplify(ceil_div(hidden_, cells_));
    BufferId r = pack("r", 0, gates), rn{};
    if (two_products) rn = pack("rn", 2, 1);
    for (const BufferId weights : {r, rn})
      if (weights.valid()) copy(b_.stage_of(weights));
    h_ = state("h", kH0);
    if (a_.kind == RecurrentKind::lstm) c_ = state("c", kC0);
    y_ = b_.output(node_.output);
    b_.scan({"t", steps_, AxisRole::scan}, [&] {
      sums("acc", r, h_, gates);
      if (two_products) reset_gates(rn);
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
  Expr padded() const { return simplify(blocks_ * Expr(cells_)); }
  Expr is_cell(const Expr& cell) const { return b_.simplified(lt(cell, hidden_)); }
  // The element where there is such a cell, else 0.
  Expr at_cell(const Expr& cell, const Expr& value) const {
    return select(is_cell(cell), value, imm(0, value.type()));
  }

  BufferId pack(const std::string& name, int64_t first_gate, int64_t gates) {
    std::vector<Axis> axes = {{name + "_j", blocks_},
                              {name + "_k", hidden_},
                              {name + "_g", Expr(gates)},
                              {name + "_l", Expr(cells_)}};
    DType w = b_.type(node_.inputs[kR]).dtype;
    return b_.packed(node_.inputs[kR], name, axes, [&](const auto& element) {
      Expr cell = axis(axes, 0) * Expr(cells_) + axis(axes, 3);
      Expr row = (axis(axes, 2) + Expr(first_gate)) * hidden_ + cell;
      return select(lt(cell, hidden_), element(Index{Expr(a_.row), row, axis(axes, 1)}), imm(0, w));
    });
  }
  static Expr axis(const std::vector<Axis>& axes, size_t i) { return var(axes[i].name); }

  // Rows of a state, the first one stored.
  BufferId state(const std::string& name, Input first) {
    BufferId rows = b_.temp(name, t_, {simplify(steps_ + Expr(1)), batch_, padded()});
    std::vector<Axis> axes = {{name + "0_b", batch_}, {name + "0_j", padded()}};
    b_.declare(axes);
    Expr cell = axis(axes, 1);
    Expr value = given(first) ? at_cell(cell, read(first, {Expr(a_.row), axis(axes, 0), cell}))
                              : number(0);
    copy(b_.stage(name + ".first", axes, rows, {Expr(0), axis(axes, 0), cell}, value));
    return rows;
  }

  // NAME[b, j, gate, l]: products of a state's row with the panels of r.
  void sums(const std::string& name, BufferId r, BufferId state, int64_t gates) {
    const std::string p = name == "acc" ? "a" : "n";
    std::vector<Axis> axes = {
        {p + "b", batch_}, {p + "j", blocks_}, {p + "g", Expr(gates)}, {p + "l", Expr(cells_)}};
    BufferId acc = b_.temp(name, t_, extents(axes));
    Index at = variables(axes);
    axes.push_back({p + "k", hidden_, AxisRole::reduce});
    Expr k = var(p + "k");
    Expr left = state == h_ ? load(h_, t_, {var("t"), at[0], k}) : load(state, t_, {at[0], k});
    Expr right = widen(load(r, b_.type(node_.inputs[kR]).dtype, {at[1], k, at[2], at[3]}));
    const Stage stage = b_.stage(name, axes, acc, at, left * right, Combiner::add, number(0));
    const Loops l = loops(axes);
    m_.phases.push_back({stage, b_.name_of(r), l[0], l[1], l[2], l[3], l[4], {}});
    (name == "acc" ? acc_ : accn_) = acc;
  }

  // The variables of a nest over cells.
  struct Point {
    std::vector<Axis> axes;
    Expr b, block, lane, cell, valid;
  };
  Point point(const std::string& prefix) {
    Point p;
    p.axes = {{prefix + "b", batch_}, {prefix + "j", blocks_}, {prefix + "l", Expr(cells_)}};
    b_.declare(p.axes);
    m_.phases.back().cells = {p.axes[0].loop(), p.axes[1].loop(), p.axes[2].loop()};
    p.b = axis(p.axes, 0), p.block = axis(p.axes, 1), p.lane = axis(p.axes, 2);
    p.cell = p.block * Expr(cells_) + p.lane;
    if (given(kLengths))
      p.valid = lt(step(), cast(DType::i64, b_.parameter_element(node_.inputs[kLengths], {p.b})));
    return p;
  }
  Expr step() const { return a_.reverse ? steps_ - Expr(1) - var("t") : var("t"); }
  Expr old(BufferId rows, const Point& p) const { return load(rows, t_, {var("t"), p.b, p.cell}); }
  Expr made(BufferId rows, const Point& p) const {
    return load(rows, t_, {var("t") + Expr(1), p.b, p.cell});
  }
  Expr sum(BufferId acc, int64_t gate, const Point& p) const {
    return load(acc, t_, {p.b, p.block, Expr(gate), p.lane});
  }
  Expr input(int64_t gate, const Point& p) {
    return at_cell(p.cell,
                   read(kX, {step(), p.b, Expr((a_.row * a_.gates() + gate)) * hidden_ + p.cell}));
  }
  Expr bias(int64_t which, const Point& p) {
    return given(kBias)
               ? at_cell(p.cell, read(kBias, {Expr(a_.row), Expr(which) * hidden_ + p.cell}))
               : number(0);
  }
  // Input half of a gate with both biases.
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

  // h (its row t + 1) and y, behind what makes the value of h.
  void finish(const Point& p, std::vector<Store> stores, const Expr& h) {
    stores.push_back({"h", h_, {var("t") + Expr(1), p.b, p.cell}, masked(h, old(h_, p), p), {}});
    Index at = b_.to_physical(b_.type(node_.output), {step(), p.b, p.cell});
    stores.push_back({"y", y_, at, narrow(masked(made(h_, p), number(0), p)), is_cell(p.cell)});
    b_.nest(p.axes, stores);
  }

  void cells() {
    Point p = point("");
    if (a_.kind == RecurrentKind::rnn) return finish(p, {}, f(half(0, p) + sum(acc_, 0, p)));
    if (a_.kind == RecurrentKind::gru) {
      Expr z = f(half(0, p) + sum(acc_, 0, p)), reset = f(half(1, p) + sum(acc_, 1, p));
      Expr n = g(input(2, p) + bias(2, p) + reset * (sum(acc_, 2, p) + bias(5, p)));
      return finish(p, {}, n + z * (old(h_, p) - n));
    }
    auto peephole = [&](int64_t which, const Expr& c) {
      return given(kPeepholes)
                 ? at_cell(p.cell,
                           read(kPeepholes, {Expr(a_.row), Expr(which) * hidden_ + p.cell})) *
                       c
                 : Expr();
    };
    auto gate = [&](int64_t g, int64_t which, const Expr& c) {
      Expr x = half(g, p) + sum(acc_, g, p), peep = peephole(which, c);
      return f(peep.defined() ? x + peep : x);
    };
    Expr i = gate(0, 0, old(c_, p)), forget = a_.coupled ? number(1) - i : gate(2, 2, old(c_, p));
    Expr c = forget * old(c_, p) + i * g(half(3, p) + sum(acc_, 3, p));
    Expr o = gate(1, 1, made(c_, p));
    finish(p, {{"c", c_, {var("t") + Expr(1), p.b, p.cell}, masked(c, old(c_, p), p), {}}},
           o * activate(a_.h, made(c_, p), 2));
  }

  // GRU that scales the state before the product: all resets are known before the third gate's sums
  // start.
  void reset_gates(BufferId rn) {
    Point p = point("q_");
    BufferId z = b_.temp("z", t_, {batch_, padded()}), q = b_.temp("q", t_, {batch_, padded()});
    Expr update = f(half(0, p) + sum(acc_, 0, p)), reset = f(half(1, p) + sum(acc_, 1, p));
    b_.nest(p.axes,
            {{"z", z, {p.b, p.cell}, update, {}}, {"q", q, {p.b, p.cell}, reset * old(h_, p), {}}});
    sums("accn", rn, q, 1);
    p = point("");
    Expr n = g(half(2, p) + sum(accn_, 0, p)), zp = load(z, t_, {p.b, p.cell});
    finish(p, {}, n + zp * (old(h_, p) - n));
  }

  void last_states() {
    auto write = [&](const std::string& name, BufferId rows, int64_t at) {
      std::vector<Axis> axes = {{name + "_b", batch_}, {name + "_j", hidden_}};
      Index to = b_.to_physical(b_.type(node_.output),
                                {steps_ + Expr(at), axis(axes, 0), axis(axes, 1)});
      copy(b_.stage("y." + name, axes, y_, to,
                    narrow(load(rows, t_, {steps_, axis(axes, 0), axis(axes, 1)}))));
    };
    write("lasth", h_, 0);
    if (a_.kind == RecurrentKind::lstm) write("lastc", c_, 1);
  }

  void copy(const Stage& stage) {
    if (stage.defined()) m_.copies.push_back(stage);
  }

  GroupBuilder& b_;
  const Node& node_;
  const op::Recurrent& a_;
  DType type_, t_;
  Expr steps_, batch_, hidden_, blocks_;
  int64_t lanes_, cells_ = 0;
  RecurrentStages m_;
  BufferId h_{}, c_{}, y_{}, acc_{}, accn_{};
};

Expr RecurrentLowering::activate(GateFunction function, const Expr& x, size_t which) const {
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

Expected<Lowered<RecurrentStages>> lower_recurrent(GroupBuilder& b, const Node& node) {
  return RecurrentLowering(b, node).run();
}

}  // namespace tw
