// Gives every fused group the processor or one of the target's devices, and every result of If and
// Loop one of their memories: what is estimated to be fastest for the whole model, copies between
// memories included. Before: groups with their algorithms. After: lower_program inserts the copies.
// Here, because a group's kernels, weights and memory depend on where it runs.
#pragma once
#include <optional>

#include "program/lower_program.h"

namespace tw {

// What the groups of a graph are on one device.
struct DeviceKernels {
  std::vector<LoweredKernel> kernels;  // distinct, with their constants
  std::vector<std::string> refusals;   // by kernel: why the device does not run it; "": it does
  // By group: its kernel; none: it has none, or no lowering
  std::vector<std::optional<size_t>> kernel_of;
  std::vector<std::string> problems;  // by group: why it has no lowering
};
// Without refusals, which a device's code generator knows. device: 1 + index into Target::devices.
DeviceKernels lower_for_device(const FusedGraph& fused, const Target& target, int device);

// The constants of a kernel by parameter, as devices are asked about them; empty: not constant.
std::vector<Constant> constants_of(const LoweredGroup& group);

// fused: the model's graph, then those that its nodes and theirs run. on_device: by graph, of each
// device of the target. The result: by graph.
std::vector<Placement> place_groups(const std::vector<FusedGraph>& fused, const Target& target,
                                    const std::vector<std::vector<DeviceKernels>>& on_device);

}  // namespace tw
