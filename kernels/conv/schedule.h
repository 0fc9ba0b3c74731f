// What the two schedules of blocked convolutions share: sums over all input channels at once
// (conv.cpp) or by chunks of them (conv_chunks.cpp).
#pragma once
#include "kernels/schedule/builder.h"

namespace tw::conv {

// Loops of y by their names: n, c, then s0.. (or q0, r0, ..), then the lane l when the output is
// blocked.
struct OutputLoops {
  std::vector<std::string> outer;  // all but the tiled row
  std::string row, lane;
};

// Accumulators of a tile: pixels of a row times vectors of channels; `paired`: pairs.cpp's loop, ""
// for none.
struct Tile {
  int64_t pixels = 1, vectors = 1, panels = 1;  // panels: of the weights, `vectors` wide
  std::string paired;
};

// Channel blocks, taps, channels: taps of one row are never in one straight line of code with a
// channel loop to separate them.
std::vector<std::string> reduce_order(const std::vector<std::string>& reduce);

// The edges of loop `tiles` made apart where taps reach into the padding; what else is unrolled in
// the parts. `depth`: reduce loops.
void skip_padding(ScheduleBuilder& s, const std::string& tiles,
                  const std::vector<std::string>& depth, bool depthwise);

// Of `lines` in all (rows of the output, or tiles where all pixels are one row) as many as pass all
// panels before the next ones do, where the input is far too large to stay in the second-level
// cache from panel to panel: what such a block of lines reads does stay, and the panels come again
// for every block. 0: all lines pass each panel. Knob "block_lines".
int64_t lines_in_block(const ScheduleBuilder& s, std::optional<int64_t> lines, int64_t panels);

// Blocks of input channels in a chunk, 0 for all at once. Knob "chunk".
int64_t chunk_blocks(const ScheduleBuilder& s, const OutputLoops& o, const Tile& tile);

// Sums over `chunk` blocks of input channels at a time, whose weights stay in the first-level cache
// while all pixels pass; between them the sums are in memory.
void schedule_chunks(ScheduleBuilder& s, const OutputLoops& o, const Tile& tile, int64_t chunk);

}  // namespace tw::conv
