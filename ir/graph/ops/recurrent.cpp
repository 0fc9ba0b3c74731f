// Recurrent networks in one direction. States are double. Each gate is the sum of its input half,
// the biases and the recurrent half. Integer weights multiply states that are rounded to 8 bits.
#include <algorithm>
#include <cmath>

#include "ir/graph/ops/common.h"
#include "ir/graph/short_floats.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

double larger(double a, double b) { return float_binary(BinaryOp::max, a, b); }
double smaller(double a, double b) { return float_binary(BinaryOp::min, a, b); }

double activate(GateFunction function, double x, double alpha, double beta) {
  switch (function) {
    case GateFunction::sigmoid: return tw::sigmoid(x);
    case GateFunction::tanh: return std::tanh(x);
    case GateFunction::relu: return larger(x, 0);
    case GateFunction::affine: return alpha * x + beta;
    case GateFunction::leaky_relu: return x >= 0 ? x : alpha * x;
    case GateFunction::thresholded_relu: return x > alpha ? x : 0;
    case GateFunction::scaled_tanh: return alpha * std::tanh(beta * x);
    case GateFunction::hard_sigmoid: return smaller(larger(alpha * x + beta, 0), 1);
    case GateFunction::elu: return x >= 0 ? x : alpha * std::expm1(x);
    case GateFunction::softsign: return x / (1 + std::fabs(x));
    case GateFunction::softplus: return std::log1p(std::exp(-std::fabs(x))) + larger(x, 0);
  }
  TW_UNREACHABLE("bad gate function");
}

constexpr size_t kScales = 7;  // input with the scales of integer weights
constexpr double kMostByte = 255;

// Scale and zero point by which a step rounds the hidden states to bytes. Each operation rounds to
// the states' type.
class Rounding {
 public:
  explicit Rounding(DType type, double low = 0, double high = 0) : type_(type) {
    if (const double span = typed(typed(high - low) / kMostByte); span != 0) scale_ = span;
    zero_ = smaller(larger(std::nearbyint(typed(-low / scale_)), 0), kMostByte);
  }
  // The state's byte minus the zero point
  int64_t number(double state) const {
    const double byte = std::nearbyint(typed(typed(state) / scale_)) + zero_;
    return float_to_int(DType::u8, smaller(larger(byte, 0), kMostByte), false) -
           static_cast<int64_t>(zero_);
  }
  double product(int64_t sum, double weight_scale) const {
    return typed(typed(static_cast<double>(sum)) * typed(scale_ * weight_scale));
  }

 private:
  double typed(double v) const { return type_ == DType::f64 ? v : static_cast<float>(v); }
  DType type_;
  double scale_ = 1, zero_ = 0;
};

// The state of one sequence. A step replaces it.
class Cell {
 public:
  Cell(const op::Recurrent& a, const Tensors& in)
      : a_(a),
        x_(*in[0]),
        r_(*in[1]),
        bias_(present(in, 2) ? in[2] : nullptr),
        peep_(present(in, 6) ? in[6] : nullptr),
        scales_(present(in, kScales) ? in[kScales] : nullptr),
        gates_(a.gates()),
        hidden_(r_.shape[2]),
        h_(static_cast<size_t>(hidden_)),
        c_(h_),
        rounding_(x_.dtype) {}

  std::vector<double>& h() { return h_; }
  std::vector<double>& c() { return c_; }
  // at: the offset in x of this step's and sequence's gates
  void step(int64_t at, const Rounding& rounding) {
    at_ = at;
    rounding_ = rounding;
    numbers_.clear();
    for (size_t k = 0; k < h_.size() && scales_; ++k) numbers_.push_back(rounding.number(h_[k]));
    switch (a_.kind) {
      case RecurrentKind::rnn: return rnn();
      case RecurrentKind::gru: return gru();
      case RecurrentKind::lstm: return lstm();
    }
  }

 private:
  double input(int64_t gate, int64_t j) const {
    return x_.at(at_ + gate * hidden_ + j) + bias(gate, j);
  }
  double bias(int64_t gate, int64_t j) const {
    return bias_ ? bias_->at((a_.row * 2 * gates_ + gate) * hidden_ + j) : 0;
  }
  double recurrent_bias(int64_t gate, int64_t j) const {
    return bias_ ? bias_->at((a_.row * 2 * gates_ + gates_ + gate) * hidden_ + j) : 0;
  }
  double recurrent(int64_t gate, int64_t j, const std::vector<double>& h) const {
    double sum = recurrent_bias(gate, j);
    const int64_t column = (a_.row * gates_ + gate) * hidden_ + j, from = column * hidden_;
    if (scales_) return sum + integer_product(column);
    for (int64_t k = 0; k < hidden_; ++k) sum += r_.at(from + k) * h[static_cast<size_t>(k)];
    return sum;
  }
  double integer_product(int64_t column) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < hidden_; ++k)
      sum += r_.int_at(column * hidden_ + k) * numbers_[static_cast<size_t>(k)];
    return rounding_.product(sum, scales_->at(column));
  }
  double clipped(double x) const { return a_.clip > 0 ? smaller(larger(x, -a_.clip), a_.clip) : x; }
  double f(double x) const { return activate(a_.f, clipped(x), a_.alphas[0], a_.betas[0]); }
  double g(double x) const { return activate(a_.g, clipped(x), a_.alphas[1], a_.betas[1]); }
  double last(double x) const { return activate(a_.h, x, a_.alphas[2], a_.betas[2]); }
  double peephole(int64_t which, int64_t j, double c) const {
    return peep_ ? peep_->at((a_.row * 3 + which) * hidden_ + j) * c : 0;
  }

  void rnn() {
    std::vector<double> next(h_.size());
    for (int64_t j = 0; j < hidden_; ++j)
      next[static_cast<size_t>(j)] = f(input(0, j) + recurrent(0, j, h_));
    h_ = next;
  }
  void gru() {
    std::vector<double> next(h_.size()), reset(h_.size()), scaled(h_.size());
    for (size_t j = 0; j < h_.size(); ++j) {
      auto i = static_cast<int64_t>(j);
      reset[j] = f(input(1, i) + recurrent(1, i, h_));
      scaled[j] = reset[j] * h_[j];
    }
    for (size_t j = 0; j < h_.size(); ++j) {
      auto i = static_cast<int64_t>(j);
      double z = f(input(0, i) + recurrent(0, i, h_));
      double inner = a_.linear_before_reset ? reset[j] * recurrent(2, i, h_)
                                            : recurrent(2, i, scaled);
      next[j] = (1 - z) * g(input(2, i) + inner) + z * h_[j];
    }
    h_ = next;
  }
  void lstm() {
    std::vector<double> next(h_.size());
    for (size_t j = 0; j < h_.size(); ++j) {
      auto n = static_cast<int64_t>(j);
      double i = f(input(0, n) + recurrent(0, n, h_) + peephole(0, n, c_[j]));
      double forget = a_.coupled ? 1 - i
                                 : f(input(2, n) + recurrent(2, n, h_) + peephole(2, n, c_[j]));
      c_[j] = forget * c_[j] + i * g(input(3, n) + recurrent(3, n, h_));
      next[j] = f(input(1, n) + recurrent(1, n, h_) + peephole(1, n, c_[j])) * last(c_[j]);
    }
    h_ = next;
  }

  const op::Recurrent& a_;
  const Tensor &x_, &r_;
  const Tensor *bias_, *peep_, *scales_;
  int64_t gates_, hidden_, at_ = 0;
  std::vector<double> h_, c_;
  Rounding rounding_;
  std::vector<int64_t> numbers_;  // the rounded h_
};

Rounding rounding_of(std::vector<Cell>& cells, const std::vector<bool>& counts, DType type) {
  double low = 0, high = 0;
  for (size_t b = 0; b < cells.size(); ++b)
    for (size_t j = 0; counts[b] && j < cells[b].h().size(); ++j) {
      const double state = cells[b].h()[j];
      low = smaller(low, state), high = larger(high, state);
    }
  return Rounding(type, low, high);
}

}  // namespace

Expected<TensorType> infer_recurrent(const OpAttrs& attrs, const Types& in) {
  const auto& a = std::get<op::Recurrent>(attrs);
  if (!is_float(in[0]->dtype))
    return input_error(0, "x", "{0}, expected a float type", dtype_name(in[0]->dtype));
  constexpr const char* kRoles[] = {"x",  "r",  "bias",      "lengths",
                                    "h0", "c0", "peepholes", "r_scales"};
  constexpr size_t kRanks[] = {3, 3, 2, 1, 3, 3, 2, 2};
  const bool integers = present(in, kScales);
  if (integers && a.kind != RecurrentKind::lstm)
    return input_error(kScales, kRoles[kScales], "given, which LSTMs alone take");
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    TW_TRY(check_rank(i, kRoles[i], *in[i], kRanks[i]));
    if (i == 1 && integers) {
      if (!is_byte(in[i]->dtype) && in[i]->dtype != DType::i16)
        return input_error(i, kRoles[i], "{0}, expected u8, i8 or i16 beside scales",
                           dtype_name(in[i]->dtype));
      continue;
    }
    const bool short_weights = i == 1 && in[0]->dtype == DType::f32 && is_short_float(in[i]->dtype);
    if (short_weights) continue;
    if (i != 3) TW_TRY(check_dtype(i, kRoles[i], *in[i], in[0]->dtype));
    else if (is_float(in[i]->dtype) || in[i]->dtype == DType::boolean)
      return input_error(i, kRoles[i], "{0}, expected integers", dtype_name(in[i]->dtype));
  }
  const Shape &x = in[0]->shape, &r = in[1]->shape;
  auto directions = as_const(r[0]), hidden = as_const(r[2]);
  if (!directions || !hidden || *hidden < 1 || *hidden > 1 << 20 || *directions < 1 ||
      *directions > 2)
    return input_error(1, "r",
                       "shape {0}, expected [1 or 2, gates * hidden, hidden], all constants",
                       to_string(r));
  if (a.row < 0 || a.row >= *directions)
    return make_error(DiagCode::invalid_model, "row {0} of {1} directions", a.row, *directions);
  if (a.alphas.size() != 3 || a.betas.size() != 3)
    return make_error(DiagCode::invalid_model, "alphas and betas have three entries each");
  const Expr all(*directions), gates(a.gates() * *hidden);
  TW_TRY(check_dim(1, "r", "gates * hidden", r[1], gates));
  TW_TRY(check_dim(0, "x", "directions * gates * hidden", x[2],
                   Expr(*directions * a.gates() * *hidden)));
  auto check = [&](size_t i, const Shape& wanted) -> Error {
    return present(in, i) ? check_shape(i, kRoles[i], *in[i], wanted) : Error::success();
  };
  TW_TRY(check(2, {all, Expr(2 * a.gates() * *hidden)}));
  TW_TRY(check(3, {x[1]}));
  TW_TRY(check(4, {all, x[1], r[2]}));
  TW_TRY(check(5, {all, x[1], r[2]}));
  TW_TRY(check(6, {all, Expr(3 * *hidden)}));
  TW_TRY(check(kScales, {all, gates}));
  int64_t states = !a.states ? 0 : a.kind == RecurrentKind::lstm ? 2 : 1;
  return TensorType{in[0]->dtype, {simplify_dim(x[0] + Expr(states)), x[1], r[2]}, {}};
}

Expected<Tensor> evaluate_recurrent(const OpAttrs& attrs, const TensorType& out,
                                    const Tensors& in) {
  const auto& a = std::get<op::Recurrent>(attrs);
  const Tensor& x = *in[0];
  const int64_t steps = x.shape[0], batch = x.shape[1], hidden = in[1]->shape[2];
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  std::vector<Cell> cells(static_cast<size_t>(batch), Cell(a, in));
  const auto start = [&](size_t i, int64_t b, std::vector<double>& state) {
    for (int64_t j = 0; j < hidden && present(in, i); ++j)
      state[static_cast<size_t>(j)] = in[i]->at((a.row * batch + b) * hidden + j);
  };
  const auto store = [&](int64_t t, int64_t b, const std::vector<double>& state) {
    for (int64_t j = 0; j < hidden; ++j)
      y.set((t * batch + b) * hidden + j, state[static_cast<size_t>(j)]);
  };
  for (int64_t b = 0; b < batch; ++b) {
    start(4, b, cells[static_cast<size_t>(b)].h());
    start(5, b, cells[static_cast<size_t>(b)].c());
  }
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = a.reverse ? steps - 1 - i : i;
    std::vector<bool> takes, counts;  // takes the step; counts in its range, as in onnxruntime
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = present(in, 3) ? in[3]->int_at(b) : steps;
      takes.push_back(t < length);
      counts.push_back(t < length || (t == length && !a.reverse));
    }
    const Rounding rounding = rounding_of(cells, counts, x.dtype);
    for (int64_t b = 0; b < batch; ++b) {
      if (!takes[static_cast<size_t>(b)]) continue;
      Cell& cell = cells[static_cast<size_t>(b)];
      cell.step((t * batch + b) * x.shape[2] + a.row * a.gates() * hidden, rounding);
      store(t, b, cell.h());
    }
  }
  for (int64_t b = 0; b < batch && a.states; ++b) {
    store(steps, b, cells[static_cast<size_t>(b)].h());
    if (a.kind == RecurrentKind::lstm) store(steps + 1, b, cells[static_cast<size_t>(b)].c());
  }
  return y;
}

}  // namespace tw
