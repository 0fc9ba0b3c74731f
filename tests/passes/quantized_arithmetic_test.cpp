// fuse-quantization and zero-points-first on sums, products, averages and concatenations between
// quantized values; tabulate-bytes.
#include <doctest/doctest.h>

#include "passes/pass.h"
#include "passes/rewriter.h"
#include "run_pass.h"

namespace tw::test {
namespace {

TEST_CASE(
    "a sum of dequantized values is one of scaled integers in f32, and is rounded without its zero "
    "point") {
  run_pass("fuse-quantization", R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %bs: f32[] = const [0.25]
    %ys: f32[] = const [2.0]
    %yz: u8[] = const [7]
    %x: f32[2, 3] = dequantize(%a, %as, %az)
    %v: f32[3] = dequantize(%b, %bs)
    %s: f32[2, 3] = binary(%x, %v) function=add
    %y: u8[2, 3] = quantize(%s, %ys, %yz) to=u8
    output %y
  })",
           R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %y_scaled_by: f32[] = const [0.125]
    %y_term_by: f32[] = const [-0.75]
    %y_scaled_by_1: f32[] = const [0.25]
    %y_zero_by: f32[] = const [7]
    %y_wide_1: i32[2, 3] = cast(%a) to=i32
    %y_real_1: f32[2, 3] = cast(%y_wide_1) to=f32
    %y_scaled_1: f32[2, 3] = binary(%y_real_1, %y_scaled_by_1) function=mul
    %y_wide: i32[3] = cast(%b) to=i32
    %y_real: f32[3] = cast(%y_wide) to=f32
    %y_scaled: f32[3] = binary(%y_real, %y_scaled_by) function=mul
    %y_term: f32[3] = binary(%y_scaled, %y_term_by) function=add
    %y_sum: f32[2, 3] = binary(%y_scaled_1, %y_term) function=add
    %y_rounded: f32[2, 3] = unary(%y_sum) function=round
    %y_zero: f32[2, 3] = binary(%y_rounded, %y_zero_by) function=add
    %y: u8[2, 3] = cast(%y_zero) to=u8 saturate=true
    output %y
  })");
}

TEST_CASE("zero-points-first rounds a sum and a product with their odd zero points") {
  run_pass("zero-points-first", R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %bs: f32[] = const [0.25]
    %ys: f32[] = const [0.625]
    %yz: u8[] = const [7]
    %even: u8[] = const [6]
    %x: f32[2, 3] = dequantize(%a, %as, %az)
    %v: f32[3] = dequantize(%b, %bs)
    %s: f32[2, 3] = binary(%x, %v) function=add
    %y: u8[2, 3] = quantize(%s, %ys, %yz) to=u8
    %p: f32[2, 3] = binary(%x, %v) function=mul
    %z: u8[2, 3] = quantize(%p, %ys, %yz) to=u8
    %q: f32[2, 3] = binary(%x, %v) function=mul
    %w: u8[2, 3] = quantize(%q, %ys, %even) to=u8
    output %y
    output %z
    output %w
  })",
           R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %bs: f32[] = const [0.25]
    %ys: f32[] = const [0.625]
    %even: u8[] = const [6]
    %y_scaled_by: f32[] = const [0.4]
    %y_term_by: f32[] = const [4.6]
    %y_scaled_by_1: f32[] = const [0.8]
    %y_one: f32[] = const [1]
    %z_centered_by: i32[] = const [3]
    %z_scaled_by: f32[] = const [0.2]
    %z_sum_by: f32[] = const [7]
    %z_one: f32[] = const [1]
    %x: f32[2, 3] = dequantize(%a, %as, %az)
    %v: f32[3] = dequantize(%b, %bs)
    %y_wide_1: i32[2, 3] = cast(%a) to=i32
    %y_real_1: f32[2, 3] = cast(%y_wide_1) to=f32
    %y_scaled_1: f32[2, 3] = binary(%y_real_1, %y_scaled_by_1) function=mul
    %y_wide: i32[3] = cast(%b) to=i32
    %y_real: f32[3] = cast(%y_wide) to=f32
    %y_scaled: f32[3] = binary(%y_real, %y_scaled_by) function=mul
    %y_term: f32[3] = binary(%y_scaled, %y_term_by) function=add
    %y_sum: f32[2, 3] = binary(%y_scaled_1, %y_term) function=add
    %y: u8[2, 3] = quantize(%y_sum, %y_one) to=u8
    %z_wide: i32[2, 3] = cast(%a) to=i32
    %z_centered: i32[2, 3] = binary(%z_wide, %z_centered_by) function=sub
    %z_wide_1: i32[3] = cast(%b) to=i32
    %z_product: i32[2, 3] = binary(%z_centered, %z_wide_1) function=mul
    %z_real: f32[2, 3] = cast(%z_product) to=f32
    %z_scaled: f32[2, 3] = binary(%z_real, %z_scaled_by) function=mul
    %z_sum: f32[2, 3] = binary(%z_scaled, %z_sum_by) function=add
    %z: u8[2, 3] = quantize(%z_sum, %z_one) to=u8
    %q: f32[2, 3] = binary(%x, %v) function=mul
    %w: u8[2, 3] = quantize(%q, %ys, %even) to=u8
    output %y
    output %z
    output %w
  })");
}

TEST_CASE(
    "a product of dequantized values is one of integers, and is rounded without its zero point") {
  run_pass("fuse-quantization", R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %bs: f32[] = const [0.25]
    %ys: f32[] = const [2.0]
    %yz: u8[] = const [7]
    %x: f32[2, 3] = dequantize(%a, %as, %az)
    %v: f32[3] = dequantize(%b, %bs)
    %s: f32[2, 3] = binary(%x, %v) function=mul
    %y: u8[2, 3] = quantize(%s, %ys, %yz) to=u8
    output %y
  })",
           R"(graph @g() {
    %a: u8[2, 3] = input
    %b: u8[3] = input
    %y_centered_by: i32[] = const [3]
    %y_scaled_by: f32[] = const [0.0625]
    %y_zero_by: f32[] = const [7]
    %y_wide: i32[2, 3] = cast(%a) to=i32
    %y_centered: i32[2, 3] = binary(%y_wide, %y_centered_by) function=sub
    %y_wide_1: i32[3] = cast(%b) to=i32
    %y_product: i32[2, 3] = binary(%y_centered, %y_wide_1) function=mul
    %y_real: f32[2, 3] = cast(%y_product) to=f32
    %y_scaled: f32[2, 3] = binary(%y_real, %y_scaled_by) function=mul
    %y_rounded: f32[2, 3] = unary(%y_scaled) function=round
    %y_zero: f32[2, 3] = binary(%y_rounded, %y_zero_by) function=add
    %y: u8[2, 3] = cast(%y_zero) to=u8 saturate=true
    output %y
  })");
}

TEST_CASE("an average of dequantized values is a sum of integers, less the zero of its points") {
  run_pass("fuse-quantization", R"(graph @g() {
    %a: u8[1, 2, 3] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %ys: f32[] = const [0.125]
    %x: f32[1, 2, 3] = dequantize(%a, %as, %az)
    %p: f32[1, 2, 2] = pool(%x) kind=average kernel=[2] strides=[2] dilations=[1] pads=[1,0]
    %y: u8[1, 2, 2] = quantize(%p, %ys) to=u8
    output %y
  })",
           R"(graph @g() {
    %a: u8[1, 2, 3] = input
    %y_zeros: i32[1, 1, 2] = const [3, 6]
    %y_scale: f32[1, 1, 2] = const [4, 2]
    %y_sums: i32[1, 2, 2] = pool(%a) kind=sum kernel=[2] strides=[2] dilations=[1] pads=[1,0]
    %y_centered: i32[1, 2, 2] = binary(%y_sums, %y_zeros) function=sub
    %y_real: f32[1, 2, 2] = cast(%y_centered) to=f32
    %y_scaled: f32[1, 2, 2] = binary(%y_real, %y_scale) function=mul
    %y_rounded: f32[1, 2, 2] = unary(%y_scaled) function=round
    %y: u8[1, 2, 2] = cast(%y_rounded) to=u8 saturate=true
    output %y
  })");
}

TEST_CASE("an average of padding alone is the zero point") {
  Expected<Graph> graph = parse_graph(R"(graph @g() {
    %a: u8[1, 1, 1] = input
    %as: f32[] = const [0.5]
    %az: u8[] = const [3]
    %yz: u8[] = const [7]
    %x: f32[1, 1, 1] = dequantize(%a, %as, %az)
    %p: f32[1, 1, 2] = pool(%x) kind=average kernel=[2] strides=[1] dilations=[3] pads=[2,2] count_include_pad=true
    %y: u8[1, 1, 2] = quantize(%p, %as, %yz) to=u8
    output %y
  })");
  if (!graph) FAIL(error_text(graph.takeError()));
  const Target target = baseline_target(Arch::x86_64);
  PassContext context{target};
  CHECK(error_text(run_passes(*graph, context, {"fuse-quantization"})) == "");
  CHECK(print(*graph).find("kind=sum") != std::string::npos);
  const Tensor x = from_doubles(DType::u8, {1, 1, 1}, {200});
  Expected<std::vector<Tensor>> y = evaluate(*graph, {x});
  if (!y) FAIL(error_text(y.takeError()));
  CHECK(to_doubles((*y)[0]) == std::vector<double>{7, 7});
}

TEST_CASE("a concatenation that is quantized is one of quantized parts") {
  run_pass("fuse-quantization", R"(graph @g() {
    %a: i8[1, 2] = input
    %b: i8[1, 3] = input
    %as: f32[] = const [0.5]
    %bs: f32[] = const [0.25]
    %x: f32[1, 2] = dequantize(%a, %as)
    %v: f32[1, 3] = dequantize(%b, %bs)
    %c: f32[1, 5] = concat(%x, %v) axis=1
    %y: i8[1, 5] = quantize(%c, %as) to=i8
    output %y
  })",
           R"(graph @g() {
    %a: i8[1, 2] = input
    %b: i8[1, 3] = input
    %as: f32[] = const [0.5]
    %bs: f32[] = const [0.25]
    %v: f32[1, 3] = dequantize(%b, %bs)
    %y_part_1: i8[1, 3] = quantize(%v, %as) to=i8
    %y: i8[1, 5] = concat(%a, %y_part_1) axis=1
    output %y
  })");
}

TEST_CASE("bytes that are computed from one byte are a table, quantized ones between included") {
  Expected<Graph> graph = parse_graph(R"(graph @g() {
    %x: i8[4, 5] = input
    %s: f32[] = const [0.5]
    %zero: f32[1, 1] = const [0.0]
    %f: f32[4, 5] = dequantize(%x, %s)
    %h: i8[4, 5] = quantize(%f, %s) to=i8
    %d: f32[4, 5] = dequantize(%h, %s)
    %l: bool[4, 5] = binary(%f, %zero) function=lt
    %r: f32[4, 5] = select(%l, %zero, %d)
    %y: i8[4, 5] = quantize(%r, %s) to=i8
    output %y
  })");
  REQUIRE(bool(graph));
  const Target target = baseline_target(Arch::x86_64);
  PassContext context{target};
  REQUIRE(error_text(run_passes(*graph, context, {"tabulate-bytes"}, {})) == "");
  REQUIRE(graph->order().size() == 1);
  const Node& node = graph->node(graph->order()[0]);
  REQUIRE(std::holds_alternative<op::Lookup>(node.attrs));
  CHECK(graph->value(node.inputs[0]).name == "x");
  const Tensor table = graph->constant_tensor(node.inputs[1]);
  for (int64_t i = 0; i < 256; ++i) CHECK(table.int_at(i) == std::max<int64_t>(i - 128, 0));
}

TEST_CASE("no table: two bytes, a scale a channel, a cheap step") {
  for (const char* text : {R"(graph @g() {
    %x: i8[4, 5] = input
    %v: i8[4, 5] = input
    %s: f32[] = const [0.5]
    %f: f32[4, 5] = dequantize(%x, %s)
    %g: f32[4, 5] = dequantize(%v, %s)
    %p: f32[4, 5] = binary(%f, %g) function=div
    %y: i8[4, 5] = quantize(%p, %s) to=i8
    output %y
  })",
                           R"(graph @g() {
    %x: i8[2, 3] = input
    %s: f32[3] = const [0.5, 0.25, 1.0]
    %t: f32[] = const [0.5]
    %f: f32[2, 3] = dequantize(%x, %s) axis=1
    %y: i8[2, 3] = quantize(%f, %t) to=i8
    output %y
  })",
                           R"(graph @g() {
    %x: u8[2, 3] = input
    %c: u8[] = const [15]
    %y: u8[2, 3] = binary(%x, %c) function=bit_and
    output %y
  })"})
    run_pass("tabulate-bytes", text, text);
}

}  // namespace
}  // namespace tw::test
