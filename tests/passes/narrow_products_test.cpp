// narrow-products rounds operands, so it has no place in run_pass.h.
#include <doctest/doctest.h>

#include "passes/pass.h"
#include "passes/precision.h"
#include "random_graph.h"

using namespace tw;

namespace {

Graph parsed(const char* text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

Target target_of(const char* intrinsic_semantics) {
  Target target;
  target.name = "chip";
  target.triple = "x86_64-linux-gnu";
  target.vector_bits = 512;
  if (!*intrinsic_semantics) return target;
  Intrinsic dot;
  dot.name = "dot";
  dot.rate = 1;
  dot.semantics = intrinsic_semantics;
  target.intrinsics.push_back(dot);
  return target;
}

const char* const kDot = R"(kernel @dot(a: in bf16[2], b: in bf16[32], c: out f32[16]) {
    for j in 16 { for k in 2 reduce { c: c[j] += f32(a[k]) * f32(b[j * 2 + k]) } }
  })";

bool narrow(Graph& graph, std::set<std::string> exact = {}) {
  Target target = target_of(kDot);
  target.precision = Precision::bf16;
  PassContext context{target};
  context.exact = std::move(exact);
  Expected<bool> changed = find_pass("narrow-products")->run(graph, context);
  REQUIRE(bool(changed));
  REQUIRE(error_text(verify(graph)) == "");
  return *changed;
}

std::string after(const char* before) {
  Graph graph = parsed(before);
  narrow(graph);
  return print(graph);
}

}  // namespace

TEST_CASE("narrow-products multiplies bf16, and element-wise readers read the same bf16") {
  CHECK(after(R"(graph @t() {
    %x: f32[2, 2] = input
    %w: f32[2, 2] = const [1, 2, 3, 4.001]
    %a: f32[2, 2] = unary(%x) function=abs
    %b: f32[2, 2] = matmul(%a, %w)
    %c: f32[2, 2] = binary(%a, %b) function=add
    output %c
  })") == print(parsed(R"(graph @t() {
    %x: f32[2, 2] = input
    %w_bf16: bf16[2, 2] = const [1, 2, 3, 4]
    %a: f32[2, 2] = unary(%x) function=abs
    %b_x_bf16: bf16[2, 2] = cast(%a) to=bf16
    %b_x: f32[2, 2] = cast(%b_x_bf16) to=f32
    %b_w: f32[2, 2] = cast(%w_bf16) to=f32
    %b: f32[2, 2] = matmul(%b_x, %b_w)
    %c_wide: f32[2, 2] = cast(%b_x_bf16) to=f32
    %c: f32[2, 2] = binary(%c_wide, %b) function=add
    output %c
  })")));
}

TEST_CASE("narrow-products leaves what callers and other readers see in f32") {
  const std::string text = after(R"(graph @t() {
    %x: f32[2, 2] = input
    %w: f32[2, 2] = const [1, 2, 3, 4]
    %a: f32[2, 2] = unary(%x) function=abs
    %b: f32[2, 2] = matmul(%a, %w)
    %c: f32[2, 2] = binary(%a, %b) function=add
    output %a
    output %c
  })");
  CHECK(text.find("%c: f32[2, 2] = binary(%a, %b)") != std::string::npos);
}

TEST_CASE("narrow-products leaves products of two computed operands and depthwise convolutions") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[2, 2] = input
    %i: f32[1, 2, 3, 3] = input
    %w: f32[2, 1, 1, 1] = const [1, 2]
    %a: f32[2, 2] = matmul(%x, %x)
    %b: f32[1, 2, 3, 3] = conv(%i, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0] group=2
    output %a
    output %b
  })");
  CHECK_FALSE(narrow(graph));
}

TEST_CASE("narrow-products rounds the operands of attention's products, and softmax stays in f32") {
  const char* const attention = R"(graph @t() {
    %q: f32[2, 48, 4] = input
    %k: f32[2, 5, 4] = input
    %v: f32[2, 5, 4] = input
    %s: f32[2, 48, 5] = matmul(%q, %k) trans_b=true
    %p: f32[2, 48, 5] = softmax(%s) axis=2
    %y: f32[2, 48, 4] = matmul(%p, %v)
    output %y
  })";
  const std::string text = after(attention);
  for (const char* operand : {"%q", "%k", "%p", "%v"})
    CHECK(text.find(std::string("cast(") + operand + ") to=bf16") != std::string::npos);
  CHECK(text.find("%s: f32[2, 48, 5] = matmul(%s_rounded") != std::string::npos);
  CHECK(text.find("softmax(%s)") != std::string::npos);
  Graph graph = parsed(attention);
  CHECK_FALSE(narrow(graph, {"y"}));
}

TEST_CASE("narrow-products leaves attention of few queries and of free sizes") {
  Graph few = parsed(R"(graph @t() {
    %q: f32[2, 47, 4] = input
    %k: f32[2, 64, 4] = input
    %v: f32[2, 64, 4] = input
    %s: f32[2, 47, 64] = matmul(%q, %k) trans_b=true
    %p: f32[2, 47, 64] = softmax(%s) axis=2
    %y: f32[2, 47, 4] = matmul(%p, %v)
    output %y
  })");
  CHECK_FALSE(narrow(few));
  Graph graph = parsed(R"(graph @t(n) {
    %q: f32[2, n, 4] = input
    %k: f32[2, n, 4] = input
    %v: f32[2, n, 4] = input
    %s: f32[2, n, n] = matmul(%q, %k) trans_b=true
    %p: f32[2, n, n] = softmax(%s) axis=2
    %y: f32[2, n, 4] = matmul(%p, %v)
    output %y
  })");
  CHECK_FALSE(narrow(graph));
}

TEST_CASE("narrow-products computes random graphs with the rounding of bf16") {
  int changed = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    auto before = evaluate(graph, inputs);
    if (!narrow(graph)) continue;
    ++changed;
    auto narrowed = evaluate(graph, inputs);
    REQUIRE(bool(before));
    REQUIRE(bool(narrowed));
    for (size_t i = 0; i < before->size(); ++i)
      if (is_float((*before)[i].dtype))
        CHECK(test::relative_difference((*narrowed)[i], (*before)[i]) < 0.05);
  }
  CHECK(changed > 5);
}

TEST_CASE("narrow-products leaves layers that are to be exact") {
  const char* const text = R"(graph @t() {
    %x: f32[2, 2] = input
    %w: f32[2, 2] = const [1, 2, 3, 4]
    %a: f32[2, 2] = matmul(%x, %w)
    %b: f32[2, 2] = matmul(%a, %w)
    output %b
  })";
  Graph graph = parsed(text);
  CHECK(narrow(graph, {"a"}));
  const std::string changed = print(graph);
  CHECK(changed.find("%a: f32[2, 2] = matmul(%x, %w)") != std::string::npos);
  CHECK(changed.find("%b: f32[2, 2] = matmul(%b_x, %b_w)") != std::string::npos);
  Graph whole = parsed(text);
  CHECK_FALSE(narrow(whole, {"a", "b"}));
}

TEST_CASE("a precision comes to what the target can") {
  Target able = target_of(kDot), unable = target_of("");
  CHECK(precision_of(able) == Precision::fp32);
  able.precision = unable.precision = Precision::automatic;
  CHECK(precision_of(able) == Precision::bf16);
  CHECK(precision_of(unable) == Precision::fp32);
  for (const Precision any : {Precision::automatic, Precision::bf16}) {
    unable.precision = any;
    CHECK(error_text(check_precision(unable)) == "");
  }
  unable.precision = Precision::fp16;
  CHECK(error_text(check_precision(unable)).find("no instruction that widens f16") !=
        std::string::npos);
  unable.features = {"f16c"};
  CHECK(error_text(check_precision(unable)) == "");
}

TEST_CASE("narrow-products keeps weights alone short where nothing else is read") {
  Target target = target_of("");
  target.precision = Precision::fp16;
  PassContext context{target};
  Graph graph = parsed(R"(graph @t() {
    %i: i64[3] = input
    %x: f32[1, 2] = input
    %z: f32[3, 2] = input
    %t: f32[4, 2] = const [1, 2, 3, 4, 5, 6, 7, 8.001]
    %w: f32[2, 2] = const [1, 2, 3, 4.001]
    %big: f32[2, 2] = const [1, 2, 3, 1e6]
    %a: f32[3, 2] = gather(%t, %i) axis=0 clamp=false
    %b: f32[1, 2] = matmul(%x, %w)
    %c: f32[3, 2] = matmul(%z, %w)
    %d: f32[1, 2] = matmul(%b, %big)
    output %a
    output %c
    output %d
  })");
  Expected<bool> changed = find_pass("narrow-products")->run(graph, context);
  REQUIRE(bool(changed));
  REQUIRE(error_text(verify(graph)) == "");
  const std::string text = print(graph);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has("%t_f16: f16[4, 2] = const"));
  CHECK(has("%a: f32[3, 2] = cast(%a_short)"));
  CHECK(has("%b: f32[1, 2] = matmul(%x, %b_w)"));
  CHECK(has("%c: f32[3, 2] = matmul(%z, %w)"));
  CHECK(has("%d: f32[1, 2] = matmul(%b, %big)"));
  CHECK(context.narrowed.size() == 2);
}
