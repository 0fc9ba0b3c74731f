// sign-quantization and fuse-quantization: their results for each pattern, and the values of the
// integer form against a naive reference: sums in i32, one product in f32, one rounding.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "passes/pass.h"
#include "passes/quantization/quantization.h"
#include "random_graph.h"
#include "run_pass.h"

namespace tw::test {
namespace {

// Scales are powers of two, so that float and integer arithmetic agree on every input.
TEST_CASE("sign-quantization: u8 between quantized operators becomes i8") {
  run_pass("sign-quantization", R"(graph @g() {
    %x: f32[1, 2, 4] = input
    %s: f32[] = const [0.5]
    %z: u8[] = const [100]
    %q: u8[1, 2, 4] = quantize(%x, %s, %z) to=u8
    %p: u8[1, 2, 2] = pool(%q) kind=max kernel=[2] strides=[2] dilations=[1] pads=[0,0]
    %y: f32[1, 2, 2] = dequantize(%p, %s, %z)
    %w: f32[1, 2, 4] = dequantize(%q, %s)
    output %y
    output %w
  })",
           R"(graph @g() {
    %x: f32[1, 2, 4] = input
    %s: f32[] = const [0.5]
    %q_zero: i8[] = const [-28]
    %w_zero: i8[] = const [-128]
    %y_zero: i8[] = const [-28]
    %q: i8[1, 2, 4] = quantize(%x, %s, %q_zero) to=i8
    %p: i8[1, 2, 2] = pool(%q) kind=max kernel=[2] strides=[2] dilations=[1] pads=[0,0]
    %y: f32[1, 2, 2] = dequantize(%p, %s, %y_zero)
    %w: f32[1, 2, 4] = dequantize(%q, %s, %w_zero)
    output %y
    output %w
  })");
}

TEST_CASE("keep-bytes: a product of one row reads bytes; its scale goes behind it") {
  run_pass("keep-bytes", R"(graph @g() {
    %x: f32[1, 2] = input
    %w: u8[2, 3] = const [1,2,3,4,5,6]
    %z: f32[3] = const [-1,-2,-3]
    %s: f32[1, 3] = const [0.5,2,4]
    %c: f32[2, 3] = cast(%w) to=f32
    %d: f32[2, 3] = binary(%c, %z) function=add
    %f: f32[2, 3] = binary(%s, %d) function=mul
    %y: f32[1, 3] = matmul(%x, %f)
    output %y
  })",
           R"(graph @g() {
    %x: f32[1, 2] = input
    %y_bytes: i8[2, 3] = const [0,0,0,3,3,3]
    %y_scale: f32[3] = const [0.5,2,4]
    %y_widened: f32[2, 3] = cast(%y_bytes) to=f32
    %y_of_bytes: f32[1, 3] = matmul(%x, %y_widened)
    %y: f32[1, 3] = binary(%y_of_bytes, %y_scale) function=mul
    output %y
  })");
  // The pass leaves these: many rows; a scale along the depth; weights that fit no byte without
  // their zero point
  const std::string several = R"(graph @g() {
    %x: f32[5, 2] = input
    %w: i8[2, 3] = const [1,2,3,4,5,6]
    %s: f32[] = const [0.5]
    %f: f32[2, 3] = dequantize(%w, %s)
    %y: f32[5, 3] = matmul(%x, %f)
    output %y
  })";
  const std::string depth = R"(graph @g() {
    %x: f32[1, 2] = input
    %w: i8[2, 3] = const [1,2,3,4,5,6]
    %s: f32[2, 1] = const [0.5,2]
    %c: f32[2, 3] = cast(%w) to=f32
    %f: f32[2, 3] = binary(%c, %s) function=mul
    %y: f32[1, 3] = matmul(%x, %f)
    output %y
  })";
  const std::string wide = R"(graph @g() {
    %x: f32[1, 2] = input
    %w: u8[2, 3] = const [1,2,255,4,5,6]
    %z: u8[] = const [3]
    %s: f32[] = const [0.5]
    %f: f32[2, 3] = dequantize(%w, %s, %z)
    %y: f32[1, 3] = matmul(%x, %f)
    output %y
  })";
  for (const std::string& graph : {several, depth, wide})
    run_pass("keep-bytes", graph.c_str(), graph.c_str());
}

TEST_CASE("keep-bytes: up to four rows read bytes, by the most that a size can be") {
  Target target = baseline_target(Arch::x86_64);
  target.l2_bytes = 16;
  const auto kept = [&](const std::string& symbols, const std::string& x, const std::string& y,
                        const std::string& weights, const std::string& product) {
    Expected<Graph> graph = parse_graph("graph @g(" + symbols + ") {\n  %x: f32[" + x +
                                        "] = input\n  %w: i8[" + weights +
                                        "] = const [1,2,3,4,5,6,7,8]\n  %s: f32[] = const [0.5]\n"
                                        "  %f: f32[" +
                                        weights + "] = dequantize(%w, %s)\n  %y: f32[" + y +
                                        "] = " + product + "\n  output %y\n}\n");
    if (!graph) FAIL(error_text(graph.takeError()));
    PassContext context{target};
    if (Error error = run_passes(*graph, context, {"fold-constants", "keep-bytes"}))
      FAIL(error_text(std::move(error)));
    return print(*graph).find("i8[" + weights + "]") != std::string::npos;
  };
  const auto product = [&](const std::string& symbols, const std::string& rows) {
    return kept(symbols, rows + ", 2", rows + ", 4", "2, 4", "matmul(%x, %f)");
  };
  CHECK(product("", "4"));
  CHECK(product("", "2, 2"));
  CHECK(!product("", "5"));
  CHECK(!product("", "2, 3"));
  CHECK(!product("n", "n"));
  CHECK(product("n >= 1 <= 4", "n"));
  CHECK(!product("n >= 1 <= 4", "n, 2"));
  const auto conv = [&](const std::string& sides) {
    return kept("", "1, 2, " + sides, "1, 4, " + sides, "4, 2, 1, 1",
                "conv(%x, %f) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]");
  };
  CHECK(conv("2, 2"));
  CHECK(!conv("2, 3"));
  target.l2_bytes = 64;  // all weights fit as floats, so one row alone reads bytes
  CHECK(product("", "1"));
  CHECK(!product("", "2"));
}

TEST_CASE("keep-bytes: where the model is to stay small, constants of bytes are not folded") {
  const Target target = baseline_target(Arch::x86_64);
  for (const bool small : {false, true}) {
    Expected<Graph> graph = parse_graph(R"(graph @g() {
      %x: f32[1, 2, 3, 3] = input
      %w: i8[2, 2, 1, 1] = const [1,2,3,4]
      %s: f32[2] = const [0.5,2]
      %b: f32[2] = const [1,-1]
      %f: f32[2, 2, 1, 1] = dequantize(%w, %s) axis=0
      %y: f32[1, 2, 3, 3] = conv(%x, %f, %b) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
      output %y
    })");
    REQUIRE(bool(graph));
    const std::vector<Tensor> inputs = random_inputs(*graph, 1);
    Expected<std::vector<Tensor>> before = evaluate(*graph, inputs);
    REQUIRE(bool(before));
    PassContext context{target};
    context.keep_small = small;
    if (Error error = run_passes(*graph, context, {"fold-constants", "keep-bytes"}))
      FAIL(error_text(std::move(error)));
    CHECK((print(*graph).find("i8[2, 2, 1, 1]") != std::string::npos) == small);
    Expected<std::vector<Tensor>> after = evaluate(*graph, inputs);
    REQUIRE(bool(after));
    for (int64_t i = 0; i < after->front().size(); ++i)
      CHECK(std::abs(after->front().at(i) - before->front().at(i)) < 1e-5);
  }
}

TEST_CASE("sign-quantization: i8 becomes u8 where the target multiplies that") {
  Expected<Graph> graph = parse_graph(R"(graph @g() {
    %x: f32[4] = input
    %s: f32[] = const [0.5]
    %z: i8[] = const [-28]
    %q: i8[4] = quantize(%x, %s, %z) to=i8
    %y: f32[4] = dequantize(%q, %s, %z)
    output %y
  })");
  REQUIRE(bool(graph));
  const std::vector<Tensor> inputs = random_inputs(*graph, 1);
  Expected<std::vector<Tensor>> before = evaluate(*graph, inputs);
  REQUIRE(bool(before));
  Target target = baseline_target(Arch::x86_64);
  Intrinsic dot;
  dot.name = "dot";
  dot.rate = 1;
  dot.semantics = R"(kernel @dot(a: in u8[4], b: in i8[64], c: out i32[16]) {
    for j in 16 { for k in 4 reduce { c: c[j] += i32(a[k]) * i32(b[j * 4 + k]) } }
  })";
  target.intrinsics.push_back(dot);
  PassContext context{target};
  Expected<bool> changed = find_pass("sign-quantization")->run(*graph, context);
  REQUIRE(bool(changed));
  CHECK(*changed);
  CHECK(print(*graph) == print(*parse_graph(R"(graph @g() {
    %x: f32[4] = input
    %s: f32[] = const [0.5]
    %q_zero: u8[] = const [100]
    %y_zero: u8[] = const [100]
    %q: u8[4] = quantize(%x, %s, %q_zero) to=u8
    %y: f32[4] = dequantize(%q, %s, %y_zero)
    output %y
  })")));
  Expected<std::vector<Tensor>> after = evaluate(*graph, inputs);
  REQUIRE(bool(after));
  CHECK(relative_difference((*before)[0], (*after)[0]) == 0);
}

TEST_CASE("sign-quantization leaves values of the interface and those that are read as u8") {
  const char* text = R"(graph @g() {
    %x: f32[8] = input
    %v: u8[8] = input
    %s: f32[] = const [0.5]
    %q: u8[8] = quantize(%x, %s) to=u8
    %r: u8[8] = quantize(%x, %s) to=u8
    %a: u8[8] = binary(%r, %v) function=add
    %y: f32[8] = dequantize(%q, %s)
    %d: f32[8] = dequantize(%v, %s)
    output %q
    output %a
    output %y
    output %d
  })";
  run_pass("sign-quantization", text, text);
}

const std::string kConv = R"(graph @g() {
    %x: i8[1, 2, 3, 3] = input
    %w: i8[2, 2, 1, 1] = const [1, -2, 3, 4]
    %b: i32[2] = const [5, -6]
    %xs: f32[] = const [0.5]
    %xz: i8[] = const [3]
    %ws: f32[2] = const [0.25, 0.5]
    %bs: f32[2] = const [0.125, 0.25]
    %ys: f32[] = const [2.0]
    %xf: f32[1, 2, 3, 3] = dequantize(%x, %xs, %xz)
    %wf: f32[2, 2, 1, 1] = dequantize(%w, %ws)
    %bf: f32[2] = dequantize(%b, %bs)
    %c: f32[1, 2, 5, 5] = conv(%xf, %wf, %bf) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
)";

Graph run_default(const std::string& text,
                  std::vector<std::string> pipeline = {"sign-quantization", "fuse-quantization",
                                                       "fold-constants"}) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  const Target target = baseline_target(Arch::x86_64);
  PassContext context{target};
  RunOptions options;
  options.verify_each = true;
  CHECK(error_text(run_passes(*graph, context, pipeline, options)) == "");
  return std::move(*graph);
}

template <class Op>
int count(const Graph& graph) {
  int found = 0;
  for (NodeId id : graph.order()) found += std::holds_alternative<Op>(graph.node(id).attrs);
  return found;
}

TEST_CASE(
    "a convolution between dequantize and quantize: integer sums, one scale a channel, one "
    "rounding") {
  const Graph graph = run_default(kConv + R"(
    %yz: i8[] = const [7]
    %zero: f32[] = const [0.0]
    %r: f32[1, 2, 5, 5] = binary(%zero, %c) function=max
    %y: i8[1, 2, 5, 5] = quantize(%r, %ys, %yz) to=i8
    output %y
  })");
  CHECK(count<op::Dequantize>(graph) + count<op::Quantize>(graph) == 0);
  const std::string text = print(graph);
  CAPTURE(text);
  CHECK(text.find("i32[1, 2, 5, 5] = conv(%x, %w, %b) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] "
                  "x_zero=3") != std::string::npos);
  CHECK(text.find("f32[2, 1, 1] = const [0.0625, 0.125]") != std::string::npos);
  CHECK(text.find("function=round") != std::string::npos);
  CHECK(text.find("function=max") != std::string::npos);
  CHECK(text.find("to=i8 saturate=true") != std::string::npos);
}

const std::string kProduct = R"(graph @g() {
    %x: i8[4, 2] = input
    %w: i8[2, 2] = const [1, -2, 3, 4]
    %s: f32[] = const [0.5]
    %xf: f32[4, 2] = dequantize(%x, %s)
    %wf: f32[2, 2] = dequantize(%w, %s)
    %p: f32[4, 2] = matmul(%xf, %wf)
)";

TEST_CASE("the report names what stays in floats between quantized values") {
  const auto floats = [](const std::string& rest) {
    return floats_between(run_default(kProduct + rest + "}"));
  };
  const std::string quantized = "%y: i8[4, 2] = quantize(%v, %s) to=i8\noutput %y\n";
  CHECK(floats("%v: f32[4, 2] = unary(%p) function=sigmoid\n" + quantized) == "");
  CHECK(floats("%v: f32[4, 2] = softmax(%p) axis=1\n" + quantized) == "1 softmax");
  // The softmax follows another one, with an element-wise operator between them.
  CHECK(floats("%a: f32[4, 2] = softmax(%p) axis=1\n%b: f32[4, 2] = unary(%a) function=exp\n"
               "%v: f32[4, 2] = softmax(%b) axis=1\n" +
               quantized) == "2 softmax");
  CHECK(floats("%v: f32[4, 2] = softmax(%p) axis=1\noutput %v\n") == "");
  // The softmax reads 16-bit integers, which no quantized operator makes.
  CHECK(floats("%i: i16[4, 2] = input\n%j: f32[4, 2] = cast(%i) to=f32\n"
               "%v: f32[4, 2] = softmax(%j) axis=1\noutput %p\n" +
               quantized) == "1 softmax");
  // Bytes in a model of floats are a picture.
  CHECK(floats_between(run_default(R"(graph @picture() {
    %x: u8[4, 2] = input
    %f: f32[4, 2] = cast(%x) to=f32
    %v: f32[4, 2] = softmax(%f) axis=1
    %y: u8[4, 2] = cast(%v) to=u8
    output %y
  })")) == "");
}

TEST_CASE("without a quantize, or with a float bias, the sums are scaled in f32") {
  const Graph plain = run_default(kConv + "output %c\n}");
  CHECK(count<op::Dequantize>(plain) == 0);
  CHECK(print(plain).find("f32[2, 1, 1] = const [0.125, 0.25]") != std::string::npos);
  std::string other = kConv;  // then the bias has another scale than the sums
  other.replace(other.find("[0.125, 0.25]"), 13, "[0.125, 1.0]");
  const Graph floats = run_default(other + "output %c\n}");
  CHECK(print(floats).find("conv(%x, %w) ") != std::string::npos);
  CHECK(print(floats).find("const [0.625, -6]") != std::string::npos);
}

// Sums of 65793 products of 255 and -128 fit 32 bits.
TEST_CASE("a product whose sums do not fit 32 bits stays one of floats") {
  const auto product = [](int depth) {
    return print(run_default(llvm::formatv(R"(graph @g() {{
      %x: u8[1, {0}] = input
      %w: i8[{0}, 1] = input
      %s: f32[] = const [0.5]
      %xf: f32[1, {0}] = dequantize(%x, %s)
      %wf: f32[{0}, 1] = dequantize(%w, %s)
      %c: f32[1, 1] = matmul(%xf, %wf)
      output %c
    })",
                                           depth)
                                 .str()));
  };
  CHECK(product(65793).find("i32[1, 1] = matmul") != std::string::npos);
  CHECK(product(65794).find("i32[1, 1] = matmul") == std::string::npos);
}

// The limit is 2^30 / (255 * 128).
TEST_CASE("a product whose depth the run knows says how many of its products fit 32 bits") {
  const std::string open = print(run_default(R"(graph @g(k) {
    %x: u8[1, k] = input
    %w: i8[k, 1] = input
    %s: f32[] = const [0.5]
    %xf: f32[1, k] = dequantize(%x, %s)
    %wf: f32[k, 1] = dequantize(%w, %s)
    %c: f32[1, 1] = matmul(%xf, %wf)
    output %c
  })"));
  CHECK(open.find("most_products=32896") != std::string::npos);
}

TEST_CASE("a bias with which sums do not fit 32 bits is added in floats") {
  const auto biased = [](const char* bias) {
    return print(run_default(llvm::formatv(R"(graph @g() {{
      %x: u8[1, 2, 1, 1] = input
      %w: i8[1, 2, 1, 1] = const [127, 1]
      %b: i32[1] = const [{0}]
      %s: f32[] = const [0.5]
      %bs: f32[] = const [0.25]
      %xf: f32[1, 2, 1, 1] = dequantize(%x, %s)
      %wf: f32[1, 2, 1, 1] = dequantize(%w, %s)
      %bf: f32[1] = dequantize(%b, %bs)
      %c: f32[1, 1, 1, 1] = conv(%xf, %wf, %bf) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
      output %c
    })",
                                           bias)
                                 .str()));
  };
  // The largest bias is 2147483647 - 255 * 128.
  CHECK(biased("2147451007").find("conv(%x, %w, %b)") != std::string::npos);
  const std::string floats = biased("2147451008");
  CHECK(floats.find("conv(%x, %w) ") != std::string::npos);
  CHECK(floats.find("function=add") != std::string::npos);
  CHECK(biased("-2147483648").find("conv(%x, %w, %b)") != std::string::npos);
}

TEST_CASE("weights with zero points are centered: i8 where they fit, else i16") {
  struct Case {
    std::string zero, weights, wanted;
  };
  for (const auto& [zero, weights, wanted] :
       {Case{"128", "[130, 126, 0, 255]", "i8[2, 2] = const [2, -2, -128, 127]"},
        Case{"101", "[130, 255, 1, 2]", "i16[2, 2] = const [29, 154, -100, -99]"}}) {
    const Graph graph = run_default(R"(graph @g() {
      %x: u8[3, 2] = input
      %w: u8[2, 2] = const )" + weights +
                                    R"(
      %s: f32[] = const [0.5]
      %xz: u8[] = const [9]
      %wz: u8[] = const [)" + zero + R"(]
      %xf: f32[3, 2] = dequantize(%x, %s, %xz)
      %wf: f32[2, 2] = dequantize(%w, %s, %wz)
      %c: f32[3, 2] = matmul(%xf, %wf)
      %y: u8[3, 2] = quantize(%c, %s) to=u8
      output %y
    })");
    const std::string text = print(graph);
    CAPTURE(text);
    CHECK(text.find(wanted) != std::string::npos);
    CHECK(text.find("a_zero=9") != std::string::npos);
  }
}

TEST_CASE("movement, maxima and clamps of dequantized values are those of the integers") {
  run_pass("fuse-quantization", R"(graph @g() {
    %x: i8[1, 2, 4, 4] = input
    %s: f32[] = const [0.5]
    %z: i8[] = const [-7]
    %f: f32[1, 2, 4, 4] = dequantize(%x, %s, %z)
    %p: f32[1, 2, 2, 2] = pool(%f) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] pads=[0,0,0,0]
    %r: f32[1, 8] = reshape(%p) shape=[1,8]
    %six: f32[] = const [6.0]
    %c: f32[1, 8] = binary(%six, %r) function=min
    %y: i8[1, 8] = quantize(%c, %s, %z) to=i8
    output %y
  })",
           R"(graph @g() {
    %x: i8[1, 2, 4, 4] = input
    %p_integers: i8[1, 2, 2, 2] = pool(%x) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] pads=[0,0,0,0]
    %r_integers: i8[1, 8] = reshape(%p_integers) shape=[1,8]
    %c_bound: i8[] = const [5]
    %c_integers: i8[1, 8] = binary(%c_bound, %r_integers) function=min
    output %c_integers as "y"
  })");
}

TEST_CASE("a relu whose zero the quantization saturates at goes") {
  run_pass("fuse-quantization", R"(graph @g() {
    %x: f32[9] = input
    %zero: f32[] = const [0.0]
    %s: f32[] = const [0.01]
    %r: f32[9] = binary(%zero, %x) function=max
    %y: u8[9] = quantize(%r, %s) to=u8
    output %y
  })",
           R"(graph @g() {
    %x: f32[9] = input
    %s: f32[] = const [0.01]
    %y: u8[9] = quantize(%x, %s) to=u8
    output %y
  })");
}

// --- Quantized convolutions against their definition

struct Sample {
  bool u8 = false;
  int64_t x_zero = 0, y_zero = 0;
  float x_scale = 0, y_scale = 0;
  std::vector<float> w_scale;
  Tensor x, w, b;
};

int64_t round_even(float x) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(x))); }

// Computes one element: naive sums, f32(sum + bias) * f32(f32(xs * ws) / ys), rounded, shifted,
// clamped.
int64_t expected_at(const Sample& s, int64_t pad, int64_t m, int64_t oy, int64_t ox, bool relu) {
  const int64_t channels = s.x.shape[1], size = s.x.shape[2], kernel = s.w.shape[2];
  int64_t sum = s.b.int_at(m);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t ky = 0; ky < kernel; ++ky)
      for (int64_t kx = 0; kx < kernel; ++kx) {
        const int64_t y = oy + ky - pad, x = ox + kx - pad;
        if (y < 0 || x < 0 || y >= size || x >= size) continue;
        sum += (s.x.int_at((c * size + y) * size + x) - s.x_zero) *
               s.w.int_at(((m * channels + c) * kernel + ky) * kernel + kx);
      }
  const float scale = s.x_scale * s.w_scale[static_cast<size_t>(m)] / s.y_scale;
  int64_t y = round_even(static_cast<float>(sum) * scale) + s.y_zero;
  if (relu) y = std::max(y, s.y_zero);
  return std::clamp<int64_t>(y, s.u8 ? 0 : -128, s.u8 ? 255 : 127);
}

Sample sample(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Sample s;
  s.u8 = seed % 2 == 1;
  const int64_t low = s.u8 ? 0 : -128, channels = pick(1, 4), outputs = pick(1, 5),
                size = pick(3, 6), kernel = pick(1, 3);
  s.x_zero = pick(low, low + 255), s.y_zero = pick(low, low + 255);
  // Scales of few bits often meet ties, others seldom.
  const auto scale = [&] {
    return seed % 3 ? static_cast<float>(pick(1, 3)) / 64
                    : std::uniform_real_distribution<float>(0.005F, 0.1F)(random);
  };
  s.x_scale = scale(), s.y_scale = scale() * 8;
  s.x = Tensor::zeros(s.u8 ? DType::u8 : DType::i8, {1, channels, size, size});
  s.w = Tensor::zeros(DType::i8, {outputs, channels, kernel, kernel});
  s.b = Tensor::zeros(DType::i32, {outputs});
  for (int64_t i = 0; i < s.x.size(); ++i) s.x.set_int(i, pick(low, low + 255));
  for (int64_t i = 0; i < s.w.size(); ++i) s.w.set_int(i, pick(-127, 127));
  for (int64_t i = 0; i < outputs; ++i)
    s.b.set_int(i, pick(-2000, 2000)), s.w_scale.push_back(scale());
  return s;
}

Tensor number(DType dtype, double value) { return from_doubles(dtype, {}, {value}); }

// dequantize -> conv [-> relu] -> quantize, with constant weights.
Graph model(const Sample& s, int64_t pad, bool relu) {
  Graph g;
  const auto must = [](Expected<ValueId> v) {
    if (!v) FAIL(error_text(v.takeError()));
    return *v;
  };
  const DType t = s.x.dtype;
  std::vector<double> w_scale, b_scale;
  for (float w : s.w_scale) w_scale.push_back(w), b_scale.push_back(s.x_scale * w);
  const std::vector<int64_t> outputs = {s.w.shape[0]};
  const ValueId x = g.add_input("x", type_of(s.x)),
                x_scale = g.add_constant("xs", number(DType::f32, s.x_scale)),
                w = g.add_constant("w", s.w);
  const ValueId xf = must(
      g.add(op::Dequantize{},
            {x, x_scale, g.add_constant("xz", number(t, static_cast<double>(s.x_zero)))}));
  const ValueId wf = must(g.add(
      op::Dequantize{0}, {w, g.add_constant("ws", from_doubles(DType::f32, outputs, w_scale))}));
  const ValueId bf = must(
      g.add(op::Dequantize{0}, {g.add_constant("b", s.b),
                                g.add_constant("bs", from_doubles(DType::f32, outputs, b_scale))}));
  ValueId y = must(g.add(op::Conv{{1, 1}, {1, 1}, {pad, pad, pad, pad}}, {xf, wf, bf}));
  if (relu)
    y = must(g.add(op::Binary{BinaryOp::max}, {g.add_constant("zero", number(DType::f32, 0)), y}));
  y = must(
      g.add(op::Quantize{t}, {y, g.add_constant("ys", number(DType::f32, s.y_scale)),
                              g.add_constant("yz", number(t, static_cast<double>(s.y_zero)))}));
  g.add_output(y, "y");
  return g;
}

TEST_CASE("quantized convolutions equal their definition on every element") {
  int ties = 0, elements = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Sample s = sample(seed);
    const int64_t pad = seed % 4 ? s.w.shape[2] / 2 : s.w.shape[2] - 1,
                  out = s.x.shape[2] + 2 * pad - s.w.shape[2] + 1;
    const bool relu = seed % 5 < 2;
    Graph graph = model(s, pad, relu);
    const Target target = baseline_target(Arch::x86_64);
    PassContext context{target};
    REQUIRE(error_text(run_passes(graph, context, default_pipeline(), {})) == "");
    CHECK(count<op::Dequantize>(graph) == 0);
    Expected<std::vector<Tensor>> y = evaluate(graph, {s.x});
    REQUIRE(bool(y));
    int wrong = 0;
    for (int64_t i = 0; i < (*y)[0].size(); ++i, ++elements)
      wrong += (*y)[0].int_at(i) !=
               expected_at(s, pad, i / (out * out), i / out % out, i % out, relu);
    CHECK(wrong == 0);
    // A scale of few bits makes ties: sums that end in one half.
    for (int64_t m = 0; m < s.b.size(); ++m) {
      const float scale = s.x_scale * s.w_scale[static_cast<size_t>(m)] / s.y_scale;
      ties += std::ldexp(scale, 20) == std::floor(std::ldexp(scale, 20));
    }
  }
  CHECK(elements > 2000);
  CHECK(ties > 50);
}

// Sums at ties and next to them: 2k + 1 halves go to the even neighbour, and both ends saturate.
TEST_CASE("ties of the requantization go to even") {
  for (const DType t : {DType::i8, DType::u8}) {
    Sample s;
    s.u8 = t == DType::u8;
    s.x_scale = 0.5F, s.y_scale = 1, s.w_scale = {1.0F};
    s.x = Tensor::zeros(t, {1, 1, 16, 16}), s.w = from_doubles(DType::i8, {1, 1, 1, 1}, {1}),
    s.b = from_doubles(DType::i32, {1}, {3});
    s.x_zero = s.u8 ? 100 : 0, s.y_zero = s.u8 ? 60 : -20;
    for (int64_t i = 0; i < 256; ++i) s.x.set_int(i, i - (s.u8 ? 0 : 128));
    Graph graph = model(s, 0, false);
    const Target target = baseline_target(Arch::x86_64);
    PassContext context{target};
    REQUIRE(error_text(run_passes(graph, context, default_pipeline(), {})) == "");
    Expected<std::vector<Tensor>> y = evaluate(graph, {s.x});
    REQUIRE(bool(y));
    for (int64_t i = 0; i < 256; ++i) {
      const int64_t sum = s.x.int_at(i) - s.x_zero + 3,
                    half = sum >= 0 ? sum / 2 : -((-sum + 1) / 2),
                    rounded = sum % 2 == 0 ? half : half + (half & 1);
      CHECK((*y)[0].int_at(i) ==
            std::clamp<int64_t>(rounded + s.y_zero, s.u8 ? 0 : -128, s.u8 ? 255 : 127));
    }
  }
}

}  // namespace
}  // namespace tw::test
