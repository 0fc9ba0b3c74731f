// Direct convolutions and transposed ones: what lowering makes of them and the schedule takes.
#pragma once
#include <cstdint>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// The loops over a tensor of the output's shape.
struct ConvLoops {
  Loop image, channel;  // blocks of channels where the output is blocked
  Loops phases;         // of sub-pixels, which have weights of their own
  Loops lines;          // the spatial axes but the last
  Loop row;             // the last spatial axis
  Loop lane;            // of a block of channels; none: the output is not blocked
};

// Spatial axes behind image and channel, the lane behind them where the tensor is blocked.
ConvLoops conv_loops(const Loops& loops, bool blocked);

struct ConvOutput {
  Stage y;
  ConvLoops loops;
  // With a pool behind the convolution y is the pool's, and this is what it reads.
  Stage conv;
  ConvLoops conv_loops;
  std::vector<int64_t> window;  // of the pool, by spatial axis; empty: no pool
};

struct ConvStages {
  const char* family() const { return depthwise ? "depthwise" : "conv"; }
  Stages copies;              // of operands, made at run time: nests of their own
  BufferName input, weights;  // the weights packed in panels of `vectors` blocks of channels
  int64_t vectors = 1;
  bool depthwise = false;
  Stage acc;  // the sums
  ConvLoops sums;
  Loop channels;       // of the sums: input channels, or blocks of them
  Loop channel_lanes;  // of such a block
  Loops taps;          // by spatial axis; none where there is one
  Loop paired;         // channel_lanes, where the weights hold pairs of its steps innermost; none
  SumInstruction instruction;
  ConvOutput out;
};

Expected<Lowered<ConvStages>> lower_conv(GroupBuilder& b, const Node& node);
Expected<Lowered<ConvStages>> lower_conv_transpose(GroupBuilder& b, const Node& node);
void schedule_conv(ScheduleBuilder& s, const ConvStages& m);

}  // namespace tw
