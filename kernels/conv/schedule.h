// The parts that both schedules of blocked convolutions share. One sums over all input channels at
// once (schedule.cpp), the other over chunks of them (schedule_chunks.cpp).
#pragma once
#include "kernels/conv/conv.h"
#include "kernels/schedule/builder.h"

namespace tw::conv {

// The accumulators of a tile: pixels of a row times vectors of channels
struct Tile {
  int64_t pixels = 1, vectors = 1, panels = 1;  // panels: those of the weights, each `vectors` wide
};

// The reduce loops of the sums, from the outside in
struct Depth {
  Loops loops;     // channel blocks, taps, channels
  Loop blocks;     // loop over blocks of channels, if another loop runs inside a block; else none
  Loops straight;  // loops, or parts of loops, that may become straight-line code
};
// The reduce loops. Where a channel loop separates them, taps of one row are never in the same
// straight-line code. channels: that loop, or what is left of it.
Depth depth_of(const ConvStages& m, const Loop& channels);

// Separates the ends of loop `tiles`, where taps reach into the padding, and unrolls the loops of
// the separate parts that need it.
void skip_padding(ScheduleBuilder& s, const ConvStages& m, const Loop& tiles, const Depth& depth);

// The number of `lines` that pass all panels before the next lines do; 0: all lines pass each
// panel. Lines are rows of the output, or tiles if all pixels are one row. Blocks of lines are for
// an input far too large to stay in the second-level cache from panel to panel. The input of one
// block stays there, and the panels are read again for every block. Knob "block_lines".
int64_t lines_in_block(const ScheduleBuilder& s, const ConvStages& m, std::optional<int64_t> lines,
                       int64_t panels);

// Blocks of input channels in a chunk; 0: all at once. Knob "chunk".
int64_t chunk_blocks(const ScheduleBuilder& s, const ConvStages& m, const Tile& tile);

// Schedules sums over `chunk` blocks of input channels at a time. Their weights stay in the
// first-level cache while all pixels pass. Between chunks the sums are in memory.
void schedule_chunks(ScheduleBuilder& s, const ConvStages& m, const Tile& tile, int64_t chunk);

// Schedules the sums by pairs of channels; the result has the depth's new loops.
Depth accumulate_pairs(ScheduleBuilder& s, const ConvStages& m, const Stage& sums,
                       const Depth& depth, const Loop& at);

}  // namespace tw::conv
