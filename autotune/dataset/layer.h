// Layers as lists of numbers. Tasks of networks are reduced to layers, so that similar ones can be
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
  add,
};
inline constexpr int kLayerKindCount = 9;
const char* layer_kind_name(LayerKind kind);

// The names of a layer's numbers, in order: "batch", "height", "width", ..
std::span<const char* const> attributes_of(LayerKind kind);
// True for sizes, for which a value that no network has makes sense. Other attributes are kinds,
// strides and the like, with few values.
bool is_size(LayerKind kind, size_t attribute);

struct Layer {
  LayerKind kind{};
  std::vector<int64_t> values;
  bool operator==(const Layer&) const = default;
};

// The layer of the task's anchor and of the functions behind it. Empty for other kinds of layers,
// free sizes, and properties that a layer cannot express (dilations, uneven padding).
std::optional<Layer> layer_of(const ParsedTask& task);
// A graph of the layer, all f32. A layer on pictures gets neighbours: small 1x1 convolutions in
// front and behind, so that passes lay out the tensors in between as in a network. Errors: numbers
// that do not fit each other.
Expected<Graph> graph_of(const Layer& layer);
// The group with the layer's own node, after fusion; null: no kernel computes it.
const Group* group_of_layer(const Graph& graph, std::span<const Group> groups);
double flops_of(const Layer& layer);  // for a layer with a legal graph

}  // namespace tw
