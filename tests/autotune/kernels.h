// For tests: tasks of small graphs, and a comparison of a scheduled kernel with the kernel as
// lowered.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "autotune/task.h"
#include "ir/kernel/interpreter.h"
#include "ir/target.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "tests/backends/read_element.h"

namespace tw::test {

struct GraphCase {
  const char* name;
  const char* inputs;  // lines of the text form
  const char* nodes;   // lines that make %y; %w is a constant
  int symbol = 3;      // size of each free dimension
};

inline Target vector_target(int bits) {
  Target t = baseline_target(Arch::x86_64);
  t.name = "test";
  t.cores = 2;
  t.vector_bits = bits;
  t.vector_registers = bits == 512 ? 32 : 16;
  if (bits == 128) t.features = {"sse2", "sse3", "sse4.1", "sse4.2", "ssse3"};
  if (bits >= 256) t.features = {"avx", "avx2", "fma", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"};
  if (bits == 512) t.features.insert(t.features.begin(), "avx512f");
  std::ranges::sort(t.features);
  return t;
}

// A task for each fused group, one variant for each algorithm that applies.
inline std::vector<Task> tasks_of_case(const GraphCase& c, const Target& target) {
  const bool symbolic = std::string(c.inputs).find("batch") != std::string::npos;
  Expected<Graph> graph = parse_graph(std::string("graph @case(") + (symbolic ? "batch" : "") +
                                          ") {\n" + c.inputs + "\n" + c.nodes + "\noutput %y\n}\n",
                                      c.name);
  if (!graph) FAIL(error_text(graph.takeError()));
  for (const ValueId input : std::vector<ValueId>(graph->inputs())) {
    const Value value = graph->value(input);
    if (value.name != "w") continue;
    Tensor weights = Tensor::zeros(value.type.dtype, *static_shape(value.type.shape));
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.set(i, static_cast<double>(i % 13 - 6) / 8);
    graph->replace_uses(input, graph->add_constant("weights", weights));
  }
  PassContext context{target};
  REQUIRE(error_text(run_passes(*graph, context, default_pipeline())) == "");
  std::vector<Task> tasks;
  std::vector<Group> groups = fuse_groups(*graph);
  fuse_pools(*graph, groups);
  for (const Group& group : groups) {
    const Node& node = graph->node(group.anchor);
    Task task;
    task.name = c.name;
    for (const Algorithm a :
         {Algorithm::direct, Algorithm::winograd_f2, Algorithm::winograd_f4, Algorithm::strassen}) {
      if (winograd_tile(a) != 0 && !winograd_applies(*graph, node, target)) continue;
      if (a == Algorithm::strassen && !strassen_applies(*graph, node, target)) continue;
      Group one = group;
      one.algorithm = a;
      Expected<LoweredGroup> lowered = lower_group(*graph, one, target);
      if (!lowered && a != Algorithm::direct) {
        llvm::consumeError(lowered.takeError());
        continue;
      }
      if (!lowered) FAIL(error_text(lowered.takeError()));
      task.variants.push_back({a, std::move(*lowered)});
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

inline size_t bytes_of(const Buffer& buffer, int symbol) {
  int64_t bytes = dtype_bytes(buffer.dtype);
  for (const Expr& extent : buffer.shape)
    bytes *= eval_int(extent, [&](std::string_view) { return int64_t{symbol}; });
  return static_cast<size_t>(bytes);
}

// Fills every parameter that is read with small random values: fractions for floats, whole numbers
// else.
inline std::vector<KernelArgument> random_arguments(const Kernel& kernel, int symbol,
                                                    uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<KernelArgument> arguments;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    arguments.push_back({std::vector<std::byte>(bytes_of(buffer, symbol))});
    if (buffer.role == BufferRole::output) continue;
    Tensor values = Tensor::zeros(
        buffer.dtype,
        {static_cast<int64_t>(arguments.back().bytes.size()) / dtype_bytes(buffer.dtype)});
    for (int64_t i = 0; i < values.size(); ++i) {
      const auto r = static_cast<int64_t>(random() % 0x10000);
      if (is_float(values.dtype)) values.set(i, static_cast<double>(r - 0x8000) / 0x8000);
      else values.set_int(i, values.dtype == DType::boolean ? r & 1 : r % 3);
    }
    arguments.back().bytes = values.bytes;
  }
  return arguments;
}

// Returns "" if the outputs agree to the last few bits of a sum's range.
inline std::string difference(const Kernel& kernel, const std::vector<KernelArgument>& want,
                              const std::vector<KernelArgument>& got) {
  for (size_t i = 0; i < want.size(); ++i) {
    const Buffer& buffer = kernel.buffers[i];
    if (buffer.role != BufferRole::output) continue;
    const size_t size = static_cast<size_t>(dtype_bytes(buffer.dtype));
    double span = 1;
    for (size_t at = 0; at < want[i].bytes.size(); at += size)
      span = std::max(span, std::fabs(read_element(buffer.dtype, want[i].bytes.data() + at)));
    for (size_t at = 0; at < want[i].bytes.size(); at += size) {
      const double a = read_element(buffer.dtype, want[i].bytes.data() + at),
                   b = read_element(buffer.dtype, got[i].bytes.data() + at);
      if (!(a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 5e-5 * span))
        return buffer.name + "[" + std::to_string(at / size) + "] is " + std::to_string(b) +
               ", not " + std::to_string(a);
    }
  }
  return "";
}

inline std::map<std::string, int64_t> symbols_of(const Kernel& kernel, int symbol) {
  std::map<std::string, int64_t> symbols;
  for (const std::string& name : kernel.symbols) symbols[name] = symbol;
  return symbols;
}

}  // namespace tw::test
