// Fusion: which operators share a kernel.
#pragma once
#include <functional>

#include "ir/group.h"
#include "ir/target.h"

namespace tw {

// Every group has one value that is read outside or is an output of the graph: its last node's. The
// others are internal. A node of several outputs is alone. On processors (device null, or without
// threads of its own) attention is one kernel, in f32 inside. On devices with threads it is where
// their blocks hold its steps; and they want both operands of a product of one type.
std::vector<Group> fuse_groups(const Graph& graph, const Target* device = nullptr);
// Of attention that is several kernels on a device with threads: a note each, and why.
std::vector<std::string> attention_notes(const Graph& graph, const Target& device);
// Pools join the groups of the convolutions in front of them. After the choice of algorithms. Of
// the groups that are not `apart`: those of a device stay as they are.
void fuse_pools(const Graph& graph, std::vector<Group>& groups,
                const std::function<bool(const Group&)>& apart = {});

}  // namespace tw
