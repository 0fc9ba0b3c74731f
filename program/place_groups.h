// Gives every fused group the processor or one of the target's devices: what is estimated to be
// fastest for the whole graph, copies between memories included. Before: groups with their
// algorithms. After: lower_program inserts the copies. Here, because a group's kernels, weights and
// memory depend on where it runs.
#pragma once
#include <optional>

#include "program/lower_program.h"

namespace tw {

struct Placement {
  // By group: 0 the processor, else 1 + index into Target::devices
  std::vector<int> devices;
  // By group on the processor: why not on a device; "" where there is no kernel
  std::vector<std::string> reasons;
};
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
// on_device: of each device of the target.
Placement place_groups(const FusedGraph& fused, const Target& target,
                       const std::vector<DeviceKernels>& on_device);

}  // namespace tw
