// How many cycles a device takes for a product in tiles, and the tile that takes the fewest. The
// formula is in docs/internals/gpu-tiles.md. All numbers are integers, so the choice is the same on
// every machine.
#pragma once
#include <span>

#include "ir/multiprocessors.h"
#include "kernels/device/tiles.h"

namespace tw {

// Blocks of a tile that a multiprocessor holds at one time; 0: none fits.
int64_t resident_blocks(const BlockTile& tile, const TileProblem& problem, const Target& target,
                        const TileInstruction* instruction);

// Registers of a thread, estimated: its sums, its parts of the operands, and the rest.
int64_t thread_registers(const BlockTile& tile, DType type, const TileInstruction* instruction);

// Of all blocks; nullopt: the target does not run the tile.
std::optional<int64_t> tile_cycles(const BlockTile& tile, const TileProblem& problem,
                                   const Target& target, const TileInstruction* instruction);

// Of the usual tile of the product (block_tile), by its instruction.
int64_t product_cycles(const BlockTile& usual, const TileProblem& problem, const Target& target);
// Of one launch more whose threads move so many bytes and start so many multiply-adds.
int64_t launch_cycles(const Target& target, int64_t bytes, int64_t multiply_adds);

// Those that the choice is among, of one instruction or none, in the order in which ties go.
std::vector<BlockTile> candidate_tiles(const TileProblem& problem, const Target& target,
                                       const TileInstruction* instruction);

}  // namespace tw
