// Compares each fused group's compiled result with the reference evaluation of the same graph. For
// this the model is compiled once more, with every group's result as an output.
#pragma once
#include "driver/compare/compare.h"
#include "driver/compile/compile.h"
#include "driver/run/tensors.h"

namespace tw {

struct NodeDifference {
  std::string value;               // name of the group's result
  std::string type;                // "f32[1, 64, 56, 56]"
  std::vector<std::string> nodes;  // "conv1 (conv, from Conv)", in order
  std::string group;               // group_name
  Difference difference;
};

struct PerNodeReport {
  size_t compared = 0;
  std::optional<NodeDifference> first;  // first group that is off, in topological order
  // By output: the evaluated graph of the passes against `want`. A difference means that a graph
  // pass changed what the model computes.
  std::vector<Difference> passes;
};

// want: the imported model's outputs by the reference evaluators, for the same inputs. Files go
// into a temporary folder, which is removed again.
Expected<PerNodeReport> compare_nodes(const CompileOptions& options, const Target& target,
                                      const Inputs& inputs, const std::vector<Tensor>& want,
                                      double tolerance, int threads);

// Differences of all groups that the evaluators reach within the given seconds, in topological
// order
struct NodeErrors {
  std::vector<NodeDifference> results;
  size_t left = 0;  // results that were not reached
};
Expected<NodeErrors> node_errors(const CompileOptions& options, const Target& target,
                                 const Inputs& inputs, double seconds, int threads);

}  // namespace tw
