#include "tests/passes/random_graph.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace tw::test {

Tensor random_tensor(std::mt19937& random, DType dtype, std::vector<int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = double(random() % 2001) / 1000 - 1;
    if (dtype == DType::boolean) value = value > 0;
    else if (!is_float(dtype)) value = double(random() % 3);
    tensor.set(i, value);
  }
  return tensor;
}

std::vector<Tensor> random_inputs(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> tensors;
  for (ValueId input : graph.inputs()) {
    std::vector<int64_t> shape;
    for (const Expr& extent : graph.value(input).type.shape)
      shape.push_back(eval_int(extent, [](std::string_view) { return int64_t{3}; }));
    tensors.push_back(random_tensor(random, graph.value(input).type.dtype, shape));
  }
  return tensors;
}

double relative_difference(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double range = 1, worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    double left = a.at(i), right = b.at(i);
    if (std::isnan(left) && std::isnan(right)) continue;
    if (left == right) continue;
    if (std::isfinite(left)) range = std::max(range, std::abs(left));
    worst = std::max(worst, std::isfinite(left - right) ? std::abs(left - right)
                                                        : std::numeric_limits<double>::infinity());
  }
  return worst / range;
}

namespace {

Tensor tensor_of(DType dtype, std::vector<int64_t> shape, double value) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
  return tensor;
}

class Builder {
 public:
  explicit Builder(unsigned seed) : random_(seed) {}
  Graph build();

 private:
  size_t below(size_t n) { return random_() % n; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::vector<int64_t> shape(ValueId value) const {
    return *static_shape(graph_.value(value).type.shape);
  }
  ValueId constant(std::vector<int64_t> shape, double low = -1, double high = 1);
  ValueId affine_constant(ValueId x);
  void make(OpAttrs attrs, std::vector<ValueId> inputs);
  void step();
  void movement(ValueId x);
  void element_wise(ValueId x);
  void heavy(ValueId x);
  void idiom(ValueId x);
  void quantized(ValueId x);

  std::mt19937 random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

ValueId Builder::constant(std::vector<int64_t> shape, double low, double high) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, low + (high - low) * double(random_() % 1000) / 1000);
  return graph_.add_constant("k", tensor);
}

// Returns a scale or shift: uniform or along one axis, possibly neutral, and sometimes made by an
// operator on constants.
ValueId Builder::affine_constant(ValueId x) {
  std::vector<int64_t> own = shape(x), along(own.size(), 1);
  if (own.empty() || below(3) == 0) return constant({}, below(2) ? 0.5 : 1.0, 1.0);
  size_t axis = below(own.size());
  along[axis] = own[axis];
  if (below(2)) along.erase(along.begin(), along.begin() + static_cast<std::ptrdiff_t>(axis));
  ValueId made = constant(along, 0.5, 1.5);
  if (below(3)) return made;
  Expected<ValueId> root = graph_.add(op::Unary{UnaryOp::sqrt}, {made});
  REQUIRE(bool(root));
  return *root;
}

// Drops operators that do not fit the shapes, or grow too large.
void Builder::make(OpAttrs attrs, std::vector<ValueId> inputs) {
  std::vector<const TensorType*> types;
  for (ValueId input : inputs) types.push_back(input.valid() ? &graph_.value(input).type : nullptr);
  Expected<TensorType> type = op_info(attrs).infer(attrs, types);
  if (!type) return llvm::consumeError(type.takeError());
  std::optional<std::vector<int64_t>> out = static_shape(type->shape);
  if (!out || element_count(std::span<const int64_t>(*out)) > 4000 ||
      element_count(std::span<const int64_t>(*out)) == 0)
    return;
  Expected<ValueId> value = graph_.add(std::move(attrs), std::move(inputs));
  REQUIRE(bool(value));
  values_.push_back(*value);
}

void Builder::element_wise(ValueId x) {
  using U = UnaryOp;
  using B = BinaryOp;
  switch (below(6)) {
    case 0:
      return make(
          op::Unary{one_of<U>({U::neg, U::neg, U::abs, U::tanh, U::sigmoid, U::erf, U::cos})}, {x});
    case 1:
      return make(op::Binary{one_of<B>({B::add, B::sub, B::mul, B::div, B::max, B::min})},
                  {x, affine_constant(x)});
    case 2:
      return make(op::Binary{one_of<B>({B::add, B::sub, B::mul, B::max, B::min})},
                  {affine_constant(x), x});
    case 3:
      return make(op::Binary{one_of<B>({B::add, B::sub, B::mul, B::max})}, {x, one_of(values_)});
    case 4:
      make(op::Cast{DType::f64, false}, {x});
      if (graph_.value(values_.back()).type.dtype == DType::f64)
        make(op::Cast{DType::f32, false}, {values_.back()});
      return;
    case 5: {
      ValueId condition = graph_.add_constant("c", random_tensor(random_, DType::boolean, {}));
      return make(op::Select{}, {condition, x, one_of(values_)});
    }
  }
}

void Builder::movement(ValueId x) {
  std::vector<int64_t> own = shape(x);
  size_t rank = own.size();
  Shape symbolic(own.begin(), own.end());
  if (rank == 0) return;
  switch (below(7)) {
    case 0: {
      op::Transpose transpose;
      for (size_t i = 0; i < rank; ++i) transpose.perm.push_back(static_cast<int64_t>(i));
      std::swap(transpose.perm[below(rank)], transpose.perm[rank - 1]);
      return make(transpose, {x});
    }
    case 1: {
      Shape target = symbolic;
      if (below(2)) target.insert(target.begin() + static_cast<std::ptrdiff_t>(below(rank + 1)), 1);
      else if (rank > 1) {
        target[0] = own[0] * own[1];
        target.erase(target.begin() + 1);
      }
      return make(op::Reshape{target}, {x});
    }
    case 2: {
      op::Slice slice{Shape(rank, Expr(0)), Ints(rank, 1), symbolic};
      size_t axis = below(rank);
      if (own[axis] > 2) {
        slice.starts[axis] = 1;
        slice.sizes[axis] = own[axis] - 1;
      }
      if (below(2)) {
        slice.starts[axis] = own[axis] - 1;
        slice.steps[axis] = -1;
        slice.sizes[axis] = own[axis];
      }
      return make(slice, {x});
    }
    case 3: return make(op::Concat{static_cast<int64_t>(below(rank))}, {x, one_of(values_)});
    case 4: {
      op::Pad pad{PadMode::constant, Shape(rank, Expr(0)), Shape(rank, Expr(0))};
      pad.begins[rank - 1] = static_cast<int64_t>(below(2));
      pad.ends[rank - 1] = static_cast<int64_t>(below(2));
      return make(pad, {x});
    }
    case 5: {
      Tensor index = Tensor::zeros(DType::i64, {});
      index.set_int(0, -static_cast<int64_t>(below(2)));
      return make(op::Gather{static_cast<int64_t>(below(rank))},
                  {x, graph_.add_constant("i", index)});
    }
    case 6: {
      if (below(2)) symbolic.insert(symbolic.begin(), 2);
      return make(op::Expand{symbolic}, {x});
    }
  }
}

void Builder::heavy(ValueId x) {
  std::vector<int64_t> own = shape(x);
  size_t rank = own.size();
  if (rank == 0) return;
  int64_t last = static_cast<int64_t>(rank) - 1;
  switch (below(8)) {
    case 0:
    case 1: {
      if (rank != 4) return;
      Ints pads(4, static_cast<int64_t>(below(2)));
      int64_t group = own[1] % 2 == 0 ? 1 + static_cast<int64_t>(below(2)) : 1;
      std::vector<ValueId> inputs = {x, constant({4, own[1] / group, 3, 2}, -0.4, 0.4)};
      if (below(2)) inputs.push_back(constant({4}));
      return make(op::Conv{{1, 1}, {1, 1}, pads, group}, inputs);
    }
    case 2: {
      if (rank != 4) return;
      int64_t group = own[1] % 2 == 0 ? 1 + static_cast<int64_t>(below(2)) : 1;
      return make(op::ConvTranspose{{2, 1}, {1, 1}, {0, 0, 0, 0}, {0, 0}, group},
                  {x, constant({own[1], 2, 2, 2}, -0.4, 0.4)});
    }
    case 3: {
      if (rank < 2) return;
      bool transposed = below(2);
      int64_t k = own[rank - 1];
      return make(op::MatMul{false, transposed},
                  {x, transposed ? constant({5, k}, -0.5, 0.5) : constant({k, 5}, -0.5, 0.5)});
    }
    case 4: return make(op::Softmax{last, below(2) == 1}, {x});
    case 5:
      return make(op::Reduce{below(2) ? ReduceKind::mean : ReduceKind::max,
                             {static_cast<int64_t>(below(rank))},
                             below(2) == 1},
                  {x});
    case 6: {
      if (rank < 2) return;
      int64_t c = own[1];
      return make(op::BatchNorm{1e-5}, {x, constant({c}, 0.5, 1.5), constant({c}), constant({c}),
                                        constant({c}, 0.5, 1.5)});
    }
    case 7: {
      if (rank != 4 || own[2] < 2 || own[3] < 2) return;
      PoolKind kind = below(2) ? PoolKind::max : PoolKind::average;
      return make(op::Pool{kind, {2, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}, false, false}, {x});
    }
  }
}

// Makes quantize, dequantize, an operator, quantize, dequantize. Scales are powers of two, so that
// all sums are exact in f32, and x is an input, so that no other pass moves it across a tie.
void Builder::quantized(ValueId x) {
  if (graph_.value(x).type.dtype != DType::f32) return;
  const auto power = [this](double scale) {
    return graph_.add_constant("s", tensor_of(DType::f32, {}, scale));
  };
  const auto weights = [this](std::vector<int64_t> shape) {
    Tensor w = Tensor::zeros(DType::i8, std::move(shape));
    for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, static_cast<int64_t>(below(255)) - 127);
    return graph_.add_constant("w", w);
  };
  const auto there_and_back = [&](ValueId from, double scale) {
    const DType t = below(3) ? DType::u8 : DType::i8;
    const ValueId s = power(scale), zero = graph_.add_constant(
                                        "z", tensor_of(t, {}, static_cast<double>(below(100))));
    make(op::Quantize{t}, {from, s, zero});
    make(op::Dequantize{}, {values_.back(), s, zero});
  };
  there_and_back(x, 1.0 / 16);
  const ValueId from = values_.back();
  const std::vector<int64_t> own = shape(from);
  const int64_t last = own.back();
  const auto between = below(5);
  if (between == 0) movement(from);
  else if (between <= 2)
    make(op::Binary{BinaryOp::mul},
         {from, graph_.add_constant("k", tensor_of(DType::f32, {}, 0.5))});
  else if (own.size() == 4) {
    const ValueId w = weights({3, own[1], 2, 2}),
                  ws = graph_.add_constant("ws", tensor_of(DType::f32, {3}, 1.0 / 64));
    make(op::Dequantize{0}, {w, ws});
    make(op::Conv{{1, 1}, {1, 1}, Ints(4, static_cast<int64_t>(below(2)))}, {from, values_.back()});
  } else {
    make(op::Dequantize{}, {weights({last, 5}), power(1.0 / 64)});
    make(op::MatMul{}, {from, values_.back()});
  }
  if (below(2))
    make(op::Binary{BinaryOp::max},
         {graph_.add_constant("zero", tensor_of(DType::f32, {}, 0)), values_.back()});
  there_and_back(values_.back(), 1.0 / 4);
}

// Makes a whole pattern that passes look for, so that it is frequent.
void Builder::idiom(ValueId x) {
  size_t rank = shape(x).size();
  switch (below(7)) {
    case 6: return quantized(values_[0]);
    case 0:  // a chain of scales and shifts behind a heavy operator
      heavy(x);
      for (size_t i = 0; i < 3; ++i)
        make(op::Binary{below(2) ? BinaryOp::mul : BinaryOp::add},
             {values_.back(), affine_constant(values_.back())});
      return;
    case 1:  // a scale or shift in front of one
      make(op::Binary{below(2) ? BinaryOp::mul : BinaryOp::add}, {x, affine_constant(x)});
      return heavy(values_.back());
    case 2:  // SiLU
      make(op::Unary{UnaryOp::sigmoid}, {x});
      return make(op::Binary{BinaryOp::mul}, {x, values_.back()});
    case 3: {
      if (rank < 2) return;
      Ints perm;
      for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
      std::swap(perm[rank - 1], perm[below(rank)]);
      make(op::Transpose{perm}, {x});
      int64_t k = shape(values_.back()).back();
      return make(op::MatMul{}, {values_.back(), constant({k, 3}, -0.5, 0.5)});
    }
    case 4: movement(x); return movement(values_.back());
    case 5: {
      if (rank != 4) return;
      make(op::Pad{PadMode::constant, {0, 0, 0, 1}, {0, 0, 1, 1}}, {x});
      if (below(2)) return heavy(values_.back());
      return make(op::Pool{PoolKind::average, {2, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}, false, false},
                  {values_.back()});
    }
  }
}

void Builder::step() {
  // Continues mostly from recent values, which makes chains, and only from f32 values.
  size_t recent = std::min<size_t>(values_.size(), below(3) ? 2 : values_.size());
  ValueId x = values_[values_.size() - 1 - below(recent)];
  if (graph_.value(x).type.dtype != DType::f32) return;
  switch (below(5)) {
    case 0: return element_wise(x);
    case 1: return movement(x);
    case 2: return heavy(x);
    case 3:
    case 4: return idiom(x);
  }
}

Graph Builder::build() {
  std::vector<Shape> shapes = {{2, 4, 5, 5}, {2, 4, 5, 5}, {2, 3, 6}, {4, 6}};
  for (size_t i = 0; i < 1 + below(3); ++i)
    values_.push_back(graph_.add_input("x", {DType::f32, one_of(shapes), {}}));
  for (size_t i = 0, steps = 5 + below(25); i < steps; ++i) step();
  std::vector<std::vector<NodeId>> users = graph_.users();
  for (ValueId value : values_)
    if (users[static_cast<size_t>(value.index)].empty() && graph_.def(value) && below(4))
      graph_.add_output(value, "y" + std::to_string(value.index));
  graph_.add_output(one_of(values_), "extra");
  return std::move(graph_);
}

}  // namespace

Graph random_graph(unsigned seed) { return Builder(seed).build(); }

}  // namespace tw::test
