// Lowering of groups to calls of kernels: the order of the calls, the memory that each one reads
// and writes, and the checks between them. Kernels are not scheduled yet, and buffers have no
// addresses yet (program/plan_program.h).
#pragma once
#include <string>
#include <vector>

#include "ir/group.h"
#include "ir/program.h"
#include "ir/target.h"
#include "kernels/lower.h"
#include "program/placement.h"
#include "program/plan_memory.h"

namespace tw {

// A graph after fusion: the model's own, or a region of a node.
struct FusedGraph {
  const Graph* graph = nullptr;
  std::vector<Group> groups;
};

// All regions of the graph, those inside regions included, in the order of the nodes.
std::vector<const Graph*> regions_within(const Graph& graph);

// A distinct kernel, before it is scheduled.
struct LoweredKernel {
  LoweredGroup lowered;
  int device = 0;         // runs the kernel: 0 the processor, else 1 + index into Target::devices
  std::string name = {};  // the kernel's name in the program
  // The first group that the kernel computes; null for a copy
  const Graph* graph = nullptr;
  const Group* group = nullptr;
};

// A buffer that calls need. A workspace's bytes are undefined, as the schedule decides them.
struct LoweredBuffer {
  Lifetime lifetime;
  int device = 0;
};

// An input of a region's graph, in the memory of one device. Inputs that no iteration changes may
// be given in several memories.
struct RegionInput {
  size_t input = 0;
  int device = 0;
};

// A node that runs regions: its call, the numbers of the regions in LoweredProgram::regions, and
// the inputs that the call gives to each region, in the order of the call's operands.
struct LoweredRegions {
  const Node* node = nullptr;
  size_t call = 0;
  std::vector<int> regions;
  std::vector<std::vector<RegionInput>> inputs;
};

// The calls of one graph.
struct LoweredCalls {
  const Graph* graph = nullptr;
  bool in_region = false;
  std::vector<RegionInput> inputs;  // by input of the program: the region's input
  Ranges symbols;
  // Has no kernels, weights and regions. The index of an arena operand is the number of a buffer;
  // that of an operand in the weights is the number of a piece
  Program program;
  std::vector<LoweredBuffer> buffers;
  std::vector<std::pair<size_t, size_t>> workspaces;  // call, buffer
  std::vector<LoweredRegions> regions;
};

struct LoweredProgram {
  LoweredCalls main;
  std::vector<LoweredCalls> regions;  // each comes after the regions inside it
  std::vector<LoweredKernel> kernels;
  std::vector<WeightPiece> weights;  // offsets are not set yet
  std::vector<int> weight_devices;   // by piece: the device whose memory it lies in
};

// `fused` holds the model's graph first, then all regions (regions_within); it must outlive the
// result. `placements` has one entry for each of these graphs (program/place_groups.h); if it is
// empty, all runs on the processor. Errors: an operator without a lowering, sizes that no input can
// have.
Expected<LoweredProgram> lower_program(const std::vector<FusedGraph>& fused,
                                       const std::vector<Placement>& placements,
                                       const Target& target);

}  // namespace tw
