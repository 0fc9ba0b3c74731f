// Kernels and weights of all graphs of a model, each there once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "program/lower_program.h"

namespace tw {

class SharedParts {
 public:
  // lowered: gets the kernels, the weights and the regions' calls; all must outlive this.
  SharedParts(const std::vector<FusedGraph>& fused, const std::vector<Placement>& placements,
              const Target& target, LoweredProgram& lowered)
      : fused_(fused), placements_(placements), target_(target), lowered_(lowered) {}

  size_t number_of(const Graph& graph) const;  // among these
  const FusedGraph& fused_of(const Graph& graph) const { return fused_[number_of(graph)]; }
  // Where the graph's groups run.
  const Placement& placement_of(const Graph& graph) const;
  const Target& target_of(int device) const;
  size_t device_count() const { return target_.devices.size(); }

  // The number of a kernel as this one; stem: of its name, where it is the first.
  int kernel(LoweredKernel kernel, const std::string& stem);
  const Buffer& buffer(int kernel, size_t argument) const;

  // name: of the piece, where it is the first.
  Operand weight(const LoweredArgument& argument, const Buffer& buffer, int device,
                 const std::string& name);

  int add_region(LoweredCalls calls);  // its number

 private:
  const std::vector<FusedGraph>& fused_;
  const std::vector<Placement>& placements_;
  const Target& target_;
  LoweredProgram& lowered_;
  std::map<std::string, int> kernels_;  // by device and hash
  // By device, bytes and packing: numbers of pieces, whose content differs
  std::map<std::string, std::vector<size_t>> weights_;
};

}  // namespace tw
