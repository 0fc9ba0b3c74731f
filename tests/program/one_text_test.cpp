// Products, also with weights of few bits, convolutions, recurrent steps, reductions, pools, attention
// and element-wise operators are lowered to one text, whatever the processor or the device.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>

#include "frontend/frontend.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
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
    "%x: f32[9, 64] = input\n%w: u8[40, 2, 16] = input\n%s: f32[40, 2] = input\n"
    "%z: f32[] = input\n%y: f32[9, 40] = matmul_nbits(%x, %w, %s, %z) bits=4 block=32 "
    "byte_rows=false",
    "%x: f16[1, 70] = input\n%w: u8[33, 3, 8] = input\n%s: f16[33, 3] = input\n"
    "%z: f16[33, 3] = input\n%y: f16[1, 33] = matmul_nbits(%x, %w, %s, %z) bits=2 block=32 "
    "byte_rows=false",
    "%x: f32[wide, 96] = input\n%w: u8[40, 3, 16] = input\n%s: f32[40, 3] = input\n"
    "%z: f32[40, 3] = input\n%a: f32[wide, 40] = matmul_nbits(%x, %w, %s, %z) bits=4 block=32 "
    "byte_rows=true\n%y: f32[wide, 40] = unary(%a) function=tanh",
    "%x: f32[5, 64] = input\n%w: u8[19, 4, 4] = input\n%s: f32[19, 4] = input\n"
    "%z: f32[] = input\n%y: f32[5, 19] = matmul_nbits(%x, %w, %s, %z) bits=2 block=16 "
    "byte_rows=true",
    "%x: f32[2, 3, 64] = input\n%w: u8[24, 2, 32] = input\n%s: f32[24, 2] = input\n"
    "%z: f32[24, 2] = input\n%y: f32[2, 3, 24] = matmul_nbits(%x, %w, %s, %z) bits=8 block=32 "
    "byte_rows=true",
    "%x: f32[2, 3, 12, 12] = input\n"
    "%y: f32[2, 3, 6, 6] = pool(%x) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
    "pads=[0,0,0,0]",
    "%x: f32[7, 5, 19] = input\n%z: f32[5, 1] = input\n"
    "%y: f32[7, 5, 19] = binary(%x, %z) function=mul",
    "%x: f32[4, 33] = input\n%y: f32[4, 33] = cumulate(%x) axis=1",
    "%x: f32[4, 300] = input\n%y: f32[4] = reduce(%x) kind=mean axes=[1] keep=false",
    "%x: u8[4, 300] = input\n%y: u8[4, 1] = reduce(%x) kind=max axes=[1] keep=true",
    "%x: f32[4, 300] = input\n%y: f32[4, 300] = softmax(%x) axis=1",
    "%x: f32[4, 300] = input\n%y: i64[4] = arg_reduce(%x) axis=1 keep=false",
    "%x: f32[6, 96] = input\n%s: f32[96] = input\n%y: f32[6, 96] = layer_norm(%x, %s) axis=1",
    "%x: f32[5, 2, 148] = input\n%w: f32[1, 148, 37] = input\n"
    "%y: f32[7, 2, 37] = recurrent(%x, %w) kind=lstm f=sigmoid g=tanh h=tanh states=true",
    "%x: f32[5, 2, 72] = input\n%w: f32[1, 72, 24] = input\n%n: i32[2] = input\n"
    "%y: f32[5, 2, 24] = recurrent(%x, %w, _, %n) kind=gru f=sigmoid g=tanh",
    "%x: f32[5, 2, 72] = input\n%r: f32[1, 72, 24] = input\n"
    "%y: f32[5, 2, 24] = recurrent(%x, %r) kind=gru f=sigmoid g=tanh linear_before_reset=true "
    "reverse=true",
    "%x: f32[5, 1, 16] = input\n%w: f32[1, 16, 16] = input\n"
    "%y: f32[5, 1, 16] = recurrent(%x, %w) kind=rnn f=tanh",
    "%x: f32[5, 2, 148] = input\n%w: i8[1, 148, 37] = input\n%s: f32[1, 148] = input\n"
    "%y: f32[5, 2, 37] = recurrent(%x, %w, _, _, _, _, _, %s) kind=lstm f=sigmoid g=tanh h=tanh",
    "%x: f32[5, 1, 64] = input\n%r: u8[1, 64, 16] = input\n%s: f32[1, 64] = input\n"
    "%y: f32[5, 1, 16] = recurrent(%x, %r, _, _, _, _, _, %s) kind=lstm f=sigmoid g=tanh h=tanh"};

// Layers whose tensors may lie in blocks of channels. LAYOUT stands for the layout of a tensor.
constexpr const char* kInBlocks[] = {
    "%x: f32[1, 32, 14, 14]LAYOUT = input\n%w: f32[48, 32, 3, 3] = input\n"
    "%a: f32[1, 48, 14, 14]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n"
    "%y: f32[1, 48, 14, 14]LAYOUT = unary(%a) function=tanh",
    "%x: f32[2, 32, 9, 9]LAYOUT = input\n%w: f32[20, 32, 1, 1] = input\n"
    "%y: f32[2, 20, 9, 9]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]",
    "%x: f32[1, 36, 11, 11]LAYOUT = input\n%w: f32[36, 1, 3, 3] = input\n"
    "%y: f32[1, 36, 5, 5]LAYOUT = conv(%x, %w) strides=[2,2] dilations=[1,1] pads=[0,0,0,0] "
    "group=36",
    "%x: f32[1, 32, 7, 7]LAYOUT = input\n%w: f32[32, 24, 4, 4] = input\n"
    "%y: f32[1, 24, 14, 14]LAYOUT = conv_transpose(%x, %w) strides=[2,2] dilations=[1,1] "
    "pads=[1,1,1,1] output_padding=[0,0]",
    "%x: i8[1, 32, 14, 14]LAYOUT = input\n%w: i8[48, 32, 3, 3] = input\n"
    "%y: i32[1, 48, 14, 14]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] "
    "x_zero=3",
    "%x: u8[1, 36, 11, 11]LAYOUT = input\n%w: i8[36, 1, 3, 3] = input\n"
    "%y: i32[1, 36, 6, 6]LAYOUT = conv(%x, %w) strides=[2,2] dilations=[1,1] pads=[1,1,1,1] "
    "group=36 x_zero=128",
    "%x: f32[1, 24, 9, 9]LAYOUT = input\n%w: f32[36, 4, 3, 3] = input\n"
    "%y: f32[1, 36, 9, 9]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] "
    "group=6",
    "%x: f32[1, 12, 9, 9]LAYOUT = input\n%w: f32[36, 1, 3, 3] = input\n"
    "%y: f32[1, 36, 9, 9]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] "
    "group=12",
    "%x: f32[1, 18, 9, wide]LAYOUT = input\n%w: f32[40, 18, 3, 3] = input\n"
    "%y: f32[1, 40, 9, wide]LAYOUT = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]",
    "%x: i8[1, 32, 7, 7]LAYOUT = input\n%w: i8[32, 24, 4, 4] = input\n"
    "%y: i32[1, 24, 14, 14]LAYOUT = conv_transpose(%x, %w) strides=[2,2] dilations=[1,1] "
    "pads=[1,1,1,1] output_padding=[0,0] x_zero=-5",
    "%x: f32[1, 20, 12, 12]LAYOUT = input\n"
    "%y: f32[1, 20, 6, 6]LAYOUT = pool(%x) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
    "pads=[0,0,0,0]",
    "%x: f32[1, 20, 12, 12]LAYOUT = input\n%z: f32[1, 20, 12, 12]LAYOUT = input\n"
    "%y: f32[1, 20, 12, 12]LAYOUT = binary(%x, %z) function=add",
    "%x: f32[1, 16, 6, 6]LAYOUT = input\n%z: f32[1, 32, 6, 6]LAYOUT = input\n"
    "%y: f32[1, 48, 6, 6]LAYOUT = concat(%x, %z) axis=1"};

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const char* processor : kProcessors)
    all.push_back(test::must(parse_target(processor, "one.yaml")));
  for (const char* name : {"nvidia-sm75", "nvidia-sm80", "nvidia-sm90a", "opencl-generic"})
    all.push_back(
        test::must(load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"})).main_device());
  return all;
}

Graph layer_of(const std::string& text) {
  Graph graph = test::must(parse_graph("graph @layer(wide) {\n" + text + "\noutput %y\n}\n"));
  for (const ValueId input : std::vector<ValueId>(graph.inputs()))
    if (const Value value = graph.value(input); value.name == "w")
      graph.replace_uses(
          input, graph.add_constant(
                     "weights", Tensor::zeros(value.type.dtype, *static_shape(value.type.shape))));
  return graph;
}

std::string in_layout(std::string text, const std::string& layout) {
  for (size_t at = text.find("LAYOUT"); at != text.npos; at = text.find("LAYOUT"))
    text.replace(at, 6, layout);
  return text;
}

}  // namespace

TEST_CASE("definitions without a target have one text on all processors and devices") {
  const std::vector<Target> all = targets();
  std::vector<std::string> layers(std::begin(kLayers), std::end(kLayers));
  for (const char* layer : kInBlocks) layers.push_back(in_layout(layer, ""));
  for (const std::string& layer : layers) {
    const Graph graph = layer_of(layer);
    std::vector<Group> groups = fuse_groups(graph);
    REQUIRE(groups.size() == 1);
    std::string first;
    for (const Target& target : all) {
      CAPTURE(target.name);
      const std::string text = print(test::must(lower_group(graph, groups[0], target)).kernel);
      if (first.empty()) first = text;
      CHECK(text == first);
    }
  }
}

TEST_CASE("Winograd's convolution has one text on processors and devices") {
  const Graph graph = layer_of(
      "%x: f32[1, 64, 28, 28] = input\n%w: f32[64, 64, 3, 3] = input\n"
      "%y: f32[1, 64, 28, 28] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]");
  std::vector<Group> groups = fuse_groups(graph);
  REQUIRE(groups.size() == 1);
  groups[0].algorithm = Algorithm::winograd_f2;
  std::set<std::string> texts;
  for (const Target& target : targets())
    texts.insert(print(test::must(lower_group(graph, groups[0], target)).kernel));
  CHECK(texts.size() == 1);
}

TEST_CASE("attention has one text on processors, and one by its two numbers on devices") {
  const Graph graph = layer_of(
      "%x: f16[1, 4, 60, 32] = input\n%z: f16[1, 4, 32, 77] = input\n%n: f16[1, 4, 77, 24] = "
      "input\n"
      "%a: f16[1, 4, 60, 77] = matmul(%x, %z)\n%b: f16[1, 4, 60, 77] = softmax(%a) axis=3\n"
      "%y: f16[1, 4, 60, 24] = matmul(%b, %n)");
  const std::vector<Group> groups = fuse_groups(graph);
  REQUIRE(groups.size() == 1);
  std::set<std::string> texts;
  for (const char* processor : kProcessors) {
    const Target target = test::must(parse_target(processor, "one.yaml"));
    texts.insert(print(test::must(lower_group(graph, groups[0], target)).kernel));
  }
  CHECK(texts.size() == 1);
  std::map<std::pair<int64_t, int64_t>, std::set<std::string>> by_numbers;
  for (const Target& device : targets()) {
    if (device.axes.empty()) continue;
    const LoweredGroup lowered = test::must(lower_group(graph, groups[0], device));
    const auto* stages = std::get_if<StreamingAttentionStages>(&lowered.stages);
    REQUIRE(stages);
    by_numbers[{stages->rows, stages->keys}].insert(print(lowered.kernel));
  }
  for (const auto& [numbers, made] : by_numbers) CHECK(made.size() == 1);
}

TEST_CASE("layouts stand beside a definition, and its schedule brings them") {
  const Target target = test::must(parse_target(kProcessors[1], "one.yaml"));
  for (const std::string layer : kInBlocks) {
    CAPTURE(layer);
    std::string first;
    std::set<std::string> hashes;
    std::optional<LoweredGroup> before;
    for (const char* layout : {"", "@1:4", "@1:8", "@1:16"}) {
      CAPTURE(std::string(layout));
      const Graph graph = layer_of(in_layout(layer, layout));
      const std::vector<Group> groups = fuse_groups(graph);
      REQUIRE(groups.size() == 1);
      const LoweredGroup lowered = test::must(lower_group(graph, groups[0], target));
      if (first.empty()) first = print(lowered.kernel);
      CHECK(print(lowered.kernel) == first);
      hashes.insert(definition_hash(lowered));
      const Schedule usual = test::must(default_schedule(lowered, target));
      const RunKernel run = test::must(scheduled_run(lowered, usual, target));
      for (size_t i = 0; i < run.sources.size(); ++i) {
        const LoweredArgument& argument = lowered.arguments[run.sources[i].parameter];
        if (argument.constant) continue;
        CHECK(is_const(simplify(element_count(run.kernel.buffers[i].shape) -
                                element_count(physical_shape(graph.value(argument.value).type))),
                       0));
      }
      // A schedule for another layout of the same tensors is refused.
      if (before) {
        const Schedule other = test::must(default_schedule(*before, target));
        Expected<RunKernel> refused = scheduled_run(lowered, other, target);
        REQUIRE_FALSE(refused);
        CHECK(error_text(refused.takeError()).find("does not lay") != std::string::npos);
      }
      before = lowered;
    }
    CHECK(hashes.size() == 4);
  }
}
