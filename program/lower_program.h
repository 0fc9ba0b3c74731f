// Groups become calls of kernels: what runs in which order, which memory each call reads and
// writes, and what must be checked between them. Kernels are not scheduled yet, and memory has no
// place yet (program/plan_program.h).
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

// What fusion makes of a graph: the model's own, or one that a node runs.
struct FusedGraph {
  const Graph* graph = nullptr;
  std::vector<Group> groups;
};

// The graphs that the graph's nodes run, and those that theirs do, in the order of the nodes.
std::vector<const Graph*> regions_within(const Graph& graph);

// A distinct kernel, before it is scheduled.
struct LoweredKernel {
  LoweredGroup lowered;
  int device = 0;         // that runs it: 0 the processor, else 1 + index into Target::devices
  std::string name = {};  // in the program
  // The first group that it computes; null: a copy
  const Graph* graph = nullptr;
  const Group* group = nullptr;
};

// Memory that calls need. Of a workspace the bytes are undefined: the schedule decides them.
struct LoweredBuffer {
  Lifetime lifetime;
  int device = 0;
};

// What a region finds in the memory of one place: an input of its graph. Those that no iteration
// changes may be in several.
struct RegionInput {
  size_t input = 0;
  int device = 0;
};

// A node that runs regions: its call, their numbers in LoweredProgram::regions, and what the call
// gives each of them, in the order of its operands.
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
  std::vector<RegionInput> inputs;  // of a region: what each of the program's inputs is
  Ranges symbols;
  // Without kernels, weights and regions. Operands in the arena have the number of their buffer as
  // index, those in the weights that of their piece
  Program program;
  std::vector<LoweredBuffer> buffers;
  std::vector<std::pair<size_t, size_t>> workspaces;  // call, buffer
  std::vector<LoweredRegions> regions;
};

struct LoweredProgram {
  LoweredCalls main;
  std::vector<LoweredCalls> regions;  // of all calls, inner ones first
  std::vector<LoweredKernel> kernels;
  std::vector<WeightPiece> weights;  // without offsets
  std::vector<int> weight_devices;   // by piece
};

// fused: the model's graph, then those that its nodes and theirs run; must outlive the result.
// placements: of each of these graphs (program/place_groups.h); empty: all on the processor.
// Errors: an operator without a lowering; sizes that no input can have.
Expected<LoweredProgram> lower_program(const std::vector<FusedGraph>& fused,
                                       const std::vector<Placement>& placements,
                                       const Target& target);

}  // namespace tw
