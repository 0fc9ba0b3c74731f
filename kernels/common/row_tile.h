// The register tile that covers a row of a convolution in the least time: its pixels times vectors
// of output channels. The last tile of a row is as small as the remaining pixels. Weights are
// packed by it, and tiles are cut by it.
#pragma once
#include "kernels/common/register_tile.h"

namespace tw {

// Pixels of a tile with `vectors` of channels and at most `most_sums` accumulators; symbolic
// extent: 1. The result is a multiple of `step` (the window of a pool), and at least one.
int64_t row_tile_pixels(const Target& target, std::optional<int64_t> extent, int64_t vectors,
                        int64_t most_sums = 64, int64_t step = 1);
// Tiles for rows of free extent, which lowering fills up to whole tiles. `lines`: there are several
// rows, which may be short. RegisterTile::vectors divides `blocks`.
int64_t free_row_pixels(const Target& target, int64_t vectors, bool lines);
RegisterTile free_row_tile(const Target& target, int64_t blocks, bool lines);
// A tile for rows that lowering fills up to whole tiles. Its pixels are a multiple of `step`, which
// an instruction takes together. RegisterTile::vectors divides `blocks`.
RegisterTile filled_row_tile(const Target& target, int64_t extent, int64_t blocks, int64_t step);
// Rows of `extent` pixels in one tile, out of `lines`: several if whole short rows fit. Fewer tiles
// read the weights less often.
int64_t tile_lines(const Target& target, std::optional<int64_t> lines,
                   std::optional<int64_t> extent, int64_t vectors);
// The blocks of channels that tiles cover. Where no tile of several vectors covers them exactly,
// the last one may cover blocks that do not exist.
enum class Cover : uint8_t { exact, padded };
// The tile of a row. RegisterTile::rows is its pixels. With Cover::exact RegisterTile::vectors
// divides `blocks`. `lines`: lines of the output, if tiles may have several (tile_lines).
RegisterTile row_tile(const Target& target, std::optional<int64_t> extent, int64_t blocks,
                      std::optional<int64_t> lines = 1, int64_t step = 1,
                      Cover cover = Cover::exact);

}  // namespace tw
