// Gives every fused group the processor or one of the target's devices: what is estimated to be fastest for the whole graph, copies
// between memories included. Before: groups with their algorithms. After: build_program inserts the copies. Here, because a
// group's kernels, weights and memory depend on where it runs.
#pragma once
#include <functional>

#include "ir/target.h"
#include "passes/pass.h"

namespace tw {

struct Placement {
  std::vector<int> devices;            // by group: 0 the processor, else 1 + index into Target::devices
  std::vector<std::string> reasons;    // by group on the processor: why not on a device; "" where there is no kernel
};
// Whether a device can run the group's kernel with its constants. Called once a distinct one and device.
struct LoweredGroup;
using Runs = std::function<Error(const LoweredGroup&, int device)>;
Placement place_groups(const Graph& graph, const std::vector<Group>& groups, const Target& target, const Runs& runs);

}  // namespace tw
