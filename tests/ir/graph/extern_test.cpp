// Functions of the runtime library: nodes of several outputs as text, in order and in checks; and
// results of the functions against values by hand.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/graph/externs.h"
#include "tests/ir/graph_testing.h"

namespace tw {
namespace {
using namespace tw::test;

constexpr const char* kTop = R"(graph @g(n) {
  %x: f32[n, 5] = input
  %v: f32[n, 3], %i: i64[n, 3], %s: i64[6] = extern(%x) function=topk ints=[1,1,1] dims=[3]
  %y: f32[n, 3] = unary(%v) function=neg
  output %i
  output %y
}
)";

std::vector<Tensor> run(ExternFunction function, Ints ints,
                        const std::vector<const Tensor*>& inputs, Shape dims = {}) {
  const op::Extern call{function, std::move(ints), {}, std::move(dims)};
  std::vector<TensorType> types(inputs.size());
  std::vector<const TensorType*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) types[i] = type_of(*inputs[i]);
    pointers.push_back(inputs[i] ? &types[i] : nullptr);
  }
  return must(evaluate_node(call, must(infer_types(call, pointers)), inputs));
}

}  // namespace

TEST_CASE("a node of several outputs prints as it was written, and evaluates") {
  Graph graph = must(parse_graph(kTop));
  CHECK(print(graph) == kTop);
  CHECK(graph.node(NodeId{0}).extra.size() == 2);
  CHECK(graph_hash(graph) == graph_hash(must(parse_graph(print(graph)))));
  std::vector<Tensor> out = must(
      evaluate(graph, {tensor(DType::f32, {2, 5}, {3, 9, 1, 9, 4, -1, -2, -3, -1, -5})}));
  CHECK(values(out[0]) == std::vector<double>{1, 3, 4, 0, 3, 1});
  CHECK(values(out[1]) == std::vector<double>{-9, -9, -4, 1, 1, 2});
}

TEST_CASE("nodes of several outputs are checked") {
  auto error = [](std::string line) {
    return error_of(parse_graph("graph @g() {\n%x: f32[4] = input\n" + line + "\n}", "g.tw"));
  };
  CHECK(error("%v: f32[2], %i: i64[2] = extern(%x) function=topk ints=[0,1,1] dims=[2]")
            .find("2 values, but the operator gives 3") != std::string::npos);
  CHECK(error("%v: f32[2], %i: i32[2], %s: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]")
            .find("type i32[2], but the operator gives i64[2]") != std::string::npos);
  CHECK(
      error("%v: f32[5], %i: i64[5], %s: i64[10] = extern(%x) function=topk ints=[0,1,1] dims=[5]")
          .find("k is 5") != std::string::npos);
  CHECK(error("%v: f32[2], %v: i64[2], %s: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]")
            .find("defined twice") != std::string::npos);
  CHECK(error("%a: f32[2], %b: f32[2] = input").find("operator") != std::string::npos);
  CHECK(error("%a: f32[4] = extern(%x) function=scatter_elements ints=[0,0]").find("inputs") !=
        std::string::npos);
}

TEST_CASE("topk: ties, smallest, NaN, another axis, halves") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor(DType::f32, {5}, {2, nan, -0.0, 0, 7});
  CHECK(values(run(ExternFunction::topk, {0, 1, 1}, {&x}, {5})[1]) ==
        std::vector<double>{1, 4, 0, 2, 3});
  CHECK(values(run(ExternFunction::topk, {0, 0, 1}, {&x}, {4})[1]) ==
        std::vector<double>{2, 3, 0, 4});
  const Tensor m = tensor(DType::f16, {3, 2}, {1, 6, 3, 5, 2, 4});
  CHECK(values(run(ExternFunction::topk, {0, 1, 1}, {&m}, {2})[0]) ==
        std::vector<double>{3, 6, 2, 5});
  const Tensor u = ints(DType::u64, {3}, {-1, 5, 7});  // -1 is the largest u64
  CHECK(values(run(ExternFunction::topk, {0, 1, 1}, {&u}, {1})[1]) == std::vector<double>{0});
  const Tensor i = ints(DType::i8, {4}, {-128, 127, 0, -1});
  CHECK(values(run(ExternFunction::topk, {0, 1, 1}, {&i}, {4})[1]) ==
        std::vector<double>{1, 2, 3, 0});
}

TEST_CASE("topk agrees with a full sort") {
  Tensor x = ramp({1, 997}, 331, 499);
  for (int64_t k : {1, 2, 7, 500, 997}) {
    const std::vector<Tensor> made = run(ExternFunction::topk, {1, 1, 1}, {&x}, {Expr(k)});
    std::vector<int64_t> order(997);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return x.at(a) > x.at(b); });
    for (int64_t i = 0; i < k; ++i) REQUIRE(made[1].int_at(i) == order[static_cast<size_t>(i)]);
  }
}

TEST_CASE("scatter: reductions, types, negative and bad indices") {
  const Tensor data = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
               updates = tensor(DType::f32, {2, 2}, {10, 20, 30, 40});
  const Tensor at = ints(DType::i64, {2, 2}, {0, -1, 2, 2});
  CHECK(values(run(ExternFunction::scatter_elements, {1, 0}, {&data, &at, &updates})[0]) ==
        std::vector<double>{10, 2, 20, 4, 5, 40});
  CHECK(values(run(ExternFunction::scatter_elements, {1, 1}, {&data, &at, &updates})[0]) ==
        std::vector<double>{11, 2, 23, 4, 5, 76});
  CHECK(values(run(ExternFunction::scatter_elements, {1, 2}, {&data, &at, &updates})[0]) ==
        std::vector<double>{10, 2, 60, 4, 5, 7200});
  const Tensor bad = ints(DType::i32, {2, 2}, {0, 1, 3, 0});
  const op::Extern call{ExternFunction::scatter_elements, {1, 0}, {}, {}};
  CHECK(error_of(evaluate_node(call, {type_of(data)}, {&data, &bad, &updates}))
            .find("index 3 of an extent of 3") != std::string::npos);
  const Tensor bytes = ints(DType::i8, {3}, {-5, 100, 7}),
               more = ints(DType::i8, {3}, {1, 100, -9}), places = ints(DType::i64, {3}, {0, 1, 2});
  CHECK(values(run(ExternFunction::scatter_elements, {0, 1}, {&bytes, &places, &more})[0]) ==
        std::vector<double>{-4, -56, -2});
  CHECK(values(run(ExternFunction::scatter_elements, {0, 3}, {&bytes, &places, &more})[0]) ==
        std::vector<double>{1, 100, 7});
  CHECK(values(run(ExternFunction::scatter_elements, {0, 4}, {&bytes, &places, &more})[0]) ==
        std::vector<double>{-5, 100, -9});
  const Tensor pairs = ints(DType::i64, {2, 1}, {-1, 0});
  const Tensor rows = tensor(DType::f32, {2, 3}, {7, 8, 9, 1, 1, 1});
  CHECK(values(run(ExternFunction::scatter_nd, {3}, {&data, &pairs, &rows})[0]) ==
        std::vector<double>{1, 2, 3, 7, 8, 9});
}

TEST_CASE("halves and bfloat16 add as floats do and round once") {
  for (DType t : {DType::f16, DType::bf16, DType::f64}) {
    Tensor data = Tensor::zeros(t, {200}), updates = Tensor::zeros(t, {200}),
           places = Tensor::zeros(DType::i64, {200});
    for (int64_t i = 0; i < 200; ++i)
      data.set(i, i * 0.37 - 20), updates.set(i, i * i * 0.001 + 1e-3), places.set_int(i, i);
    const Tensor sum = run(ExternFunction::scatter_elements, {0, 1}, {&data, &places, &updates})[0];
    for (int64_t i = 0; i < 200; ++i) {
      Tensor want = Tensor::zeros(t, {1});
      want.set(0, data.at(i) + updates.at(i));
      CHECK(sum.at(i) == want.at(0));
    }
  }
}

TEST_CASE("probabilities of classes from those of pairs") {
  // These pairs agree with 0.5, 0.3 and 0.2 for the three classes.
  const Tensor agree = tensor(DType::f32, {1, 3}, {0.625, 5.0 / 7, 0.6});
  const Tensor made = run(ExternFunction::class_probabilities, {3}, {&agree})[0];
  for (int64_t i = 0; i < 3; ++i)
    CHECK(std::abs(made.at(i) - std::array{0.5, 0.3, 0.2}[static_cast<size_t>(i)]) < 5e-3);
  const Tensor two = tensor(DType::f32, {2, 1}, {0.5, 0.875});
  const Tensor both = run(ExternFunction::class_probabilities, {2}, {&two})[0];
  CHECK(both.at(0) == 0.5);
  CHECK(std::abs(both.at(2) - 0.875) < 5e-3);
  CHECK(std::abs(both.at(2) + both.at(3) - 1) < 1e-6);
  const op::Extern call{ExternFunction::class_probabilities, {4}, {}, {}};
  const TensorType three = type_of(agree);
  CHECK(error_of(infer_types(call, {&three})).find("pairs of classes") != std::string::npos);
}

TEST_CASE("selecting by the data: what is found, how many, zeros behind") {
  const Tensor x = tensor(DType::f32, {2, 3}, {0, 2, -0.0, 3, 0, 1});
  std::vector<Tensor> made = run(ExternFunction::nonzero, {}, {&x});
  CHECK(made[1].int_at(0) == 3);
  CHECK(values(made[0]) == std::vector<double>{0, 1, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0});
  const Tensor holds = ints(DType::boolean, {2}, {0, 1});
  made = run(ExternFunction::compress, {1}, {&x, &holds});
  CHECK(values(made[0]) == std::vector<double>{2, 0, 0, 0});
  CHECK(made[1].int_at(0) == 1);
  const Tensor list = ints(DType::i32, {6}, {5, -1, 5, 3, -1, 5});
  made = run(ExternFunction::unique, {-1, 1}, {&list});
  CHECK(made[4].int_at(0) == 3);
  CHECK(values(made[0]) == std::vector<double>{-1, 3, 5, 0, 0, 0});
  CHECK(values(made[1]) == std::vector<double>{1, 3, 0, 0, 0, 0});
  CHECK(values(made[2]) == std::vector<double>{2, 0, 2, 1, 0, 2});
  CHECK(values(made[3]) == std::vector<double>{2, 1, 3, 0, 0, 0});
  made = run(ExternFunction::unique, {-1, 0}, {&list});
  CHECK(values(made[0]) == std::vector<double>{5, -1, 3, 0, 0, 0});
  CHECK(values(made[2]) == std::vector<double>{0, 1, 0, 2, 1, 0});
  const Tensor rows = ints(DType::i64, {3, 2}, {2, 1, 1, 9, 2, 1});
  made = run(ExternFunction::unique, {0, 1}, {&rows});
  CHECK(values(made[0]) == std::vector<double>{1, 9, 2, 1, 0, 0});
}

TEST_CASE("non-maximum suppression keeps the best of boxes that overlap") {
  const Tensor boxes = tensor(DType::f32, {1, 4, 4},
                              {0, 0, 1, 1, 0, 0.1, 1, 1.1, 1, 1, 0, -0.1, 0, 10, 1, 11}),
               scores = tensor(DType::f32, {1, 1, 4}, {0.9, 0.75, 0.6, 0.95});
  const Tensor most = ints(DType::i64, {1}, {3}), overlap = tensor(DType::f32, {1}, {0.5}),
               least = tensor(DType::f32, {}, {0.1});
  std::vector<Tensor> made = run(ExternFunction::non_max_suppression, {0},
                                 {&boxes, &scores, &most, &overlap, &least}, {3});
  CHECK(made[1].int_at(0) == 2);
  CHECK(values(made[0]) == std::vector<double>{0, 0, 3, 0, 0, 0, 0, 0, 0});
  CHECK(run(ExternFunction::non_max_suppression, {0}, {&boxes, &scores}, {0})[1].int_at(0) == 0);
}

TEST_CASE("random bits are the published generator's, and depend on the seed") {
  // Random123's known answers for counter 0 and key 0
  const Tensor bits = run(ExternFunction::random_bits, {0}, {}, {8})[0];
  CHECK(static_cast<uint32_t>(bits.int_at(0)) == 0x6627e8d5u);
  CHECK(static_cast<uint32_t>(bits.int_at(3)) == 0x9b00dbd8u);
  CHECK(run(ExternFunction::random_bits, {1}, {}, {8})[0].bytes != bits.bytes);
}

TEST_CASE("caches written in a circle") {
  const Tensor cache = tensor(DType::f32, {1, 3, 1}, {1, 2, 3}),
               update = tensor(DType::f32, {1, 2, 1}, {8, 9}), begin = ints(DType::i64, {1}, {2});
  CHECK(values(run(ExternFunction::tensor_scatter, {1, 1}, {&cache, &update, &begin})[0]) ==
        std::vector<double>{9, 2, 8});
}

}  // namespace tw
