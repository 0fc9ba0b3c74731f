// Winograd's convolution (kernels/algorithms/winograd.h) on a target
#pragma once
#include "ir/graph/graph.h"
#include "ir/target.h"
#include "kernels/algorithms/winograd.h"
#include "kernels/common/integer_product.h"
#include "kernels/device/device.h"

namespace tw {

struct TileProblem;

// The stages on a device whose blocks of threads share memory. The products of all points are
// matrix products in its tiles, and each thread transforms a tile of one channel.
struct WinogradTileStages {
  const char* family() const { return "winograd"; }
  WinogradAxisTransform rows, columns;  // input transforms, without a lane
  TileStages products;
  WinogradAxisTransform out_rows, out_columns;  // output transforms, without a lane
  ConvOutput out;
  int64_t tile = 0;  // outputs along an axis
};

// True: the algorithm can compute the node, a 3x3 convolution of stride 1 or 2 with constant
// weights, on a processor over blocked channels. Operands (with_short_operands) are f32, or on a
// processor bf16 that an instruction multiplies.
bool winograd_applies(const Graph& graph, const Node& node, const Target& target);
// Input channels of a block, or of a part of one that all channels fill, which lie together
int64_t channels_together(int64_t channels, int64_t block);
// The instruction that multiplies operands in bf16; none for f32. Tiles of the image are rows of
// the products, one for each instruction.
IntegerProduct winograd_product(DType type, const Target& target, int64_t together,
                                int64_t out_block);
IntegerProduct winograd_product(const Graph& graph, const Node& node, const Target& target);
// Channel blocks that one register tile covers if the image has this many tiles
int64_t winograd_vectors(int64_t blocks, int64_t tiles, const Target& target);

// Lays the transformed weights out in panels.
void arrange_winograd(ScheduleBuilder& s, WinogradStages& m);
void schedule_winograd(ScheduleBuilder& s, const WinogradStages& m);

// The product that a device computes for a node to which the algorithm applies: a batch for each
// point. nullopt: a thread cannot hold a tile with so many points.
std::optional<TileProblem> winograd_tile_problem(const Graph& graph, const Node& node, int tile);
// The tile of the products; nullopt: the device has none.
std::optional<BlockTile> tile_of(const ScheduleBuilder& s, const WinogradStages& m);
WinogradTileStages arrange_in_tiles(ScheduleBuilder& s, const WinogradStages& m,
                                    const BlockTile& tile);
void schedule_winograd_in_tiles(ScheduleBuilder& s, const WinogradTileStages& m);

}  // namespace tw
