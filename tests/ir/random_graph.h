// Small random graphs: every operator, symbolic batch, odd names, inline and hashed constants. A
// node that does not type-check is dropped, so the graph is always valid.
#pragma once
#include <random>

#include "ir/graph/externs.h"
#include "support/hash.h"

namespace tw::test {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : rng_(seed) {}

  Graph make(int nodes) {
    graph_ = Graph();
    graph_.name = pick(0, 1) ? "net" : "a \"quoted\" name";
    Expr batch = pick(0, 1) ? var("batch") : Expr(2);
    values_ = {graph_.add_input("image", {DType::f32, {batch, 4, pick(4, 6), 5}, {}}),
               graph_.add_input("/in:0", {DType::f32, {batch, 6}, {}}),
               graph_.add_input("ids", {DType::i64, {batch, 3}, {}})};
    for (int tries = 0; tries < nodes * 4 && static_cast<int>(graph_.node_count()) < nodes; ++tries)
      step();
    for (int i = 0; i < 3; ++i) graph_.add_output(any(), "out" + std::to_string(i));
    return std::move(graph_);
  }
  std::vector<Tensor> inputs(const Graph& graph, int64_t batch) {
    std::vector<Tensor> out;
    for (ValueId id : graph.inputs()) {
      const TensorType& type = graph.value(id).type;
      Tensor t = Tensor::zeros(type.dtype,
                               *static_shape(bind_symbols(type.shape, {{"batch", batch}})));
      for (int64_t i = 0; i < t.size(); ++i)
        t.set(i, static_cast<double>(type.dtype == DType::i64 ? pick(0, 3) : pick(-9, 9)));
      out.push_back(std::move(t));
    }
    return out;
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }
  ValueId any() {
    return values_[static_cast<size_t>(pick(0, static_cast<int64_t>(values_.size()) - 1))];
  }
  const TensorType& type(ValueId id) { return graph_.value(id).type; }
  int64_t extent(ValueId id, size_t axis) {
    return axis < type(id).shape.size() ? as_const(type(id).shape[axis]).value_or(1) : 1;
  }
  ValueId constant(DType dtype, std::vector<int64_t> shape, int64_t low = -4, int64_t high = 4) {
    Tensor t = Tensor::zeros(dtype, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i)
      t.set(i, static_cast<double>(pick(low, high)) * (is_float(dtype) ? 0.37 : 1));
    return graph_.add_constant(pick(0, 3) ? "weights" : "", t);
  }
  Ints list(size_t count, int64_t low, int64_t high) {
    Ints out(count);
    for (int64_t& v : out) v = pick(low, high);
    return out;
  }
  void add(OpAttrs attrs, std::vector<ValueId> inputs) {
    constexpr const char* kNames[] = {
        "", "value", "/layer.0/Conv output", "7", "tab\there", "%percent", "input", "batch"};
    const char* name = kNames[pick(0, 7)];
    Expected<ValueId> id = graph_.add(std::move(attrs), std::move(inputs), name,
                                      pick(0, 1) ? "" : "node \"x\"", pick(0, 1) ? "" : "Conv");
    if (id) values_.push_back(*id);
    else llvm::consumeError(id.takeError());
  }
  template <class E>
  E word(int count) {
    return static_cast<E>(pick(0, count - 1));
  }

  void step() {
    ValueId x = any();
    Shape shape = type(x).shape;
    size_t rank = shape.size();
    int64_t last = static_cast<int64_t>(rank) - 1;
    Shape zeros(rank, Expr(0));
    switch (pick(0, 33)) {
      case 0: return add(op::Unary{word<UnaryOp>(kUnaryOpCount)}, {x});
      case 1:
        return add(op::Binary{word<BinaryOp>(kBinaryOpCount)},
                   {x, pick(0, 1) ? any() : constant(type(x).dtype, {}, 1, 3)});
      case 2:
        return add(op::Select{}, {constant(DType::boolean, {1}, 0, 1), x, pick(0, 1) ? any() : x});
      case 3: return add(op::Cast{word<DType>(kArithmeticDTypeCount), pick(0, 1) == 1}, {x});
      case 4:
        return add(op::Conv{list(2, 1, 2), list(2, 1, 2), list(4, 0, 2), pick(1, 2)},
                   {x, constant(DType::f32, {4, pick(1, 2) * 2, 2, 3}), constant(DType::f32, {4})});
      case 5:
        return add(op::ConvTranspose{list(2, 1, 2), {1, 1}, {0, 0, 0, 0}, list(2, 0, 1), 2},
                   {x, constant(DType::f32, {4, 1, 2, 2})});
      case 6:
        return add(op::MatMul{false, pick(0, 1) == 1},
                   {x, constant(type(x).dtype, {extent(x, rank - 1), extent(x, rank - 1)})});
      case 7:
        return add(op::Pool{word<PoolKind>(3),
                            list(2, 1, 3),
                            list(2, 1, 2),
                            {1, 1},
                            list(4, 0, 1),
                            pick(0, 1) == 1,
                            pick(0, 1) == 1},
                   {x});
      case 8:
        return add(
            op::Reduce{word<ReduceKind>(5), {pick(0, std::max<int64_t>(last, 0))}, pick(0, 1) == 1},
            {x});
      case 9:
        return add(op::ArgReduce{pick(0, 1) == 1, last, pick(0, 1) == 1, pick(0, 1) == 1}, {x});
      case 10: return add(op::Softmax{last, pick(0, 1) == 1, pick(0, 1) == 1}, {x});
      case 11:
        return add(op::LayerNorm{last, 0.1, pick(0, 1) == 1},
                   {x, constant(DType::f32, {extent(x, rank - 1)})});
      case 12: {
        ValueId scale = constant(DType::f32, {extent(x, 1)}, 1, 4);
        return add(op::BatchNorm{}, {x, scale, scale, scale, scale});
      }
      case 13: {
        Ints perm(rank);
        for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), rng_);
        return add(op::Transpose{perm}, {x});
      }
      case 14: return add(op::Reshape{{element_count(shape)}}, {x});
      case 15: shape.insert(shape.begin(), pick(1, 3)); return add(op::Expand{shape}, {x});
      case 16: return add(op::Concat{last}, {x, any(), x});
      case 17: {
        if (rank == 0 || !as_const(shape.back())) return;
        zeros.back() = extent(x, rank - 1) - 1;
        Ints steps(rank, 1);
        steps.back() = -1;
        return add(op::Slice{zeros, steps, shape}, {x});
      }
      case 18: return add(op::Gather{pick(0, 1)}, {x, constant(DType::i64, {2}, 0, 1)});
      case 19: return add(op::Pad{word<PadMode>(4), zeros, Shape(rank, Expr(pick(0, 2)))}, {x});
      case 20:
        for (size_t i = 2; i < rank; ++i) shape[i] = 7;
        return add(op::Resize{word<ResizeMode>(3), word<CoordinateMode>(5), word<NearestMode>(4),
                              -0.5, std::vector<double>(rank, 1.5), shape},
                   {x});
      case 21: return add(op::ShapeOf{}, {x});
      case 22: return add(op::DimVector{shape, false}, {});
      case 23: return add(op::LayoutCast{pick(0, 1), pick(0, 2) * 4}, {x});
      case 24: {
        op::Recurrent a;
        a.kind = word<RecurrentKind>(3);
        a.f = word<GateFunction>(11);
        a.alphas = {0.5, 0, 0.25};
        a.clip = pick(0, 1);
        a.reverse = pick(0, 1) == 1;
        a.states = pick(0, 1) == 1;
        return add(a, {constant(DType::f32, {3, 2, a.gates() * 2}),
                       constant(DType::f32, {1, a.gates() * 2, 2}),
                       pick(0, 1) ? constant(DType::f32, {1, a.gates() * 4}) : ValueId{}});
      }
      case 25:
        return add(op::Quantize{pick(0, 1) ? DType::i8 : DType::u8, last},
                   {x, constant(DType::f32, {extent(x, rank - 1)}, 1, 3)});
      case 26:
        return add(op::Dequantize{last}, {x, constant(DType::f32, {}, 1, 3),
                                          pick(0, 1) ? constant(type(x).dtype, {}) : ValueId{}});
      case 27:
        return add(op::Extern{ExternFunction::topk, {last, pick(0, 1), 1}, {}, {Expr(1)}}, {x});
      case 28: {
        if (rank == 0) return;
        Ints places(rank, -1);
        for (size_t i = 0; i + 1 < rank; ++i) places[i] = static_cast<int64_t>(i);
        shape.back() = 3;
        return add(op::Take{places, pick(0, 1) == 1, shape},
                   {x, constant(pick(0, 1) ? DType::i64 : DType::i32, {3}, 0, 1)});
      }
      case 30:
        return add(op::Cumulate{pick(0, 1) ? ReduceKind::sum : ReduceKind::prod, last,
                                pick(0, 1) == 1, pick(0, 1) == 1},
                   {x});
      case 33: {
        const ValueId places = constant(DType::i64, {4}, 0, 3);
        return add(op::Within{{Expr(0), Expr(3)}, "place"}, {places});
      }
      case 29: return rank == 0 ? void() : add(op::Iota{shape, last}, {});
      case 32:
        return add(op::Lookup{}, {pick(0, 1) ? x : constant(DType::u8, {2, 3}, 0, 255),
                                  constant(pick(0, 1) ? DType::i8 : DType::f32, {256})});
      case 31:
        return add(op::MatMulNBits{4, 16, pick(0, 1) == 1},
                   {x, constant(DType::u8, {3, (extent(x, rank - 1) + 15) / 16, 8}, 0, 255),
                    constant(DType::f32, {3, (extent(x, rank - 1) + 15) / 16}),
                    constant(DType::f32, {3, (extent(x, rank - 1) + 15) / 16})});
    }
  }

  std::mt19937 rng_;
  Graph graph_;
  std::vector<ValueId> values_;
};

// Returns a lookup of the graph's constants by content hash, for parse_graph.
inline ConstantLookup constants_of(const Graph& graph) {
  std::map<std::string, Blob, std::less<>> blobs;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<int32_t>(i)});
    if (!value.constant) continue;
    blobs[short_hash({reinterpret_cast<const char*>(value.constant->bytes.data()),
                      value.constant->bytes.size()})] = *value.constant;
  }
  return [blobs](std::string_view hash, const TensorType&) {
    auto it = blobs.find(hash);
    return it == blobs.end() ? std::nullopt : std::optional<Blob>(it->second);
  };
}

}  // namespace tw::test
