// Containers, types, broadcasting, order, symbolic inference, verification and evaluation of
// graphs.
#include <algorithm>

#include "ir/graph/macs.h"
#include "tests/ir/graph_testing.h"

namespace tw {
namespace {
using namespace tw::test;

const Expr kBatch = var("batch"), kSeq = var("seq");
TensorType f32(Shape shape) { return {DType::f32, std::move(shape), {}}; }
op::Conv conv2d(Ints strides, Ints dilations, Ints pads, int64_t group = 1) {
  return {std::move(strides), std::move(dilations), std::move(pads), group};
}

}  // namespace

TEST_CASE("types print, compare modulo simplify, and have a physical shape") {
  TensorType t{DType::f32, {kBatch, 20, 56}, {1, 16}};
  CHECK(to_string(t) == "f32[batch, 20, 56]@1:16");
  CHECK(to_string(physical_shape(t)) == "[batch, 2, 56, 16]");
  CHECK(equal(Shape{kBatch * 2 + kBatch}, Shape{3 * kBatch}));
  CHECK_FALSE(equal(Shape{kBatch}, Shape{kSeq}));
  CHECK_FALSE(equal(Shape{1}, Shape{1, 1}));
  CHECK(to_string(f32({})) == "f32[]");
  CHECK(is_const(element_count(Shape{}), 1));
  CHECK(is_const(element_count(Shape{kBatch, 0}), 0));
  CHECK_FALSE(static_shape({kBatch, 1}).has_value());
  CHECK(error_of(check_type(f32({int64_t{1} << 30, int64_t{1} << 30}))).find("2^44") !=
        std::string::npos);
  CHECK(error_of(check_type(f32({-1}))).find("negative") != std::string::npos);
  CHECK(error_of(check_type(f32({0, int64_t{1} << 31}))) == "no error");
  CHECK(error_of(check_type(f32({0, int64_t{1} << 34}))).find("no elements") != std::string::npos);
}

TEST_CASE("sizes of symbols are refused where the smallest values alone are too much") {
  const auto too_large = [](const Shape& shape) {
    return error_of(check_type(f32(shape))).find("2^4") != std::string::npos;
  };
  const Expr large = kBatch * Expr(int64_t{1} << 40);
  CHECK_FALSE(too_large({large}));
  CHECK(too_large({large * Expr(2)}));
  CHECK(too_large({kBatch * Expr(INT64_MAX)}));
  CHECK(too_large({large, kSeq, kBatch * 32}));
  CHECK_FALSE(too_large({large, kSeq, kBatch * 16}));
  CHECK_FALSE(too_large({floor_div(large * Expr(1024), 4096), kSeq}));
  CHECK_FALSE(too_large({kBatch - 5, min(kSeq, Expr(1000000000))}));
}

TEST_CASE("broadcasting follows numpy; a symbol against 1 takes the symbol") {
  auto text = [](const Shape& a, const Shape& b) {
    Expected<Shape> out = broadcast_shapes(a, b);
    return out ? to_string(*out) : error_text(out.takeError());
  };
  CHECK(text({3, 1}, {4}) == "[3, 4]");
  CHECK(text({kBatch, 1, 3}, {kSeq, 1}) == "[batch, seq, 3]");
  CHECK(text({}, {2, 0}) == "[2, 0]");
  CHECK(text({0}, {1}) == "[0]");
  CHECK(text({kBatch}, {4}) == "shapes [batch] and [4] do not broadcast: batch against 4");
  CHECK(text({2, 3}, {2}) == "shapes [2, 3] and [2] do not broadcast: 3 against 2");
}

TEST_CASE("names are unique, symbols are collected, nodes are ordered before their users") {
  Graph graph;
  ValueId x = graph.add_input("x", f32({kBatch, kSeq, kBatch}));
  CHECK(graph.symbols == std::vector<std::string>{"batch", "seq"});
  ValueId y = must(graph.add(op::Unary{UnaryOp::exp}, {x}, "x"));
  ValueId z = must(graph.add(op::Unary{UnaryOp::neg}, {y}));
  graph.add_output(z, "z");
  CHECK(graph.value(y).name == "x_1");
  CHECK(graph.value(z).name == "v2");
  ValueId late = must(graph.add(op::Unary{UnaryOp::abs}, {y}, "late"));
  NodeId z_node = graph.value(z).def, late_node = graph.value(late).def;
  graph.set_input(z_node, 0, late);  // x -> exp -> abs -> neg
  CHECK(graph.order() == std::vector<NodeId>{graph.value(y).def, late_node, z_node});
  CHECK(error_of(verify(graph)) == "no error");
  CHECK(graph.users()[static_cast<size_t>(y.index)] == std::vector<NodeId>{late_node});
  graph.replace_uses(late, y);
  graph.erase(late_node);
  CHECK(graph.order().size() == 2);
  graph.replace_uses(z, y);
  graph.erase(z_node);
  CHECK(graph.outputs()[0].value == y);
  CHECK(graph.outputs()[0].name == "z");
  CHECK(graph.def(x) == nullptr);
}

TEST_CASE("verify finds every broken invariant") {
  auto broken = [](auto change) {
    Graph graph;
    ValueId x = graph.add_input("x", f32({kBatch, 4}));
    ValueId w = graph.add_constant("w", tensor(DType::f32, {4}, {1, 2, 3, 4}));
    ValueId a = must(graph.add(op::Binary{BinaryOp::add}, {x, w}, "a", "add1"));
    ValueId b = must(graph.add(op::Unary{UnaryOp::exp}, {a}, "b", "exp1"));
    graph.add_output(b, "b");
    REQUIRE(error_of(verify(graph)) == "no error");
    change(graph, x, w, a, b);
    return error_of(verify(graph));
  };
  using G = Graph;
  using V = ValueId;
  CHECK(broken([](G& g, V, V, V a, V b) { g.set_input(g.value(a).def, 0, b); }) ==
        "unary 'exp1' is on a cycle through 'a'");
  CHECK(broken([](G& g, V, V, V a, V) {
          g.value(a).type.dtype = DType::f64;
        }).find("binary 'add1': 'a' is f64[batch, 4], but the operator gives f32[batch, 4]") == 0);
  CHECK(broken([](G& g, V, V, V a, V) { g.value(a).name = "b"; }) == "two values are called 'b'");
  CHECK(broken([](G& g, V, V, V a, V) { g.node(g.value(a).def).inputs.pop_back(); }) ==
        "binary 'add1': 1 inputs, expected 2");
  CHECK(broken([](G& g, V, V, V a, V) { g.node(g.value(a).def).inputs[0] = V{}; }) ==
        "binary 'add1': input 0 is absent");
  CHECK(broken([](G& g, V, V, V a, V) { g.node(g.value(a).def).inputs[0] = V{99}; }) ==
        "binary 'add1' refers to no value");
  CHECK(broken([](G& g, V, V w, V, V) { g.value(w).constant->bytes = {}; }) ==
        "constant 'w' of f32[4] has 0 bytes");
  CHECK(broken([](G& g, V, V, V a, V) {
          g.node(g.value(a).def).erased = true;
        }).find("the node that makes 'a' is erased") != std::string::npos);
  CHECK(broken([](G& g, V, V, V, V) {
          g.symbols.clear();
        }).find("symbol 'batch' is not one of the graph's") != std::string::npos);
  CHECK(broken([](G& g, V, V, V a, V) { g.add_output(a, "b"); }) == "two outputs are called 'b'");
}

TEST_CASE("conv and pool infer symbolic extents") {
  TensorType w = f32({8, 3, 3, 3});
  CHECK(infer_text(conv2d({2, 2}, {1, 1}, {1, 1, 1, 1}), {f32({kBatch, 3, 224, 224}), w}) ==
        "f32[batch, 8, 112, 112]");
  std::string symbolic = infer_text(conv2d({2, 1}, {1, 1}, {1, 1, 1, 1}),
                                    {f32({kBatch, 3, var("h"), var("w")}), w});
  CHECK(symbolic ==
        "f32[batch, 8, " + to_string(simplify_dim(floor_div(var("h") - 1, 2) + 1)) + ", w]");
  Ints ones{1, 1}, zeros{0, 0, 0, 0};
  CHECK(infer_text(op::ConvTranspose{{2, 2}, ones, {1, 1, 1, 1}, {1, 0}, 1},
                   {f32({kBatch, 8, 4, 4}), w}) == "f32[batch, 3, 8, 7]");
  CHECK(infer_text(op::Pool{PoolKind::max, {2, 2}, {2, 2}, ones, zeros, true, false},
                   {f32({kBatch, 8, 5, 6})}) == "f32[batch, 8, 3, 3]");
  // A window that would begin in the end padding is dropped.
  CHECK(infer_text(op::Pool{PoolKind::max, {3, 3}, {3, 3}, ones, {1, 1, 1, 1}, true, false},
                   {f32({1, 1, 2, 2})}) == "f32[1, 1, 1, 1]");
}

TEST_CASE("inference by symbols: matmul, reshape, concat, slice, expand, gather, pad, reduce") {
  CHECK(infer_text(op::MatMul{}, {f32({kBatch, kSeq, 768}), f32({768, 64})}) ==
        "f32[batch, seq, 64]");
  CHECK(infer_text(op::MatMul{false, true},
                   {f32({kBatch, 12, kSeq, 64}), f32({kBatch, 12, kSeq, 64})}) ==
        "f32[batch, 12, seq, seq]");
  CHECK(infer_text(op::Reshape{{kBatch, kSeq, 12, 64}}, {f32({kBatch, kSeq, 768})}) ==
        "f32[batch, seq, 12, 64]");
  CHECK(infer_text(op::Reshape{{kBatch * kSeq, 768}}, {f32({kBatch, kSeq, 768})}).find("768]") !=
        std::string::npos);
  CHECK(infer_text(op::Reshape{{kBatch * (kSeq + 1)}}, {f32({kBatch, kSeq + 1})}).find("f32[") ==
        0);
  CHECK(infer_text(op::Reshape{{kBatch, 767}}, {f32({kBatch, 768})})
            .find("cannot be reshaped to [batch, 767]") != std::string::npos);
  CHECK(infer_text(op::Concat{1}, {f32({kBatch, kSeq}), f32({kBatch, 1})}) ==
        "f32[batch, " + to_string(simplify_dim(kSeq + 1)) + "]");
  CHECK(infer_text(op::Slice{{0, kSeq - 1}, {1, -1}, {kBatch, kSeq}}, {f32({kBatch, kSeq})}) ==
        "f32[batch, seq]");
  CHECK(infer_text(op::Expand{{kBatch, 3, kSeq}}, {f32({3, 1})}) == "f32[batch, 3, seq]");
  CHECK(infer_text(op::Gather{1}, {f32({kBatch, 30, 8}), {DType::i64, {kSeq, 2}, {}}}) ==
        "f32[batch, seq, 2, 8]");
  CHECK(infer_text(op::Pad{PadMode::edge, {0, 1}, {0, 2}}, {f32({kBatch, kSeq})}) ==
        "f32[batch, " + to_string(simplify_dim(kSeq + 3)) + "]");
  CHECK(infer_text(op::Reduce{ReduceKind::mean, {1}, false}, {f32({kBatch, kSeq})}) ==
        "f32[batch]");
  CHECK(infer_text(op::ShapeOf{}, {f32({kBatch, kSeq})}) == "i64[2]");
  CHECK(infer_text(op::DimVector{{kBatch}, true}, {}) == "i64[]");
}

TEST_CASE("errors name the input and what would be accepted") {
  Ints ones{1, 1}, zeros{0, 0, 0, 0};
  TensorType x = f32({1, 16, 8, 8}), w = f32({8, 3, 3, 3});
  CHECK(infer_text(conv2d(ones, ones, zeros), {x, w}) ==
        "input 1 (weights): 3 channels, expected 16");
  CHECK(infer_text(conv2d(ones, ones, zeros, 3), {f32({1, 9, 8, 8}), w}) ==
        "input 1 (weights): 8 output channels, expected a multiple of the group count 3");
  CHECK(infer_text(conv2d({}, ones, zeros), {f32({1, 3, 8, 8}), w}) ==
        "strides has 0 entries, expected 2");
  CHECK(infer_text(conv2d({1, 0}, ones, zeros), {f32({1, 3, 8, 8}), w}) ==
        "strides has an entry of 0, expected 1 to 2^20");
  CHECK(infer_text(conv2d(ones, {4, 4}, zeros), {f32({1, 3, 8, 8}), w}) ==
        "spatial axis 0: a window of 9 on an extent of 8 with pads 0 and 0");
  CHECK(infer_text(conv2d(ones, ones, zeros), {f32({1, 3, 8, 8}), w, f32({7})}) ==
        "input 2 (bias): 7 elements, expected 8");
  CHECK(infer_text(conv2d(ones, ones, zeros), {f32({1, 3}), w}) ==
        "input 0 (x): rank 2 of f32[1, 3], expected at least 3");
  CHECK(infer_text(op::MatMul{}, {f32({2, 3}), f32({4, 5})}) == "input 1 (b): 4 rows, expected 3");
  CHECK(infer_text(op::Binary{BinaryOp::add}, {f32({2}), {DType::i32, {2}, {}}}) ==
        "input 1 (b): i32, expected f32");
  CHECK(infer_text(op::Binary{BinaryOp::logical_and}, {f32({2}), f32({2})}) ==
        "logical_and of f32, expected bool");
  CHECK(infer_text(op::Unary{UnaryOp::exp}, {{DType::i32, {2}, {}}}) ==
        "input 0 (x): exp of i32, expected a float type");
  CHECK(infer_text(op::Concat{0}, {f32({2, 3}), f32({2, 4})}) ==
        "input 1 (x): axis 1 of f32[2, 4], expected 3");
  CHECK(infer_text(op::Slice{{0}, {2}, {3}}, {f32({4})}) == "axis 0: index 4 of an extent of 4");
  CHECK(infer_text(op::Transpose{{0, 0}}, {f32({2, 3})}) ==
        "perm is not a permutation of 0 to 1: entry 0");
  CHECK(infer_text(op::Softmax{3}, {f32({2})}) == "axis 3 of a tensor of rank 1");
  CHECK(infer_text(op::Expand{{int64_t{1} << 40, int64_t{1} << 40}}, {f32({1})}).find("2^44") !=
        std::string::npos);
  Graph graph;
  ValueId a = graph.add_input("a", f32({2}));
  CHECK(error_of(graph.add(op::MatMul{}, {a, a}, "y", "/fc/MatMul")) ==
        "matmul '/fc/MatMul': input 0 (a): rank 1 of f32[2], expected at least 2");
}

TEST_CASE("operators are logical; only a cast is about layouts") {
  TensorType blocked{DType::f32, {1, 32, 8, 8}, {1, 16}};
  CHECK(infer_text(op::LayoutCast{1, 16}, {f32({1, 32, 8, 8})}) == "f32[1, 32, 8, 8]@1:16");
  CHECK(infer_text(op::LayoutCast{1, 8}, {blocked}) == "f32[1, 32, 8, 8]@1:8");
  CHECK(infer_text(op::LayoutCast{}, {blocked}) == "f32[1, 32, 8, 8]");
  CHECK(infer_text(op::LayoutCast{4, 8}, {blocked}) == "axis 4 of a tensor of rank 4");
  CHECK(infer_text(op::Binary{BinaryOp::add}, {blocked, f32({1, 32, 8, 8})}) == "f32[1, 32, 8, 8]");
  Graph graph = must(parse_graph(
      "graph @g() { %x: f32[1, 4] = input %b: f32[1, 4]@1:8 = layout_cast(%x) axis=1 block=8"
      " %y: f32[1, 4]@1:8 = unary(%b) function=exp output %y }"));
  CHECK(error_of(verify(graph)) == "no error");
  CHECK(
      error_of(parse_graph(
          "graph @g() { %x: f32[1, 4] = input %b: f32[1, 4] = layout_cast(%x) axis=1 block=8 }")) !=
      "no error");
}

TEST_CASE("evaluate binds symbols by the inputs and checks shapes") {
  Graph graph;
  ValueId x = graph.add_input("x", f32({kBatch, 2}));
  ValueId y = graph.add_input("y", f32({kBatch, 2}));
  ValueId sum = must(graph.add(op::Binary{BinaryOp::add}, {x, y}, "sum"));
  ValueId flat = must(graph.add(op::Reshape{{2 * kBatch}}, {sum}, "flat"));
  ValueId dims = must(graph.add(op::DimVector{{kBatch, kBatch * 2}, false}, {}, "dims"));
  graph.add_output(flat, "flat");
  graph.add_output(dims, "dims");
  graph.add_output(x, "same");
  REQUIRE(error_of(verify(graph)) == "no error");
  Tensor a = tensor(DType::f32, {2, 2}, {1, 2, 3, 4}),
         b = tensor(DType::f32, {2, 2}, {10, 20, 30, 40});
  std::vector<std::string> kept;
  std::vector<Tensor> out = must(evaluate(graph, {a, b}, [&](ValueId id, const Tensor&) -> Error {
    kept.push_back(graph.value(id).name);
    return Error::success();
  }));
  CHECK(out[0].shape == std::vector<int64_t>{4});
  CHECK(values(out[0]) == std::vector<double>{11, 22, 33, 44});
  CHECK(values(out[1]) == std::vector<double>{2, 4});
  CHECK(values(out[2]) == values(a));
  CHECK(kept == std::vector<std::string>{"sum", "flat", "dims"});
  CHECK(error_of(evaluate(graph, {a})) == "1 inputs given, the graph has 2");
  CHECK(error_of(evaluate(graph, {a, tensor(DType::f32, {1, 2}, {1, 2})})) ==
        "input 'y' has shape [1, 2], expected f32[batch, 2]");
  CHECK(error_of(evaluate(graph, {a, tensor(DType::f64, {2, 2}, {1, 2, 3, 4})})) ==
        "input 'y' is f64, expected f32[batch, 2]");
  Tensor none = Tensor::zeros(DType::f32, {0, 2});
  CHECK(error_of(evaluate(graph, {none, none})) ==
        "input 'x' has shape [0, 2]: symbol batch is at least 1");
  CHECK(error_of(evaluate(graph, {a, tensor(DType::f32, {4}, {1, 2, 3, 4})})) ==
        "input 'y' has shape [4], expected f32[batch, 2]");
}

TEST_CASE("macs counts convolutions and matrix products") {
  Graph graph;
  ValueId x = graph.add_input("x", f32({1, 64, 56, 56}));
  ValueId w = graph.add_input("w", f32({128, 32, 3, 3}));
  ValueId y = must(graph.add(conv2d({1, 1}, {1, 1}, {1, 1, 1, 1}, 2), {x, w}));
  CHECK(macs(graph, *graph.def(y)) == int64_t{128} * 56 * 56 * 32 * 9);
  ValueId a = graph.add_input("a", f32({5, 7, 3})), b = graph.add_input("b", f32({7, 4}));
  ValueId m = must(graph.add(op::MatMul{true, false}, {a, b}));
  CHECK(macs(graph, *graph.def(m)) == 5 * 3 * 4 * 7);
  CHECK(macs(graph, *graph.def(must(graph.add(op::Unary{}, {a})))) == 0);
  ValueId s = graph.add_input("s", f32({kBatch, 4})), t = graph.add_input("t", f32({4, 4}));
  const ValueId product = must(graph.add(op::MatMul{}, {s, t}));
  CHECK(macs(graph, *graph.def(product)) == 0);  // 0: the batch is free
  CHECK(to_string(simplify_dim(mac_count(graph, *graph.def(product)))) == "batch * 16");
}

TEST_CASE("sizes are simplified by the limits of symbols, in types and attributes") {
  Graph graph;
  graph.limits["n.1"] = {5, 6, 1};
  const Expr n = var("n.1"), half = floor_div(n + 1, 2);
  const ValueId x = graph.add_input("x", f32({n, half + 3}));
  CHECK(graph.symbols == std::vector<std::string>{"n.1"});
  CHECK(to_string(graph.value(x).type) == "f32[n.1, 6]");
  // Both reshapes keep the number of elements. Only the limits show it, by which (n + 1) // 2 + 3
  // is 6.
  const ValueId row = must(graph.add(op::Reshape{{n * 6}}, {x}));
  const ValueId back = must(graph.add(op::Reshape{{n, half * 2}}, {row}, "back"));
  CHECK(to_string(graph.value(back).type) == "f32[n.1, 6]");
  CHECK(print(graph).find("shape=[n.1,6]") != std::string::npos);
  graph.add_output(must(graph.add(op::Binary{BinaryOp::add}, {back, x})), "y");
  CHECK(error_of(verify(graph)) == "no error");
  CHECK(print(must(parse_graph(print(graph)))) == print(graph));
  // Without limits in the graph, simplify_dim knows only those that it is given.
  graph.limits.clear();
  CHECK(is_const(simplify_dim(half, {{"n.1", {5, 6, 1}}}), 3));
  CHECK_FALSE(is_const(simplify_dim(half, {{"n.1", {5, 7, 1}}}), 3));
  CHECK_FALSE(is_const(simplify_dim(half), 3));
}

}  // namespace tw
