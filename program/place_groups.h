// Choice of a device for every fused group, and of a memory for every result of If and Loop. The
// choice minimizes the estimated time of the whole model, copies between memories included. It
// follows the choice of algorithms and precedes lower_program, which inserts the copies. It lives
// in this folder because a group's kernels, weights and memory depend on where the group runs.
#pragma once
#include <optional>

#include "program/lower_program.h"

namespace tw {

// The kernels of a graph's groups on one device.
struct DeviceKernels {
  std::vector<LoweredKernel> kernels;  // distinct, with their constants
  std::vector<std::string> refusals;   // by kernel: why the device cannot run it; "": it can
  // By group: its kernel; nullopt if the group needs none or has no lowering
  std::vector<std::optional<size_t>> kernel_of;
  std::vector<std::string> problems;  // by group: why it has no lowering; "": it has one
};
// Leaves `refusals` empty, as only a device's code generator knows them. device: 1 + index into
// Target::devices.
DeviceKernels lower_for_device(const FusedGraph& fused, const Target& target, int device);

// The constants of a kernel by parameter, for the device's code generator. An entry is empty if the
// parameter is not constant.
std::vector<Constant> constants_of(const LoweredGroup& group);

// `fused` holds the model's graph first, then all regions. `on_device` is indexed by graph and
// device. The result is by graph.
std::vector<Placement> place_groups(const std::vector<FusedGraph>& fused, const Target& target,
                                    const std::vector<std::vector<DeviceKernels>>& on_device);

}  // namespace tw
