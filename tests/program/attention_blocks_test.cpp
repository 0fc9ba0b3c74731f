// Attention in blocks of queries, for devices whose blocks of threads share memory. The kernels, as
// lowered and as scheduled, equal the evaluators, and the tiles keep to the devices' limits.
#include <doctest/doctest.h>

#include <algorithm>

#include "frontend/frontend.h"
#include "ir/kernel/interpreter.h"
#include "kernels/device/attention.h"
#include "passes/fuse_groups.h"
#include "program/schedules.h"
#include "tests/ir/graph_testing.h"
#include "tests/opencl/jobs.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

const test::Case kCases[] = {
#include "tests/opencl/attention_cases.inc"
};
const char* const kDevices[] = {"nvidia-sm75",  "nvidia-sm80",  "nvidia-sm86",   "nvidia-sm89",
                                "nvidia-sm90a", "nvidia-sm120", "opencl-generic"};

Target device_of(const std::string& name) {
  return test::must(load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"})).main_device();
}

Tensor run(const Graph& g, const LoweredGroup& lowered, const Kernel& kernel,
           const std::vector<Tensor>& inputs) {
  std::vector<KernelArgument> arguments;
  for (const LoweredArgument& a : lowered.arguments) {
    const auto input = std::ranges::find(g.inputs(), a.value);
    const TensorType& type = g.value(a.value).type;
    if (a.constant) arguments.push_back({{a.blob.bytes.begin(), a.blob.bytes.end()}});
    else if (input != g.inputs().end())
      arguments.push_back({inputs[static_cast<size_t>(input - g.inputs().begin())].bytes});
    else arguments.push_back({Tensor::zeros(type.dtype, *static_shape(type.shape)).bytes});
  }
  REQUIRE(error_text(interpret(kernel, arguments)) == "");
  const TensorType& type = g.value(g.outputs()[0].value).type;
  Tensor y = Tensor::zeros(type.dtype, *static_shape(type.shape));
  y.bytes = arguments.back().bytes;
  return y;
}

// Checks the last group, which is the attention. Arguments other than inputs are places of a mask.
void check(const Graph& g, const Target& device, const std::vector<Tensor>& inputs,
           const Tensor& expected) {
  const std::vector<Group> groups = fuse_groups(g, &device);
  LoweredKernel kernel{test::must(lower_group(g, groups.back(), device))};
  REQUIRE(std::holds_alternative<StreamingAttentionStages>(kernel.lowered.stages));
  const ChosenSchedule chosen = test::must(ModelSchedules().choose(kernel, device));
  CHECK(chosen.fault == "");
  const DType type = expected.dtype;
  const bool rounds = print(g).find("tf32") != std::string::npos;
  const double limit = type == DType::bf16 ? 2e-2 : type == DType::f16 || rounds ? 2e-3 : 1e-5;
  for (const Kernel* one :
       std::initializer_list<const Kernel*>{&kernel.lowered.kernel, &chosen.run.kernel})
    CHECK(test::relative_difference(expected, run(g, kernel.lowered, *one, inputs)) < limit);
}

AttentionProblem problem_of(int64_t heads, int64_t tokens, int64_t width, DType type) {
  AttentionProblem p;
  p.batches = heads, p.rows = p.keys = tokens, p.depth = p.columns = width, p.type = type;
  return p;
}

}  // namespace

TEST_CASE("attention in blocks equals the evaluators, as lowered and as scheduled") {
  for (const test::Case& one : kCases) {
    CAPTURE(one.name);
    const Graph g = test::graph_of(one);
    const std::vector<Tensor> inputs = test::random_inputs(g, 3);
    const Tensor expected = test::must(evaluate(g, inputs))[0];
    for (const char* name : {"nvidia-sm75", "nvidia-sm80", "opencl-generic"}) {
      CAPTURE(name);
      check(g, device_of(name), inputs, expected);
    }
  }
}

TEST_CASE("threads keep the weights of short floats, and pass those of tf32 on") {
  const Target device = device_of("nvidia-sm80");
  AttentionProblem p = problem_of(12, 128, 64, DType::f16);
  CHECK(keeps_weights(*attention_instruction(device, p)));
  p.type = DType::bf16;
  CHECK(keeps_weights(*attention_instruction(device, p)));
  p.type = DType::f32, p.tf32 = true;
  CHECK(!keeps_weights(*attention_instruction(device, p)));
  p.tf32 = false;
  CHECK(!attention_instruction(device, p));
}

TEST_CASE("tiles of attention keep to the limits of every device, and follow the problem") {
  for (const char* name : kDevices)
    for (const DType type : {DType::f32, DType::f16, DType::bf16})
      for (const int64_t width : {8, 64, 100, 128, 256}) {
        CAPTURE(name);
        CAPTURE(width);
        const Target device = device_of(name);
        for (const int64_t tokens : {16, 128, 4096}) {
          const auto tile = attention_tile(device, problem_of(12, tokens, width, type));
          if (!tile) continue;
          CHECK((tile->rows + tile->keys) * width * dtype_bytes(type) <= device.local_bytes);
          CHECK(tile->rows < 2 * std::max<int64_t>(tokens, 16));
          CHECK(tile->by_instruction ==
                (device.multiprocessors.multiply_adds(type, false) > 0 && type != DType::f32));
        }
      }
  const Target device = device_of("nvidia-sm80");
  std::string why;
  CHECK(!attention_tile(device, problem_of(12, 128, 2000, DType::f32), &why));
  CHECK(why.find("heads of 2000 and 2000 elements") != std::string::npos);
  const auto few = attention_tile(device, problem_of(1, 128, 64, DType::f16)),
             many = attention_tile(device, problem_of(512, 1024, 64, DType::f16));
  REQUIRE((few && many));
  CHECK(few->rows <= many->rows);
}
