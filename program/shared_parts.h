// Kernels and weights of all graphs of a model; equal ones are stored once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "program/lower_program.h"

namespace tw {

// Bytes of a constant parameter
uint64_t bytes_of(const Buffer& constant);

class SharedParts {
 public:
  // `lowered` gets the kernels, the weights and the calls of regions. All arguments must outlive
  // this object.
  SharedParts(const std::vector<FusedGraph>& fused, const std::vector<Placement>& placements,
              const Target& target, LoweredProgram& lowered)
      : fused_(fused), placements_(placements), target_(target), lowered_(lowered) {}

  size_t number_of(const Graph& graph) const;  // index in `fused`
  const FusedGraph& fused_of(const Graph& graph) const { return fused_[number_of(graph)]; }
  const Placement& placement_of(const Graph& graph) const;
  const Target& target_of(int device) const;
  size_t device_count() const { return target_.devices.size(); }

  // The number of the kernel; equal kernels have one. The first names it: `stem` and the number.
  int kernel(LoweredKernel kernel, const std::string& stem);
  const Buffer& buffer(int kernel, size_t argument) const;

  // The operand of the argument's piece; equal pieces are stored once, under the first one's name.
  Operand weight(const LoweredArgument& argument, const Buffer& buffer, int device,
                 const std::string& name);

  int add_region(LoweredCalls calls);  // returns the region's number

 private:
  const std::vector<FusedGraph>& fused_;
  const std::vector<Placement>& placements_;
  const Target& target_;
  LoweredProgram& lowered_;
  std::map<std::string, int> kernels_;  // by device and kernel hash
  // By device, size and packing: the numbers of pieces, which differ in their content
  std::map<std::string, std::vector<size_t>> weights_;
};

}  // namespace tw
