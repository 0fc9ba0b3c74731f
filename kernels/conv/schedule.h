// What the two schedules of blocked convolutions share: sums over all input channels at once
// (schedule.cpp) or by chunks of them (schedule_chunks.cpp).
#pragma once
#include "kernels/conv/conv.h"
#include "kernels/schedule/builder.h"

namespace tw::conv {

// Accumulators of a tile: pixels of a row times vectors of channels.
struct Tile {
  int64_t pixels = 1, vectors = 1, panels = 1;  // panels: of the weights, `vectors` wide
};

// The sums' reduce loops from the outside in.
struct Depth {
  Loops loops;     // channel blocks, taps, channels
  Loop blocks;     // of channels, where their channels have a loop inside; none
  Loops straight;  // loops, or parts of them, that may be one straight line
};
// Taps of one row are never in one straight line of code with a channel loop to separate them.
// channels: the loop of that name or what is left of it.
Depth depth_of(const ConvStages& m, const Loop& channels);

// The edges of loop `tiles` made apart where taps reach into the padding; what else is unrolled in
// the parts.
void skip_padding(ScheduleBuilder& s, const ConvStages& m, const Loop& tiles, const Depth& depth);

// Of `lines` in all (rows of the output, or tiles where all pixels are one row) as many as pass all
// panels before the next ones do, where the input is far too large to stay in the second-level
// cache from panel to panel: what such a block of lines reads does stay, and the panels come again
// for every block. 0: all lines pass each panel. Knob "block_lines".
int64_t lines_in_block(const ScheduleBuilder& s, const ConvStages& m, std::optional<int64_t> lines,
                       int64_t panels);

// Blocks of input channels in a chunk, 0 for all at once. Knob "chunk".
int64_t chunk_blocks(const ScheduleBuilder& s, const ConvStages& m, const Tile& tile);

// Sums over `chunk` blocks of input channels at a time, whose weights stay in the first-level cache
// while all pixels pass; between them the sums are in memory.
void schedule_chunks(ScheduleBuilder& s, const ConvStages& m, const Tile& tile, int64_t chunk);

// The steps of the sums by pairs of channels, in the depth's loops.
Depth accumulate_pairs(ScheduleBuilder& s, const ConvStages& m, const Stage& sums,
                       const Depth& depth, const Loop& at);

}  // namespace tw::conv
