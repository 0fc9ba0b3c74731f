// Products, pools and element-wise operators are lowered to one text, whatever the processor.
#include <doctest/doctest.h>

#include "frontend/frontend.h"
#include "kernels/lower.h"
#include "passes/fuse_groups.h"
#include "tests/ir/graph_testing.h"

using namespace tw;

namespace {

constexpr const char* kProcessors[] = {
    "triple: x86_64-linux-gnu\ncores: 4\n",
    "triple: x86_64-linux-gnu\ncores: 2\nfeatures: [avx2, fma]\n",
    "triple: x86_64-linux-gnu\ncores: 1\nfeatures: [avx2, fma, avx512f, avx512bw, avx512vnni]\n",
    "triple: aarch64-linux-gnu\ncores: 4\nfeatures: [neon, dotprod, i8mm, bf16]\n",
    "triple: armv7-linux-gnueabihf\ncores: 2\nfeatures: [neon]\n",
    "triple: riscv64-linux-gnu\ncores: 2\n"};

constexpr const char* kLayers[] = {
    "%x: f32[60, 192] = input\n%w: f32[192, 100] = input\n%y: f32[60, 100] = matmul(%x, %w)",
    "%x: f32[1, 7] = input\n%w: f32[5, 7] = input\n%y: f32[1, 5] = matmul(%x, %w) trans_b=true",
    "%x: f32[3, 8, 16] = input\n%w: f32[3, 16, 24] = input\n"
    "%a: f32[3, 8, 24] = matmul(%x, %w)\n%y: f32[3, 8, 24] = unary(%a) function=tanh",
    "%x: i8[9, 64] = input\n%w: i8[64, 40] = input\n%y: i32[9, 40] = matmul(%x, %w) a_zero=3",
    "%x: f64[9, 64] = input\n%w: f64[64, 40] = input\n%y: f64[9, 40] = matmul(%x, %w)",
    "%x: f32[2, 3, 12, 12] = input\n"
    "%y: f32[2, 3, 6, 6] = pool(%x) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
    "pads=[0,0,0,0]",
    "%x: f32[7, 5, 19] = input\n%z: f32[5, 1] = input\n"
    "%y: f32[7, 5, 19] = binary(%x, %z) function=mul",
    "%x: f32[4, 33] = input\n%y: f32[4, 33] = cumulate(%x) axis=1"};

}  // namespace

TEST_CASE("definitions without a target have one text on all processors") {
  for (const char* layer : kLayers) {
    Expected<Graph> graph = parse_graph("graph @layer() {\n" + std::string(layer) +
                                        "\noutput %y\n}\n");
    REQUIRE_MESSAGE(bool(graph), error_text(graph.takeError()));
    for (const ValueId input : std::vector<ValueId>(graph->inputs()))
      if (const Value value = graph->value(input); value.name == "w")
        graph->replace_uses(
            input, graph->add_constant("weights", Tensor::zeros(value.type.dtype,
                                                                *static_shape(value.type.shape))));
    const std::vector<Group> groups = fuse_groups(*graph);
    REQUIRE(groups.size() == 1);
    std::string first;
    for (const char* processor : kProcessors) {
      CAPTURE(std::string(processor));
      Expected<Target> target = parse_target(processor, "one.yaml");
      REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
      const std::string text = print(test::must(lower_group(*graph, groups[0], *target)).kernel);
      if (first.empty()) first = text;
      CHECK(text == first);
    }
  }
}
