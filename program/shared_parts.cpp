#include "program/shared_parts.h"

#include <algorithm>
#include <cstring>

namespace tw {

uint64_t bytes_of(const Buffer& constant) {
  int64_t bytes = dtype_bytes(constant.dtype);
  for (const Expr& extent : constant.shape) bytes *= as_const(simplify(extent)).value_or(1);
  return static_cast<uint64_t>(bytes);
}

size_t SharedParts::number_of(const Graph& graph) const {
  const auto found = std::ranges::find(fused_, &graph, &FusedGraph::graph);
  TW_CHECK(found != fused_.end(), "no groups of graph {0}", graph.name);
  return static_cast<size_t>(found - fused_.begin());
}

const Placement& SharedParts::placement_of(const Graph& graph) const {
  static const Placement kOnProcessor;
  return placements_.empty() ? kOnProcessor : placements_[number_of(graph)];
}

const Target& SharedParts::target_of(int device) const {
  return device ? target_.devices[static_cast<size_t>(device) - 1] : target_;
}

int SharedParts::kernel(LoweredKernel kernel, const std::string& stem) {
  const std::string hash = std::to_string(kernel.device) + ":" + definition_hash(kernel.lowered);
  const auto [found, fresh] = kernels_.try_emplace(hash, static_cast<int>(lowered_.kernels.size()));
  if (fresh) {
    kernel.name = stem + "_" + std::to_string(found->second);
    lowered_.kernels.push_back(std::move(kernel));
  }
  return found->second;
}

const Buffer& SharedParts::buffer(int kernel, size_t argument) const {
  return lowered_.kernels[static_cast<size_t>(kernel)].lowered.kernel.buffers[argument];
}

Operand SharedParts::weight(const LoweredArgument& argument, const Buffer& buffer, int device,
                            const std::string& name) {
  // Several graphs may have equal constants, and folding makes them anew for each node.
  std::vector<size_t>& alike =
      weights_[std::to_string(device) + ":" + std::to_string(argument.blob.bytes.size()) + ":" +
               (argument.pack ? print(*argument.pack) : "")];
  auto found = std::ranges::find_if(alike, [&](size_t number) {
    const std::byte* own = lowered_.weights[number].source.bytes.data();
    return own == argument.blob.bytes.data() ||
           std::memcmp(own, argument.blob.bytes.data(), argument.blob.bytes.size()) == 0;
  });
  if (found == alike.end()) {
    WeightPiece piece;
    piece.size = bytes_of(buffer);
    piece.source = argument.blob;
    piece.pack = argument.pack;
    piece.name = name;
    found = alike.insert(found, lowered_.weights.size());
    lowered_.weights.push_back(std::move(piece));
    lowered_.weight_devices.push_back(device);
  }
  return {Place::weights, static_cast<int>(*found), Expr(0)};
}

int SharedParts::add_region(LoweredCalls calls) {
  lowered_.regions.push_back(std::move(calls));
  return static_cast<int>(lowered_.regions.size()) - 1;
}

}  // namespace tw
