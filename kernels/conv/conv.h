// Direct convolutions and transposed ones: the stages that lowering makes and the schedule uses.
#pragma once
#include <cstdint>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// The loops over a tensor of the output's shape
struct ConvLoops {
  Loop image, channel;  // channel: later over blocks
  Loops phases;         // over sub-pixels with weights of their own
  Loops lines;          // the spatial axes except the last
  Loop row;             // the last spatial axis
  Loop lane;            // in a block of channels; none: there are no blocks yet
};

// `loops` are image, channel and spatial axes.
ConvLoops conv_loops(const Loops& loops);

struct ConvOutput {
  Stage y;
  ConvLoops loops;
  // With a pool behind the convolution, y is the pool's stage and `conv` is what it reads.
  Stage conv;
  ConvLoops conv_loops;
  std::vector<int64_t> window;  // the pool's, by spatial axis; empty: no pool
};

struct ConvStages {
  const char* family() const { return depthwise ? "depthwise" : "conv"; }
  bool arranged = false;  // the operands lie as the target reads them
  Stages copies;          // copies of operands made at run time, each a nest
  int64_t groups = 1, group_in = 1, group_out = 1;  // groups, and the channels of each
  // The blocks in which the schedule lays the channels of input and output out; 0: none
  int64_t in_block = 0, out_block = 0;
  // The windows, by spatial axis, and the elements of the operands; the left ones count from
  // left_zero
  std::vector<int64_t> strides, dilations, pads_begin;
  DType left_type = DType::f32, right_type = DType::f32;
  int64_t left_zero = 0;
  BufferName bias;  // the parameter; none: there is none, or it is a number
  // The weights, a constant or none as defined; later in panels of `vectors` blocks of channels
  BufferName input, weights;
  int64_t vectors = 1;
  // Blocks of output channels whose number `vectors` divides; 0: there are no panels
  int64_t panel_blocks = 0;
  bool depthwise = false, transposed = false;
  bool spreads_channels = false;  // the input's copy has the output's channels
  Stage acc;                      // the sums
  ConvLoops sums;
  Loop channels;              // loop of the sums over input channels, or blocks of them
  Loop channel_lanes;         // loop in such a block
  Loops taps;                 // by spatial axis; none for an extent of 1
  bool taps_outside = false;  // the sums' taps are around the blocks of channels
  Loop paired;  // the loop channel_lanes, if the weights have pairs of its steps innermost
  SumInstruction instruction;
  ConvOutput out;
};

// The form of a copied row: a few channels are innermost, in multiples of `few`; of a row with a
// stride, parts lie apart, one for each remainder by it, so that the pixels that a tap reads are
// adjacent.
struct CopiedRow {
  int64_t few = 0;  // 0: channels lie in blocks, or are an axis of their own
  bool apart = false;
};
// Copies what the sums multiply of the input, with its padding. Channels lie in blocks; 0: none.
Stage pack_windows(ScheduleBuilder& s, const ConvStages& m, int64_t block, CopiedRow row = {});
Loop windows_loop(size_t axis);  // the copy's loop along a spatial axis
// Fills a bias up behind the last channel of the last block. Returns the stage that copies it when
// the model runs; none: it is a constant, or there is no bias.
Stage fill_bias(ScheduleBuilder& s, const BufferName& bias, const ConvOutput& out, int64_t block);
// Brings the blocks of y, which lies in them already, to what it reads, and notes the loops.
void block_output(ScheduleBuilder& s, ConvOutput& out, int64_t block);

// Fewest input channels in the innermost reduction
inline constexpr int64_t kFewestDepth = 4;

// Merges groups whose channels fill blocks together, on the tensors' own dimensions.
void merge_groups(ScheduleBuilder& s, ConvStages& m);
// Lays the weights of a defined convolution out in panels, and its sums in the output's blocks.
void arrange_conv(ScheduleBuilder& s, ConvStages& m);
Expected<Lowered<ConvStages>> define_conv(GroupBuilder& b, const Node& node);
Expected<Lowered<ConvStages>> define_conv_transpose(GroupBuilder& b, const Node& node);
void schedule_conv(ScheduleBuilder& s, const ConvStages& m);

}  // namespace tw
