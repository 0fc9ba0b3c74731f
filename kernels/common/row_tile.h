// Which register tile covers a row of a convolution in the least time: its pixels times vectors of
// output channels, the last tile of the row being as small as what is left. Lowering packs weights
// by it, the search space tiles by it.
#pragma once
#include "kernels/common/register_tile.h"

namespace tw {

// Pixels of a tile, for `vectors` of channels and at most `most_sums` accumulators; 1 when the
// extent is symbolic. `step`: in multiples of it, one at least (the windows of a pool).
int64_t row_tile_pixels(const Target& target, std::optional<int64_t> extent, int64_t vectors,
                        int64_t most_sums = 64, int64_t step = 1);
// Tiles along rows of free extent, which lowering fills up to whole ones; `lines`: there are
// several rows, which may be short. .vectors divides `blocks`.
int64_t free_row_pixels(const Target& target, int64_t vectors, bool lines);
RegisterTile free_row_tile(const Target& target, int64_t blocks, bool lines);
// Tiles of rows that lowering fills up to whole ones, of a multiple of `step` pixels that an
// instruction takes together. .vectors divides `blocks`.
RegisterTile filled_row_tile(const Target& target, int64_t extent, int64_t blocks, int64_t step);
// Rows of `extent` pixels in one tile, of `lines` in all: more than one where whole short rows fit.
// Fewer tiles read the weights less often.
int64_t tile_lines(const Target& target, std::optional<int64_t> lines,
                   std::optional<int64_t> extent, int64_t vectors);
// .rows: pixels. .vectors divides `blocks`. `lines`: of the output where tiles may have several
// (tile_lines).
RegisterTile row_tile(const Target& target, std::optional<int64_t> extent, int64_t blocks,
                      std::optional<int64_t> lines = 1, int64_t step = 1);

}  // namespace tw
