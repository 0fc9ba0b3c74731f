// A model of the cycles that a device takes for a product in tiles, and the choice of the fastest
// tile. The formula is in docs/internals/gpu-tiles.md. All numbers are integers, so the choice is
// the same on every machine.
#pragma once
#include <span>

#include "ir/multiprocessors.h"
#include "kernels/device/tiles.h"

namespace tw {

// Blocks of a tile that a multiprocessor holds at one time; 0: none fits.
int64_t resident_blocks(const BlockTile& tile, const TileProblem& problem, const Target& target,
                        const TileInstruction* instruction);

// Estimated registers of a thread: its sums, its parts of the operands, and others
int64_t thread_registers(const BlockTile& tile, DType type, const TileInstruction* instruction);

// Cycles of all blocks; nullopt: the target cannot run the tile.
std::optional<int64_t> tile_cycles(const BlockTile& tile, const TileProblem& problem,
                                   const Target& target, const TileInstruction* instruction);

// Cycles of the product's default tile (block_tile), with its instruction
int64_t product_cycles(const BlockTile& usual, const TileProblem& problem, const Target& target);
// Cycles of a further launch whose threads move that many bytes and issue that many multiply-adds
int64_t launch_cycles(const Target& target, int64_t bytes, int64_t multiply_adds);

// The candidates of one instruction, or of single threads, in the order that breaks ties
std::vector<BlockTile> candidate_tiles(const TileProblem& problem, const Target& target,
                                       const TileInstruction* instruction);

}  // namespace tw
