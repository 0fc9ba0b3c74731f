// Importers of LSTM, GRU, RNN, and com.microsoft's DynamicQuantizeLSTM. One matrix product computes
// the input half of the gates for all steps and directions. Then each direction is a core operator.
#include <algorithm>
#include <map>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/quantized/quantized.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

enum Input : size_t { kX, kW, kR, kB, kLengths, kH0, kC0, kP, kWScale, kWZero, kRScale, kRZero };

struct Function {
  GateFunction function;
  // Default numbers; nullopt if the function takes none
  std::optional<double> alpha, beta;
};
const std::map<std::string, Function>& functions() {
  using enum GateFunction;
  static const std::map<std::string, Function> table = {
      {"sigmoid", {sigmoid, {}, {}}},
      {"tanh", {tanh, {}, {}}},
      {"relu", {relu, {}, {}}},
      {"affine", {affine, 1, 0}},
      {"leakyrelu", {leaky_relu, 0.01f, {}}},
      {"thresholdedrelu", {thresholded_relu, 1, {}}},
      {"scaledtanh", {scaled_tanh, 1, 1}},
      {"hardsigmoid", {hard_sigmoid, 0.2f, 0.5}},
      {"elu", {elu, 1, {}}},
      {"softsign", {softsign, {}, {}}},
      {"softplus", {softplus, {}, {}}}};
  return table;
}

// Reads f, g and h of every direction and their numbers. The node lists numbers only for functions
// that take them.
void read_functions(NodeImport& n, std::vector<op::Recurrent>& directions) {
  const RecurrentKind kind = directions[0].kind;
  const size_t each = kind == RecurrentKind::rnn ? 1 : kind == RecurrentKind::gru ? 2 : 3;
  const std::optional<std::vector<std::string>> given = n.texts("activations");
  std::vector<std::string> names = given.value_or(std::vector<std::string>());
  for (size_t i = names.size(); i < each * directions.size(); ++i) {
    if (given)
      return n.invalid("attribute activations has " + std::to_string(names.size()) +
                       " entries, expected " + std::to_string(each * directions.size()));
    names.push_back(kind == RecurrentKind::rnn || i % each ? "tanh" : "sigmoid");
  }
  const std::vector<float> alphas = n.reals("activation_alpha").value_or(std::vector<float>()),
                           betas = n.reals("activation_beta").value_or(std::vector<float>());
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < each * directions.size(); ++i) {
    std::string name = names[i];
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const auto found = functions().find(name);
    if (found == functions().end()) return n.fail("activation " + names[i]);
    op::Recurrent& d = directions[i / each];
    const size_t which = i % each;
    (which == 0 ? d.f : which == 1 ? d.g : d.h) = found->second.function;
    if (found->second.alpha)
      d.alphas[which] = alpha < alphas.size() ? static_cast<double>(alphas[alpha++])
                                              : *found->second.alpha;
    if (found->second.beta)
      d.betas[which] = beta < betas.size() ? static_cast<double>(betas[beta++])
                                           : *found->second.beta;
  }
}

std::vector<op::Recurrent> read_directions(NodeImport& n, RecurrentKind kind) {
  const std::string direction = n.text("direction", "forward");
  op::Recurrent one;
  one.kind = kind;
  one.clip = n.real("clip", 0);
  one.linear_before_reset = n.integer("linear_before_reset", 0) != 0;
  one.coupled = n.integer("input_forget", 0) != 0;
  one.states = n.wanted(1) || n.wanted(2);
  one.reverse = direction == "reverse";
  std::vector<op::Recurrent> directions = {one};
  if (direction == "bidirectional") {
    one.reverse = true;
    one.row = 1;
    directions.push_back(one);
  } else if (direction != "forward" && direction != "reverse") {
    n.invalid("attribute direction=" + direction);
  }
  read_functions(n, directions);
  return directions;
}

Val joined(NodeImport& n, const std::vector<Val>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : n.emit(op::Concat{axis}, parts);
}

// Expands scales or zero points of [directions] or [directions, gates] to the columns of all gates.
Val by_gate(NodeImport& n, Val parameter, Val weights) {
  if (!parameter.valid() || n.failed()) return parameter;
  const Expr directions = n.dim(weights, 0), gates = n.dim(weights, 2);
  if (n.rank(parameter) == 1)
    parameter = n.expand(n.reshape(parameter, {directions, 1}), {directions, gates});
  return n.reshape(parameter, {directions * gates});
}

// Computes the input half of all gates: [T, B, D * G * H].
using Gates = Val(NodeImport&, Val x, Val w);

Val gates_in_floats(NodeImport& n, Val x, Val w) {
  return n.emit(op::MatMul{false, true},
                {x, n.reshape(w, {n.dim(w, 0) * n.dim(w, 1), n.dim(w, 2)})});
}

// w: bytes [D, I, G * H]; x is quantized over its own range.
Val gates_in_integers(NodeImport& n, Val x, Val w) {
  const Val columns = n.reshape(n.transpose(w, {1, 0, 2}),
                                {n.dim(w, 1), n.dim(w, 0) * n.dim(w, 2)});
  return dynamic_product(n, x, columns, by_gate(n, n.in(kWScale), w),
                         by_gate(n, n.maybe(kWZero), w));
}

// True if the zero point is known and all its numbers are `number`.
bool is_zero_point(NodeImport& n, Val zero, int64_t number) {
  const std::optional<Tensor> known = n.constant(zero);
  for (int64_t i = 0; known && i < known->size(); ++i)
    if (known->int_at(i) != number) return false;
  return known.has_value();
}

// r: bytes [D, H, G * H] -> [D, G * H, H] less the zero point. The results are bytes if the zero
// point is 0, or 128 for unsigned bytes; otherwise words.
Val recurrent_weights(NodeImport& n, Val r) {
  constexpr int64_t kMiddle = 128;
  Val shifted = r;
  if (const Val zero = n.maybe(kRZero); zero.valid() && !is_zero_point(n, zero, 0)) {
    const Val by_column = n.reshape(by_gate(n, zero, r), {n.dim(r, 0), 1, n.dim(r, 2)});
    shifted = n.sub(n.cast(r, DType::i16), n.cast(by_column, DType::i16));
    if (n.dtype(r) == DType::u8 && is_zero_point(n, zero, kMiddle))
      shifted = n.cast(shifted, DType::i8);
  }
  return n.transpose(shifted, {0, 2, 1});
}

void import_layers(NodeImport& n, RecurrentKind kind, Val r, Gates* gates_of, Val r_scales = {}) {
  const std::vector<op::Recurrent> directions = read_directions(n, kind);
  const bool batch_first = n.integer("layout", 0) != 0;
  if (n.failed()) return;
  auto turned = [&](Val v) { return batch_first && v.valid() ? n.transpose(v, {1, 0, 2}) : v; };
  const Val x = turned(n.in(kX)), w = n.in(kW);
  if (n.failed()) return;
  if (n.rank(x) != 3 || n.rank(w) != 3 || n.rank(r) != 3)
    return n.invalid("X, W and R need rank 3");
  if (!n.static_dim(w, 0) || !is_const(n.dim(w, 0), static_cast<int64_t>(directions.size())))
    return n.invalid("W has " + to_string(n.dim(w, 0)) + " directions, expected " +
                     std::to_string(directions.size()));
  const Val gates = gates_of(n, x, w);
  if (n.failed()) return;
  Val lengths = n.maybe(kLengths);
  if (lengths.valid()) lengths = n.cast(n.within(lengths, 0, n.dim(x, 0), "length"), DType::i32);
  if (n.failed()) return;
  std::vector<Val> inputs = {
      gates,       r,       n.maybe(kB), lengths, turned(n.maybe(kH0)), turned(n.maybe(kC0)),
      n.maybe(kP), r_scales};
  while (!inputs.back().valid()) inputs.pop_back();
  const Expr steps = n.dim(x, 0), batch = n.dim(x, 1), hidden = n.dim(r, 2);
  std::vector<Val> all, last[2];
  for (const op::Recurrent& direction : directions) {
    const Val y = n.emit(direction, inputs);
    const Val part = direction.states ? n.slice(y, 0, Expr(0), steps) : y;
    all.push_back(n.reshape(
        part, batch_first ? Shape{steps, batch, 1, hidden} : Shape{steps, 1, batch, hidden}));
    for (int64_t i = 0; i < 2; ++i)
      if (n.wanted(static_cast<size_t>(i) + 1))
        last[i].push_back(n.slice(y, 0, steps + Expr(i), Expr(1)));
  }
  if (n.wanted(0))
    n.set(0, batch_first ? n.transpose(joined(n, all, 2), {1, 0, 2, 3}) : joined(n, all, 1));
  for (size_t i = 0; i < 2; ++i)
    if (!last[i].empty()) n.set(i + 1, turned(joined(n, last[i], 0)));
}

}  // namespace

void import_recurrent(NodeImport& n, RecurrentKind kind) {
  const Val r = n.in(kR);
  import_layers(n, kind, r, gates_in_floats);
}

// In every step the hidden states are quantized over their own range, as x is over its range.
void import_dynamic_quantize_lstm(NodeImport& n) {
  const Val r = n.in(kR);
  if (n.failed()) return;
  if (n.rank(r) != 3 || n.rank(n.in(kW)) != 3) return n.invalid("W and R need rank 3");
  const Val scales = n.reshape(by_gate(n, n.in(kRScale), r), {n.dim(r, 0), n.dim(r, 2)});
  import_layers(n, RecurrentKind::lstm, recurrent_weights(n, r), gates_in_integers, scales);
}

}  // namespace tw::onnx_import
