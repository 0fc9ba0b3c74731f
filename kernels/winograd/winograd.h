// Winograd's convolution: what lowering makes of it and the schedule takes.
#pragma once
#include "ir/graph/graph.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"
#include "kernels/conv/conv.h"

namespace tw {

struct WinogradStages {
  const char* family() const { return "winograd"; }
  // One-dimensional: along an axis of a tile, at each point of the other, fixed one.
  struct Transform {
    Stage stage;
    Loop tile, block, fixed, along, lane;
  };
  Stage pad;                // the input with zeros around it
  Transform rows, columns;  // of the input, one after the other
  BufferName weights;       // transformed, in panels
  Stage acc;                // the products of each point
  Loop acc_row, acc_column, acc_tile, acc_block, acc_lane, depth_block, depth_lane;
  Transform out_rows, out_columns;  // of the products
  ConvOutput out;
};

// Whether the algorithm computes the node: a 3x3 convolution of stride 1 or 2 with constant weights
// over blocked channels.
bool winograd_applies(const Graph& graph, const Node& node);
// Channel blocks that one register tile covers when there are so many tiles of the image.
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target);

// tile: 2, 4 or 6
Expected<Lowered<WinogradStages>> lower_winograd(GroupBuilder& b, const Node& node, int tile);
void schedule_winograd(ScheduleBuilder& s, const WinogradStages& m);

}  // namespace tw
