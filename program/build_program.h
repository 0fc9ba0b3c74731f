// The last step of passes: fused groups become scheduled kernels, calls, a memory plan and a list
// of weights.
#pragma once
#include <functional>

#include "kernels/lower.h"
#include "program/plan_memory.h"

namespace tw {

struct ProgramOptions {
  // The schedule of a kernel for the target it runs on: from the log, or the space's default point.
  // Called once a distinct kernel.
  std::function<Expected<Kernel>(const LoweredGroup&, const Target&)> schedule;
  // Where each group runs (program/place_groups.h); empty: all on the processor.
  std::vector<int> devices;
  // Fuses a graph that a node runs, as the model's own was.
  std::function<std::vector<Group>(const Graph&)> region_groups;
  // For --emit and --dump-dir: every distinct kernel before and after scheduling.
  std::function<void(const Kernel& lowered, const Kernel& scheduled)> on_kernel;
  // For the report: the arena's plan and the buffers in it.
  std::function<void(const MemoryPlan&, const std::vector<Lifetime>&)> on_plan;
};

Expected<Program> build_program(const Graph& graph, const std::vector<Group>& groups,
                                const Target& target, const ProgramOptions& options);

}  // namespace tw
