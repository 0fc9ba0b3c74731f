// Symbolic dimensions: kept, bound, and carried through shape arithmetic.
#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

Model import_ok(const std::string& graph, const ImportOptions& options = {}, int opset = 17) {
  Expected<Model> model = import_bytes(graph_bytes(graph, opset), options);
  if (!model) FAIL(error_text(model.takeError()));
  if (Error error = verify(model->graph)) FAIL(error_text(std::move(error)));
  return std::move(*model);
}

// Returns the type of the first output, with the model's names for sizes.
std::string output_type(const Model& model) {
  const TensorType& type = model.graph.value(model.graph.outputs()[0].value).type;
  std::string text;
  for (const Expr& extent : type.shape)
    text += (text.empty() ? "[" : ", ") + to_string(extent, model.symbol_names);
  return std::string(dtype_name(type.dtype)) + text + "]";
}

bool has_op(const Graph& graph, const std::string& name) {
  for (NodeId id : graph.order())
    if (op_info(graph.node(id).attrs).name == name) return true;
  return false;
}

TEST_CASE("symbols stay through a convolutional network") {
  const Model model = import_ok(R"(g (float[batch,1,8,8] image) => (float[batch,10] y)
    <float[4,1,3,3] w = {1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1}, float[10,4] f =
    {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> {
      c = Conv<pads = [1, 1, 1, 1]>(image, w)
      r = Relu(c)
      p = GlobalAveragePool(r)
      f0 = Flatten(p)
      l = Gemm<transB = 1>(f0, f)
      y = Softmax(l)
    })");
  CHECK(output_type(model) == "f32[batch, 10]");
  CHECK(model.graph.symbols == std::vector<std::string>{"batch.1"});
}

TEST_CASE("sizes that are equal for some sizes of the inputs alone: a run looks at them") {
  const std::string up = R"(g (float[1,2,H,W] x) => (float[1,C,h,w] y) <float[4] s = {1,1,2,2}> {
      p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
      u = Resize<mode = "nearest">(p, , s)
      y = )";
  for (const char* last : {"Add(u, x) }", "Concat<axis = 1>(x, u) }"}) {
    const Model model = import_ok(up + last);
    CHECK(print(model.graph).find("exact=true") != std::string::npos);
  }
  CHECK(output_type(import_ok(up + "Add(u, x) }")) == "f32[1, 2, H, W]");
  // Once bound, the sizes are known.
  CHECK_FALSE(has_op(import_ok(up + "Add(u, x) }", {{{"H", 4}, {"W", 6}}}).graph, "expand"));
  CHECK(error_of(graph_bytes(up + "Add(u, x) }"), {{{"H", 5}, {"W", 6}}}).find("4 against 5") !=
        std::string::npos);
  // 3 N and 2 N are never equal.
  CHECK(error_of(graph_bytes("g (float[N] x) => (float[M] y) { c = Concat<axis = 0>(x, x, x)\n"
                             "p = Concat<axis = 0>(x, x) y = Add(c, p) }"),
                 {})
            .find("do not broadcast") != std::string::npos);
}

TEST_CASE("--dim binds symbols; a name that the model does not have is an error") {
  const std::string graph = "g (float[batch,seq] x) => (float[batch,seq] y) { y = Relu(x) }";
  CHECK(output_type(import_ok(graph, {{{"batch", 4}}})) == "f32[4, seq]");
  CHECK(output_type(import_ok(graph, {{{"batch", 0}}})) == "f32[0, seq]");
  const std::string error = error_of(graph_bytes(graph), {{{"bath", 4}, {"seq", -1}}});
  CHECK(error.find("no free dimension 'bath'\n  note: did you mean 'batch'?\n"
                   "  note: free dimensions: batch (x[0]), seq (x[1])") != std::string::npos);
  CHECK(error.find("dimension 'seq' cannot be -1") != std::string::npos);
}

TEST_CASE("errors name sizes as the model does") {
  const std::string error = error_of(
      graph_bytes("g (float[n,4] x) => (float[M] y) <int64[1] s = {7}> { y = Reshape(x, s) }"));
  CHECK(error.find("f32[n, 4] cannot be reshaped to [7]: n * 4 elements, expected 7") !=
        std::string::npos);
}

TEST_CASE("--dim with limits: what follows from them is known to the importer and to the graph") {
  ImportOptions options;
  options.limits["n"] = {5, 6, 1};
  const Model model = import_ok(R"(g (float[n,7,n] x) => (float[a,b,c,d] y)
    <int64[1] axis = {1}, int64[6] pads = {0, 0, 0, 0, 0, 3}> {
      p = MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)
      q = Pad(p, pads)
      y = Unsqueeze(q, axis)
    })",
                                options);
  CHECK(output_type(model) == "f32[n, 1, 7, 6]");
  CHECK(model.graph.limits.at("n.1").least == 5);
  CHECK(model.graph.limits.at("n.1").most == 6);
}

TEST_CASE("a size that is called as a loop is another name than the loop's") {
  const Model model = import_ok("g (float[n,c] x) => (float[n,c] y) { y = Relu(x) }");
  CHECK(output_type(model) == "f32[n, c]");
  for (const std::string& symbol : model.graph.symbols)
    CHECK((symbol != interface_name(symbol) && least_of(symbol) == 1));
}

TEST_CASE("names that name no size: each such dimension is one of its own") {
  const std::string graph = "g (float[n,n,m,m] x) => (float[n,n,m,m] y) { y = Relu(x) }";
  for (const char* name : {"?", "-1"}) {
    onnx::ModelProto model;
    REQUIRE(model.ParseFromString(graph_bytes(graph)));
    auto& dims = *model.mutable_graph()
                      ->mutable_input(0)
                      ->mutable_type()
                      ->mutable_tensor_type()
                      ->mutable_shape();
    for (int axis : {0, 1}) dims.mutable_dim(axis)->set_dim_param(name);
    Expected<Model> own = import_bytes(model.SerializeAsString(), {{{"x[1]", 5}}});
    if (!own) FAIL(error_text(own.takeError()));
    CHECK(output_type(*own) == "f32[x[0], 5, m, m]");
  }
}

TEST_CASE("unnamed dimensions get a symbol, strange names become identifiers") {
  onnx_bytes(
      "<ir_version: 8, opset_import: [\"\": 17]> g (float[N] x) => (float[N] y) { y = Relu(x) }");
  CHECK(output_type(import_ok("g (float[?,3] in) => (float[?,3] y) { y = Relu(in) }")) ==
        "f32[in[0], 3]");
  const std::string unnamed = "g (float[?,3] in) => (float[?,3] y) { y = Relu(in) }";
  for (const char* name : {"in_0", "in[0]"})
    CHECK(output_type(import_ok(unnamed, {{{name, 2}}})) == "f32[2, 3]");
  CHECK(import_ok(unnamed).symbol_names == SymbolNames{{"in_0.1", "in[0]"}});
  CHECK(import_ok(unnamed, {{{"in_0", 2}}}).dims == std::map<std::string, int64_t>{{"in[0]", 2}});
  CHECK(error_of(graph_bytes(unnamed), {{{"in[1]", 3}}}).find("'in[1]' is 3: it is not free") !=
        std::string::npos);
  CHECK(error_of(graph_bytes(unnamed), {{{"in[2]", 3}}}).find("input 'in' has in[0] to in[1]") !=
        std::string::npos);
  CHECK(error_of(graph_bytes(unnamed), {{{"in[0]", 3}, {"in_0", 3}}})
            .find("'in[0]' is given twice") != std::string::npos);
}

TEST_CASE("an identifier means the dimension whose name it is, then one whose name becomes it") {
  const std::vector<TensorSpec> inputs = {
      {"x", DType::f32, {var("a.b"), var("a_b"), Expr(3), Expr(), var("past + 1")}},
      {"y", DType::f32, {var("k 1")}}};
  const auto name = [&](const char* text) {
    Expected<std::string> found = find_dim(text, inputs);
    return found ? *found : error_text(found.takeError());
  };
  CHECK(name("a_b") == "a_b");
  CHECK(name("a.b") == "a.b");
  CHECK(name("x[0]") == "a.b");
  CHECK(name("k_1") == "k 1");
  CHECK(name("past + 1") == "past + 1");
  CHECK(name("x[3]") == "the dimension 'x[3]' follows from others: it is not free");
  CHECK(name("x[two]").find("there is no dimension 'x[two]'") == 0);
  CHECK(name("z[0]").find("no free dimension 'z[0]'") != std::string::npos);
  CHECK(to_string(var("s") * 2 + var("t"), {{"s", "past + 1"}, {"t", "a.b"}}) ==
        "'past + 1' * 2 + a.b");
  CHECK(to_string(var("s"), {{"s", "past + 1"}}) == "past + 1");
  CHECK(to_string(var("k.0"), SymbolNames()) == "k");
}

TEST_CASE("shape arithmetic folds into dim expressions") {
  // Exporters write x.reshape(batch, seq * 4) like this.
  const Model model = import_ok(R"(g (float[batch,seq,2,2] x) => (float[M,N] y)
    <int64 zero = {0}, int64 one = {1}, int64 four = {4}, int64[1] first = {0}> {
      s = Shape(x)
      b = Gather(s, zero)
      t = Gather(s, one)
      m = Mul(t, four)
      b1 = Unsqueeze(b, first)
      m1 = Unsqueeze(m, first)
      c = Concat<axis = 0>(b1, m1)
      y = Reshape(x, c)
    })");
  const Shape& shape = model.graph.value(model.graph.outputs()[0].value).type.shape;
  REQUIRE(shape.size() == 2);
  const auto env = [](std::string_view name) {
    return name == "batch.1" ? int64_t{3} : int64_t{5};
  };
  CHECK(eval_int(shape[0], env) == 3);
  CHECK(eval_int(shape[1], env) == 20);
  CHECK(model.graph.node_count() == 1);  // the arithmetic left no nodes
}

TEST_CASE("-1 in Reshape with symbols") {
  CHECK(output_type(import_ok("g (float[batch,4,6] x) => (float[M,N] y) <int64[2] s = {0, -1}> { y "
                              "= Reshape(x, s) }")) == "f32[batch, 24]");
  CHECK(output_type(import_ok("g (float[batch,4,6] x) => (float[M,N] y) <int64[2] s = {-1, 24}> { "
                              "y = Reshape(x, s) }")) == "f32[batch, 24]");
  CHECK(output_type(import_ok("g (float[batch,4,6] x) => (float[M,N] y) <int64[3] s = {2, 2, -1}> "
                              "{ y = Reshape(x, s) }"))
            .find("batch") != std::string::npos);
}

TEST_CASE("expand as exporters write it: where(shape == -1, ones, shape)") {
  const Model model = import_ok(R"(g (float[batch,3] x, float[1,3] c) => (float[M,N] y)
    <int64 three = {3}, int64[1] first = {0}, int64[2] minus = {-1, -1}, int64[2] ones = {1, 1}, int64[1] t3 = {3}> {
      s = Shape(x)
      b = Gather(s, first)
      shape = Concat<axis = 0>(b, t3)
      eq = Equal(shape, minus)
      w = Where(eq, ones, shape)
      y = Expand(c, w)
    })");
  CHECK(output_type(model) == "f32[batch, 3]");
}

TEST_CASE("a shape used as data becomes a node") {
  const Model model = import_ok(
      "g (float[batch,3] x) => (int64[2] y) { s = Shape(x) y = Identity(s) }");
  CHECK(has_op(model.graph, "dim_vector"));
  Expected<std::vector<Tensor>> out = evaluate(model.graph, {floats({2, 3}, {0, 0, 0, 0, 0, 0})});
  REQUIRE(out);
  CHECK(out->front().int_at(0) == 2);
  CHECK(out->front().int_at(1) == 3);
  const Model cast = import_ok(
      "g (float[batch,3] x) => (float[2] y) { s = Shape(x) y = Cast<to = 1>(s) }");
  Expected<std::vector<Tensor>> values = evaluate(cast.graph, {floats({2, 3}, {0, 0, 0, 0, 0, 0})});
  REQUIRE(values);
  CHECK(values->front().at(0) == 2.0);
}

TEST_CASE("slices of symbolic axes") {
  const Model last = import_ok(
      "g (float[batch,seq] x) => (float[M,N] y) <int64[1] s = {-1}, int64[1] e = "
      "{9223372036854775807}, int64[1] a = {1}> { y = Slice(x, s, e, a) }");
  CHECK(output_type(last) == "f32[batch, 1]");
  Expected<std::vector<Tensor>> out = evaluate(last.graph, {floats({2, 3}, {0, 1, 2, 3, 4, 5})});
  REQUIRE(out);
  CHECK(out->front().at(0) == 2);
  CHECK(out->front().at(1) == 5);
}

TEST_CASE("Resize by an integer scale, Tile and Split of symbolic axes") {
  const Model resize = import_ok(
      "g (float[batch,3,h,w] x) => (float[M,N,O,P] y) <float[4] s = {1, 1, 2, 2}> { y = Resize(x, "
      ", s) }");
  const Shape& shape = resize.graph.value(resize.graph.outputs()[0].value).type.shape;
  CHECK(eval_int(shape[2], [](std::string_view) { return int64_t{7}; }) == 14);
  const Model split = import_ok(
      "g (float[batch,6] x) => (float[batch,2] y) { a, b, y = Split<axis = 1>(x) }");
  CHECK(output_type(split) == "f32[batch, 2]");
}

TEST_CASE("names come from the model and are unique; inputs stay though unused") {
  const Model model = import_ok(
      "g (float[2] a, float[2] unused) => (float[2] out) { [first] mid = Gelu(a) [second] out = "
      "Relu(mid) }",
      {}, 20);
  CHECK(model.graph.inputs().size() == 2);
  CHECK(model.graph.outputs()[0].name == "out");
  bool seen = false;
  for (NodeId id : model.graph.order()) {
    const Node& node = model.graph.node(id);
    seen = seen || (node.name == "first" && node.source == "Gelu");
  }
  CHECK(seen);
  CHECK(model.op_counts.at("Gelu") == 1);
  CHECK(model.name == "m");
  CHECK(model.sha256.size() == 64);
  CHECK(model.opset == 20);
}

TEST_CASE("initializers that are inputs too are constants; unused domains are ignored") {
  const std::string bytes = onnx_bytes(R"(<ir_version: 3, opset_import: ["": 9, "com.nobody": 7]>
    g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {3, 4}> { y = Mul(x, w) })");
  CHECK(run_model(bytes, {floats({2}, {1, 2})}).front() == std::vector<double>{3, 8});
}

}  // namespace
}  // namespace tw::test
