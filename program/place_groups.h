// Gives every fused group the processor or one of the target's devices: what is estimated to be
// fastest for the whole graph, copies between memories included. Before: groups with their
// algorithms. After: build_program inserts the copies. Here, because a group's kernels, weights and
// memory depend on where it runs.
#pragma once
#include <functional>

#include "ir/group.h"
#include "ir/program.h"
#include "ir/target.h"

namespace tw {

struct Placement {
  // By group: 0 the processor, else 1 + index into Target::devices
  std::vector<int> devices;
  // By group on the processor: why not on a device; "" where there is no kernel
  std::vector<std::string> reasons;
};
// Which kernels a device can run: by group "" or the reason why not. Called once a device, with its
// distinct kernels and constants.
struct LoweredGroup;
using Runs =
    std::function<std::vector<std::string>(const std::vector<LoweredGroup>& groups, int device)>;
// The constants of a kernel by parameter, as devices are asked about them; empty: not constant.
std::vector<Constant> constants_of(const LoweredGroup& group);
Placement place_groups(const Graph& graph, const std::vector<Group>& groups, const Target& target,
                       const Runs& runs);

}  // namespace tw
