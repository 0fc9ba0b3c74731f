// The text form of graphs: golden text, round trips of random graphs, errors with their place,
// hashes.
#include <cstring>

#include "tests/ir/graph_testing.h"
#include "tests/ir/random_graph.h"

namespace tw {
namespace {
using namespace tw::test;

constexpr const char* kDigits = R"(graph @digits(batch) {
  %image: f32[batch, 1, 8, 8] = input
  %w: f32[2, 1, 1, 1] = const [1.5, -2]
  %b: f32[2] = const [0, 1e-07]
  %"conv out": f32[batch, 2, 8, 8] = conv(%image, %w, %b) strides=[1,1] dilations=[1,1] pads=[0,0,0,0] node="/c1" source="Conv"
  %relu: f32[batch, 2, 8, 8] = unary(%"conv out") function=neg
  %flat: f32[batch, 128] = reshape(%relu) shape=[batch,128]
  %top: i64[batch] = arg_reduce(%flat) axis=1 keep=false
  output %top as "label"
  output %flat
}
)";

std::string parse_error(const std::string& text) { return error_of(parse_graph(text, "g.tw")); }
std::string line_error(const std::string& line) {
  return parse_error("graph @g(n) {\n%x: f32[2, 3] = input\n" + line + "\n}");
}

}  // namespace

TEST_CASE("a graph prints as it was written") {
  Graph graph = must(parse_graph(kDigits));
  CHECK(print(graph) == kDigits);
  CHECK(graph.name == "digits");
  CHECK(graph.node(NodeId{0}).name == "/c1");
  CHECK(graph.node(NodeId{0}).source == "Conv");
  CHECK(graph.outputs()[0].name == "label");
  CHECK(values(graph.constant_tensor(graph.node(NodeId{0}).inputs[1])) ==
        std::vector<double>{1.5, -2});
}

TEST_CASE("random graphs: parse(print(x)) is x, and computes the same") {
  std::map<size_t, int> seen;
  for (unsigned seed = 0; seed < 150; ++seed) {
    RandomGraph random(seed);
    Graph graph = random.make(14);
    REQUIRE(error_of(verify(graph)) == "no error");
    std::string text = print(graph);
    CAPTURE(text);
    Graph again = must(parse_graph(text, "", constants_of(graph)));
    CHECK(print(again) == text);
    CHECK(graph_hash(again) == graph_hash(graph));
    for (NodeId id : graph.order()) ++seen[graph.node(id).attrs.index()];
    if (seed % 5) continue;
    std::vector<Tensor> inputs = random.inputs(graph, 2);
    Expected<std::vector<Tensor>> first = evaluate(graph, inputs), second = evaluate(again, inputs);
    REQUIRE(static_cast<bool>(first) == static_cast<bool>(second));
    if (first)
      for (size_t i = 0; i < first->size(); ++i) CHECK((*first)[i].bytes == (*second)[i].bytes);
    // both divide by zero
    else CHECK(error_text(first.takeError()) == error_text(second.takeError()));
  }
  CHECK(seen.size() == kOpCount - 2);  // all operators but those with regions (regions_test.cpp)
}

TEST_CASE("an axis that counts from the end is one from the front in a graph") {
  const Graph graph = must(
      parse_graph("graph @g() {\n  %x: f32[4, 10] = input\n  %y: f32[4, 10] = softmax(%x) axis=-1\n"
                  "  %z: f32[4, 20] = concat(%x, %y) axis=-1\n  output %z\n}\n"));
  const std::vector<NodeId> order = graph.order();
  CHECK(std::get<op::Softmax>(graph.node(order[0]).attrs).axis == 1);
  CHECK(std::get<op::Concat>(graph.node(order[1]).attrs).axis == 1);
}

TEST_CASE("an axis before the first one is refused") {
  Expected<Graph> graph = parse_graph(
      "graph @g() {\n  %x: f32[4] = input\n  %y: f32[4] = softmax(%x) axis=-2\n  output %y\n}\n");
  REQUIRE(!graph);
  CHECK(error_text(graph.takeError()).find("axis -2 of a tensor of rank 1") != std::string::npos);
}

TEST_CASE("every prefix of a graph's text is an error, not a crash") {
  std::string text = kDigits;
  for (size_t size = 0; size + 2 < text.size(); ++size)
    CHECK(parse_error(text.substr(0, size)) != "no error");
}

TEST_CASE("damaged text parses to a valid graph or an error") {
  std::mt19937 rng(7);
  auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng); };
  std::string words = kDigits;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kDigits;
    for (size_t k = 0; k <= pick(3); ++k) {
      size_t at = pick(text.size()), length = 1 + pick(8), from = pick(words.size());
      if (pick(2)) text.replace(at, 1, 1, static_cast<char>(pick(256)));
      else text.replace(at, length, words.substr(from, 1 + pick(8)));
    }
    CAPTURE(text);
    Expected<Graph> graph = parse_graph(text);
    if (!graph) CHECK_FALSE(error_text(graph.takeError()).empty());
    else CHECK(error_of(verify(*graph)) == "no error");
  }
}

TEST_CASE("constants: inline when they read back, by hash otherwise") {
  auto line_of = [](const Tensor& t, bool parses = true) {
    Graph graph;
    ValueId id = graph.add_constant("c", t);
    graph.add_output(id, "c");
    std::string text = print(graph);
    Expected<Graph> again = parse_graph(text, "", constants_of(graph));
    CHECK(must(std::move(again)).constant_tensor(ValueId{0}).bytes == t.bytes);
    CHECK(parse_error(text).empty() == false);
    CHECK((parse_error(text) == "no error") == parses);
    return text.substr(text.find("= ") + 2, text.find('\n', text.find("= ")) - text.find("= ") - 2);
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK(line_of(tensor(DType::f32, {4}, {0.1, -0.0, kInf, -kInf})) == "const [0.1, -0, inf, -inf]");
  CHECK(line_of(tensor(DType::f64, {}, {0.1})) == "const [0.1]");
  CHECK(line_of(tensor(DType::bf16, {1}, {3.14159})) == "const [3.140625]");
  CHECK(line_of(ints(DType::u64, {1}, {-1})) == "const [18446744073709551615]");
  CHECK(line_of(ints(DType::i64, {1}, {std::numeric_limits<int64_t>::min()})) ==
        "const [-9223372036854775808]");
  CHECK(line_of(ints(DType::boolean, {2}, {1, 0})) == "const [1, 0]");
  CHECK(line_of(Tensor::zeros(DType::i8, {0, 5})) == "const []");
  CHECK(line_of(Tensor::zeros(DType::i8, {17}), false).find("const #\"") == 0);
  Tensor payload = Tensor::zeros(DType::f32, {1});
  uint32_t odd_nan = 0x7fc12345;
  std::memcpy(payload.bytes.data(), &odd_nan, 4);
  CHECK(line_of(payload, false).find("const #\"") == 0);
}

TEST_CASE("parse errors have a place and say what is accepted") {
  CHECK(line_error("%y: f32[2, 3] = unary(%z) function=exp") ==
        "g.tw:3:24: %z is not defined above");
  CHECK(line_error("%y: f32[2, 4] = unary(%x) function=exp") ==
        "g.tw:3:17: type f32[2, 4], but the operator gives f32[2, 3]");
  CHECK(line_error("%y: f33[2, 4] = unary(%x)") == "g.tw:3:5: unknown dtype 'f33'");
  CHECK(line_error("%y: f32[2, 3] = softmax(%x) axes=1") ==
        "g.tw:3:29: softmax has no attribute 'axes'");
  CHECK(line_error("%y: f32[2, 3] = reduce(%x) kind=median")
            .find("g.tw:3:33: expected one of sum mean max min prod, found 'median'") == 0);
  CHECK(line_error("%y: f32[2, 3] = softmix(%x)")
            .find("g.tw:3:17: unknown operator 'softmix', expected one of unary binary") == 0);
  CHECK(line_error("%y: f32[2] = matmul(%x, %x)") ==
        "g.tw:3:14: matmul 'y': input 1 (b): 2 rows, expected 3");
  CHECK(line_error("%x: f32[1] = input") == "g.tw:3:2: %x is defined twice");
  CHECK(line_error("%y: f32[m] = input") == "g.tw:3:2: symbol 'm' is not declared in the header");
  CHECK(line_error("%y: f32[2] = const #\"00\"") ==
        "g.tw:3:21: the bytes of constant #\"00\" are not known");
  CHECK(line_error("%y: i8[1] = const [300]") == "g.tw:3:20: 300 is not a i8");
  CHECK(line_error("%y: f32[n] = const [1]").find("a constant cannot be f32[n]") !=
        std::string::npos);
  CHECK(line_error("%y: f32[1000000, 1000000, 1000000] = input").find("2^44") != std::string::npos);
  CHECK(line_error("output _").find("an output needs a value") != std::string::npos);
  CHECK(line_error("%y: f32[2, 3] = pad(%x, _) mode=edge begins=[0,0] ends=[0,0]") == "no error");
  CHECK(line_error("%y: f32[" + std::string(100000, '(')).find("nested deeper") !=
        std::string::npos);
  CHECK(line_error("%y: f32[n // 0, 3] = input") ==
        "g.tw:3:5: dim n // 0 has a divisor that may be 0 or negative");
  CHECK(line_error("%y: i64[1] = dim_vector() values=[3 % (n - 1)]").find("may be 0") !=
        std::string::npos);
  CHECK(parse_error("graph @g(n, n) {}").find("symbol 'n' is listed twice") == 0);
  CHECK(parse_error("graph @g() {} x").find("expected the end of the text") != std::string::npos);
}

TEST_CASE("the hash ignores inner names, and sees structure, types, attributes and content") {
  std::string text = kDigits;
  auto hash_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    for (size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
      changed.replace(at, from.size(), to);
    CHECK(changed != text);
    return graph_hash(must(parse_graph(changed)));
  };
  std::string hash = graph_hash(must(parse_graph(text)));
  CHECK(hash.size() == 64);
  CHECK(hash_with("%relu", "%other") == hash);
  CHECK(hash_with("node=\"/c1\"", "") == hash);
  CHECK(hash_with("1.5", "1.25") != hash);
  CHECK(hash_with("function=neg", "function=abs") != hash);
  CHECK(hash_with("%image", "%picture") != hash);
  CHECK(hash_with("label", "class") != hash);
}

TEST_CASE("attributes: equality and what is written") {
  CHECK(print_attrs(op::Conv{{1, 2}, {1, 1}, {0, 0, 0, 0}, 4}) ==
        " strides=[1,2] dilations=[1,1] pads=[0,0,0,0] group=4");
  CHECK(print_attrs(op::Unary{UnaryOp::neg}) == " function=neg");
  CHECK(print_attrs(op::Softmax{}) == "");
  CHECK(print_attrs(op::LayerNorm{1, 1e-12}) == " axis=1 epsilon=1e-12");
  CHECK(equal(OpAttrs(op::Reshape{{var("n"), 2}}), OpAttrs(op::Reshape{{var("n"), 2}})));
  CHECK_FALSE(equal(OpAttrs(op::Reshape{{var("n"), 2}}), OpAttrs(op::Reshape{{var("m"), 2}})));
  CHECK_FALSE(equal(OpAttrs(op::ShapeOf{}), OpAttrs(op::Select{})));
  OpAttrs bound = bind_symbols(OpAttrs(op::Reshape{{var("n") * 2, var("m")}}), {{"n", 3}});
  CHECK(print_attrs(bound) == " shape=[6,m]");
}

}  // namespace tw
