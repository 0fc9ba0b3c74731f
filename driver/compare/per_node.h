// How far each fused group's compiled result is from the reference evaluation of the same graph:
// the model is compiled once more with every group's result as an output.
#pragma once
#include "driver/compare/compare.h"
#include "driver/compile/compile.h"
#include "driver/run/tensors.h"

namespace tw {

struct NodeDifference {
  std::string value;               // the group's result
  std::string type;                // "f32[1, 64, 56, 56]"
  std::vector<std::string> nodes;  // "conv1 (conv, from Conv)", in order
  std::string group;               // group_name
  Difference difference;
};

struct PerNodeReport {
  size_t compared = 0;
  std::optional<NodeDifference> first;  // of the ones that are off, in topological order
  // The passes' graph, evaluated, against `want`: off means that a graph pass changed what the
  // model computes.
  std::vector<Difference> passes;
};

// want: the imported model's outputs by the reference evaluators, for the same inputs. Files go
// into a temporary folder that is removed again.
Expected<PerNodeReport> compare_nodes(const CompileOptions& options, const Target& target,
                                      const Inputs& inputs, const std::vector<Tensor>& want,
                                      double tolerance, int threads);

// Of every group that the evaluators reach in so many seconds, in topological order.
struct NodeErrors {
  std::vector<NodeDifference> results;
  size_t left = 0;  // results that were not reached
};
Expected<NodeErrors> node_errors(const CompileOptions& options, const Target& target,
                                 const Inputs& inputs, double seconds, int threads);

}  // namespace tw
