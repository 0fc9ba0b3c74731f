// Winograd's convolution: what lowering makes of it and the schedule takes.
#pragma once
#include "ir/graph/graph.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/common/integer_product.h"
#include "kernels/common/lowered.h"
#include "kernels/conv/conv.h"
#include "kernels/device/device.h"

namespace tw {

struct TileProblem;

// One-dimensional: along an axis of a tile, at each point of the other, fixed one.
struct WinogradAxisTransform {
  Stage stage;
  Loop tile, block, fixed, along, lane;
};

struct WinogradStages {
  const char* family() const { return "winograd"; }
  using Transform = WinogradAxisTransform;
  Stage pad;                // the input with zeros around it
  Transform rows, columns;  // of the input, one after the other
  BufferName weights;       // transformed, in panels
  Stage acc;                // the products of each point
  Loop acc_row, acc_column, acc_tile, acc_block, acc_lane, depth_block, depth_lane;
  SumInstruction instruction;       // for the products
  int64_t depth = 1;                // channels that one step of depth_lane takes
  Transform out_rows, out_columns;  // of the products
  ConvOutput out;
};

// On a device whose blocks of threads share memory: the products of all points are products of
// matrices in its tiles, and threads transform a tile of one channel each.
struct WinogradTileStages {
  const char* family() const { return "winograd"; }
  WinogradAxisTransform rows, columns;  // of the input; no lane
  TileStages products;
  WinogradAxisTransform out_rows, out_columns;  // of the products; no lane
  ConvOutput out;
  int64_t tile = 0;  // outputs along an axis
};

// Whether the algorithm computes the node: a 3x3 convolution of stride 1 or 2 with constant
// weights; on a processor over blocked channels. Operands (with_short_operands) are f32, or on a
// processor bf16 that an instruction multiplies.
bool winograd_applies(const Graph& graph, const Node& node, const Target& target);
// What multiplies operands in bf16; none of f32.
IntegerProduct winograd_product(const Graph& graph, const Node& node, const Target& target);
// Channel blocks that one register tile covers when there are so many tiles of the image.
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target);

// tile: 2, 4 or 6
Expected<Lowered<WinogradStages>> lower_winograd(GroupBuilder& b, const Node& node, int tile);
void schedule_winograd(ScheduleBuilder& s, const WinogradStages& m);

// What a device multiplies for a node to which the algorithm applies: a batch for each point.
// nullopt: a thread cannot hold a tile of so many points.
std::optional<TileProblem> winograd_tile_problem(const Graph& graph, const Node& node, int tile);
// Errors: the device has no tile for the products (block_tile).
Expected<Lowered<WinogradTileStages>> lower_winograd_in_tiles(GroupBuilder& b, const Node& node,
                                                              int tile);
void schedule_winograd_in_tiles(ScheduleBuilder& s, const WinogradTileStages& m);

}  // namespace tw
