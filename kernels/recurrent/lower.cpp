// Recurrent networks. A matrix product in front computes the input half of all steps, and here the
// steps run in a scan.
//
// The recurrent weights are packed in panels [cells/P][K][gate][P], so that one panel's sums are
// all gates of P cells. The states are rows of h and c in the workspace, one row for each step,
// padded to whole panels.
//
// Stages: r (packing at run time only), h.first, c.first. In scan t: acc, and the nest of the cells
// (c, h, y). GRUs that reset before the product first compute gates z and q = reset * h, then the
// sums accn over q. After the scan come the last states.
//
// For integers the panels have the depth steps that an instruction takes innermost:
// [cells/P][K][gate][P][steps]. A step then first finds the range of h (lows and highs by lane,
// then low and high) and the scale of the rounding (unit, zero), and rounds h (hq).
#include "kernels/common/integer_product.h"
#include "kernels/common/target_builder.h"
#include "kernels/recurrent/recurrent.h"

namespace tw {
namespace {

enum Input { kX, kR, kBias, kLengths, kH0, kC0, kPeepholes, kScales };

constexpr int64_t kMostByte = 255;

class RecurrentLowering {
 public:
  RecurrentLowering(TargetBuilder& b, const Node& node)
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
    cells_ = lanes_ * ((4 + gates - 1) / gates);  // cells of a panel: four vectors or a few more
    blocks_ = simplify(ceil_div(hidden_, cells_));
    if (given(kScales)) choose_instruction();
    BufferId r = pack("r", 0, gates), rn{};
    if (two_products) rn = pack("rn", 2, 1);
    for (const BufferId weights : {r, rn})
      if (weights.valid()) copy(b_.stage_of(weights));
    h_ = state("h", kH0);
    if (a_.kind == RecurrentKind::lstm) c_ = state("c", kC0);
    y_ = b_.output(node_.output);
    if (given(kScales)) sum_weights();
    b_.scan({"t", steps_, AxisRole::scan}, [&] {
      if (given(kScales)) round_states();
      sums("acc", r, h_, gates);
      if (two_products) reset_gates(rn);
      else cells();
    });
    if (a_.states) last_states();
    return b_.finish(std::move(m_));
  }

 private:
  using Store = TargetBuilder::Store;

  bool given(Input i) const {
    return static_cast<size_t>(i) < node_.inputs.size() && node_.inputs[i].valid();
  }
  Expr read(Input i, const Index& at) { return widen(b_.parameter_element(node_.inputs[i], at)); }
  Expr widen(const Expr& e) const { return e.type() == t_ ? e : cast(t_, e); }
  Expr narrow(const Expr& e) const { return e.type() == type_ ? e : cast(type_, e); }
  Expr number(double v) const { return imm(v, t_); }
  Expr padded() const { return simplify(blocks_ * Expr(cells_)); }
  Expr is_cell(const Expr& cell) const { return b_.simplified(lt(cell, hidden_)); }
  // The element if the cell exists, else 0
  Expr at_cell(const Expr& cell, const Expr& value) const {
    return select(is_cell(cell), value, imm(0, value.type()));
  }

  BufferId pack(const std::string& name, int64_t first_gate, int64_t gates) {
    const int64_t side_by_side = product_.depth;
    std::vector<Axis> axes = {{name + "_j", blocks_},
                              {name + "_k", simplify(ceil_div(hidden_, side_by_side))},
                              {name + "_g", Expr(gates)},
                              {name + "_l", Expr(cells_)}};
    if (side_by_side > 1) axes.push_back({name + "_s", Expr(side_by_side)});
    DType w = b_.type(node_.inputs[kR]).dtype;
    return b_.packed(node_.inputs[kR], name, axes, [&](const auto& element) {
      Expr cell = axis(axes, 0) * Expr(cells_) + axis(axes, 3), k = axis(axes, 1);
      if (side_by_side > 1) k = k * Expr(side_by_side) + axis(axes, 4);
      Expr row = (axis(axes, 2) + Expr(first_gate)) * hidden_ + cell;
      return select(logical_and(lt(cell, hidden_), side_by_side > 1 ? lt(k, hidden_) : Expr()),
                    element(Index{Expr(a_.row), row, k}), imm(0, w));
    });
  }

  // Chooses the instruction that multiplies rounded states by integer weights.
  void choose_instruction() {
    sums_ = DType::i32;
    product_ = integer_product_from_anywhere(b_.target, {DType::u8, 0},
                                             b_.type(node_.inputs[kR]).dtype, {lanes_, 0, 1});
    m_.instruction = product_.sums({});
  }

  // corr[gate * hidden + cell] is the sum of a column's weights. A zero point multiplies it.
  void sum_weights() {
    const ValueId r = node_.inputs[kR];
    const Expr columns = simplify(Expr(a_.gates()) * hidden_);
    if (b_.graph.is_constant(r)) {
      corr_ = surplus_of_sums(b_, r, sums_, 1, {Expr(a_.row), var("c0")}, {columns});
      return;
    }
    const Expr lanes(lanes_), vectors = simplify(ceil_div(columns, lanes_));
    const std::vector<Axis> axes = {
        {"ci", vectors}, {"cl", lanes}, {"ck", hidden_, AxisRole::reduce}};
    b_.declare(axes);
    corr_ = b_.temp("corr", sums_, {simplify(vectors * lanes)});
    const Expr column = axis(axes, 0) * lanes + axis(axes, 1);
    const Expr weight = b_.parameter_element(
        r, {Expr(a_.row), min(column, columns - Expr(1)), axis(axes, 2)});
    const Stage stage = b_.stage("corr", axes, corr_, {column}, cast(sums_, weight), Combiner::add,
                                 imm(0, sums_));
    m_.range.push_back({stage, axes[1].loop(), {axes[2].loop()}});
  }

  // The least or greatest state of a step, and of 0, over the sequences that take the step or have
  // just ended
  Expr end_of(const std::string& name, Combiner combiner) {
    const std::string p = name.substr(0, 1);
    const std::vector<Axis> axes = {
        {p + "l", Expr(lanes_)},
        {p + "b", batch_, AxisRole::reduce},
        {p + "j", simplify(ceil_div(padded(), lanes_)), AxisRole::reduce}};
    b_.declare(axes);
    const Expr cell = axis(axes, 2) * Expr(lanes_) + axis(axes, 0);
    const Expr there = logical_and(is_cell(cell), takes_step(axis(axes, 1), a_.reverse ? 0 : 1));
    const BufferId lanes = b_.temp(name + "s", t_, {Expr(lanes_)});
    const Stage by_lane = b_.stage(
        name + "s", axes, lanes, {axis(axes, 0)},
        select(there, load(h_, t_, {var("t"), axis(axes, 1), cell}), number(0)), combiner,
        number(0));
    m_.range.push_back({by_lane, axes[0].loop(), {axes[1].loop(), axes[2].loop()}});
    const std::vector<Axis> all = {{p + "k", Expr(lanes_), AxisRole::reduce}};
    const BufferId end = b_.temp(name, t_, {Expr(1)});
    b_.stage(name, all, end, {Expr(0)}, load(lanes, t_, {axis(all, 0)}), combiner, number(0));
    return load(end, t_, {Expr(0)});
  }

  // Adds a stage that computes one number of the step.
  BufferId once(const std::string& name, DType type, const Expr& value) {
    const BufferId made = b_.temp(name, type, {Expr(1)});
    b_.stage(name, {}, made, {Expr(0)}, value);
    return made;
  }

  // hq[b, k]: the states in the instruction's form, 0 behind the last one
  void round_states() {
    const Expr low = end_of("low", Combiner::min), high = end_of("high", Combiner::max);
    const Expr most = number(kMostByte);
    const Expr span = binary(BinaryOp::div, high - low, most);
    unit_ = once("unit", t_, select(eq(span, number(0)), number(1), span));
    const Expr unit = load(unit_, t_, {Expr(0)});
    zero_ = once(
        "zero", t_,
        min(max(unary(UnaryOp::round, binary(BinaryOp::div, number(0) - low, unit)), number(0)),
            most));
    std::vector<Axis> axes = {
        {"qb", batch_}, {"qk", simplify(ceil_div(hidden_, product_.depth) * Expr(product_.depth))}};
    b_.declare(axes);
    const Expr k = axis(axes, 1);
    const Expr steps = unary(
        UnaryOp::round, binary(BinaryOp::div, load(h_, t_, {var("t"), axis(axes, 0), k}), unit));
    const Expr byte = min(max(steps + load(zero_, t_, {Expr(0)}), number(0)), most);
    rounded_ = b_.temp("hq", product_.type, extents(axes));
    const Expr there = b_.simplified(lt(k, hidden_));
    const Expr value = product_.copied(cast(DType::u8, byte));
    m_.rounded = b_.stage("hq", axes, rounded_, variables(axes),
                          is_const(there, 1) ? value : select(there, value, imm(0, product_.type)));
    m_.rounded_cell = axes[1].loop();
  }
  static Expr axis(const std::vector<Axis>& axes, size_t i) { return var(axes[i].name); }

  // Rows of a state. Stores the first row.
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

  // NAME[b, j, gate, l]: products of a state's row with the panels of r
  void sums(const std::string& name, BufferId r, BufferId state, int64_t gates) {
    const std::string p = name == "acc" ? "a" : "n";
    std::vector<Axis> axes = {
        {p + "b", batch_}, {p + "j", blocks_}, {p + "g", Expr(gates)}, {p + "l", Expr(cells_)}};
    const DType type = given(kScales) ? sums_ : t_, w = b_.type(node_.inputs[kR]).dtype;
    BufferId acc = b_.temp(name, type, extents(axes));
    const Index at = variables(axes);
    axes.push_back({p + "k", simplify(ceil_div(hidden_, product_.depth)), AxisRole::reduce});
    Expr k = var(p + "k");
    Index place = {at[1], k, at[2], at[3]};
    if (product_.depth > 1) {
      axes.push_back({p + "p", Expr(product_.depth), AxisRole::reduce});
      place.push_back(var(p + "p"));
      k = k * Expr(product_.depth) + var(p + "p");
      m_.instruction.depth = axes.back().loop();
    }
    const Expr left = given(kScales) ? cast(type, load(rounded_, product_.type, {at[0], k}))
                      : state == h_  ? load(h_, t_, {var("t"), at[0], k})
                                     : load(state, t_, {at[0], k});
    const Expr weight = load(r, w, place), right = w == type ? weight : cast(type, weight);
    const Stage stage = b_.stage(name, axes, acc, at, left * right, Combiner::add, imm(0, type));
    const Loops l = loops(axes);
    m_.phases.push_back({stage, b_.name_of(r), l[0], l[1], l[2], l[3], l[4], {}});
    (name == "acc" ? acc_ : accn_) = acc;
  }

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
    const Index at = {p.b, p.block, Expr(gate), p.lane};
    if (!given(kScales)) return load(acc, t_, at);
    // Subtracts the excess from numbers that are not counted from the zero point.
    const Expr column = Expr(gate) * hidden_ + p.cell;
    const Expr surplus = cast(sums_, load(zero_, t_, {Expr(0)})) -
                         imm(static_cast<double>(product_.left.zero), sums_);
    const Expr exact = load(acc, sums_, at) -
                       surplus * at_cell(p.cell, load(corr_, sums_, {column}));
    const Expr scale = load(unit_, t_, {Expr(0)}) *
                       at_cell(p.cell, read(kScales, {Expr(a_.row), column}));
    return cast(t_, exact) * scale;
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
    stores.push_back({"y",
                      y_,
                      {step(), p.b, p.cell},
                      narrow(masked(made(h_, p), number(0), p)),
                      is_cell(p.cell)});
    b_.nest(p.axes, stores);
  }

  // The cell's part of a gate; undefined: there is none
  Expr peephole(int64_t which, const Expr& c, const Point& p) {
    if (!given(kPeepholes)) return {};
    return at_cell(p.cell, read(kPeepholes, {Expr(a_.row), Expr(which) * hidden_ + p.cell})) * c;
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
      const Index to = {steps_ + Expr(at), axis(axes, 0), axis(axes, 1)};
      copy(b_.stage("y." + name, axes, y_, to,
                    narrow(load(rows, t_, {steps_, axis(axes, 0), axis(axes, 1)}))));
    };
    write("lasth", h_, 0);
    if (a_.kind == RecurrentKind::lstm) write("lastc", c_, 1);
  }

  void copy(const Stage& stage) {
    if (stage.defined()) m_.copies.push_back(stage);
  }

  TargetBuilder& b_;
  const Node& node_;
  const op::Recurrent& a_;
  DType type_, t_;
  Expr steps_, batch_, hidden_, blocks_;
  int64_t lanes_, cells_ = 0;
  RecurrentStages m_;
  BufferId h_{}, c_{}, y_{}, acc_{}, accn_{};
  // These are for integers.
  IntegerProduct product_;
  DType sums_ = DType::i32;
  BufferId corr_{}, unit_{}, zero_{}, rounded_{};
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

Expected<Lowered<RecurrentStages>> lower_recurrent(TargetBuilder& b, const Node& node) {
  return RecurrentLowering(b, node).run();
}

}  // namespace tw
