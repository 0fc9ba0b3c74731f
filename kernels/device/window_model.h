// A model of the cycles that a device takes for a convolution in windows, and the choice of the
// fastest tile of threads. The formula is in docs/internals/gpu-windows.md. All numbers are
// integers, so the choice is the same on every machine.
#pragma once
#include <limits>

#include "ir/target.h"
#include "kernels/device/windows.h"

namespace tw {

// The fastest tile. nullopt: the target has no threads, or the weights of a thread for one output
// exceed its registers.
std::optional<WindowTile> window_tile(const WindowProblem& problem, const Target& target);
// Cycles of all blocks; nullopt: the target cannot run the tile. Above `most` the result may be a
// lower bound.
std::optional<int64_t> window_cycles(const WindowTile& tile, const WindowProblem& problem,
                                     const Target& target,
                                     int64_t most = std::numeric_limits<int64_t>::max());
// Lines of taps that straight-line code multiplies. A loop runs over the other lines.
int64_t straight_lines(const WindowTile& tile, const WindowProblem& problem);
// Estimated registers of a thread
int64_t window_registers(const WindowTile& tile, const WindowProblem& problem);
// Weights that straight-line code multiplies. ptxas loads all of them in front of it.
int64_t window_weights(const WindowTile& tile, const WindowProblem& problem);
inline constexpr int64_t kMostWindowWeights = 100;
// The layout of a block's window in the memory that its threads share, in vectors of one load.
// Element [channel block, line, position] is at
//   channel * of_channel + line * of_line + position % apart * of_phase + position / apart
// Neighbouring threads read positions that are `apart` from each other at one time, and these are
// adjacent in the layout. The strides keep lines in different banks.
struct WindowBanks {
  int64_t apart = 1, of_phase = 1, of_line = 1, of_channel = 1;
  int64_t reads = 1, copies = 1;  // turns of a warp for one vector of each thread
};
// The strides with which the threads that ask together share banks least
WindowBanks window_banks(const WindowTile& tile, const WindowProblem& problem);
// Bytes that a block's threads share
int64_t window_bytes(const WindowTile& tile, const WindowProblem& problem);
// The reason why the target cannot run the tile; "": it can.
std::string window_fault(const WindowTile& tile, const WindowProblem& problem,
                         const Target& target);

}  // namespace tw
