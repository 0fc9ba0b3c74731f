// Layers by their numbers: what tasks of networks are reduced to so that others like them can be
// drawn (autotune/dataset/prior.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/task_text.h"

namespace tw {

enum class LayerKind : uint8_t {
  conv,       // 2-D, with a bias
  depthwise,  // 2-D, with a bias
  matmul,     // by constant weights, with a bias
  batch_matmul,
  pool,
  softmax,
  layer_norm,
  mean,  // over all pixels
  add,   // of two tensors
};
inline constexpr int kLayerKindCount = 9;
const char* layer_kind_name(LayerKind kind);

// What a layer's numbers are, in their order: "batch", "height", "width", ..
std::span<const char* const> attributes_of(LayerKind kind);
// Whether an attribute is a size, which may also be one that no network has; else it is a kind, a
// stride or the like, of which there are few.
bool is_size(LayerKind kind, size_t attribute);

struct Layer {
  LayerKind kind{};
  std::vector<int64_t> values;
  bool operator==(const Layer&) const = default;
};

// The layer of the task's anchor with what follows it. Nothing: of another kind, of a free size, or
// with what layers do not say (dilations, uneven padding).
std::optional<Layer> layer_of(const ParsedTask& task);
// A graph of the layer, f32 throughout. Of pictures it has neighbours, small 1x1 convolutions in
// front and behind, so that passes store what lies between as they would in a network. Errors:
// numbers that do not fit each other.
Expected<Graph> graph_of(const Layer& layer);
// The layer's own group, once its graph is fused. Null: no kernel computes it.
const Group* group_of_layer(const Graph& graph, std::span<const Group> groups);
double flops_of(const Layer& layer);  // of a legal one

}  // namespace tw
