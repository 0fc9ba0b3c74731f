// Fusion: the choice of nodes that share a kernel.
#pragma once
#include <functional>

#include "ir/group.h"
#include "ir/target.h"

namespace tw {

// Partitions the graph into groups. Only the value of a group's last node is read outside or is an
// output of the graph. A node with several outputs is a group of its own. On processors (`device`
// is null or has no threads) attention is one kernel, which computes in f32. On devices with
// threads it is one kernel if their blocks hold its steps, and both operands of a product must have
// one type.
std::vector<Group> fuse_groups(const Graph& graph, const Target* device = nullptr);
// Notes on attention that a device with threads computes in several kernels: one each, with the
// reason.
std::vector<std::string> attention_notes(const Graph& graph, const Target& device);
// Lets pools join the groups of the convolutions in front of them, once algorithms are chosen.
// Groups for which `apart` is true stay as they are: they run on a device.
void fuse_pools(const Graph& graph, std::vector<Group>& groups,
                const std::function<bool(const Group&)>& apart = {});

}  // namespace tw
