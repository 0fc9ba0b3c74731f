// How many cycles a device takes for a convolution in windows, and the tile of threads that takes
// the fewest. The formula is in docs/internals/gpu-windows.md. All numbers are integers, so the
// choice is the same on every machine.
#pragma once
#include <limits>

#include "ir/target.h"
#include "kernels/device/windows.h"

namespace tw {

// The one that takes the fewest; nullopt: the target has no threads, or a thread's weights for one
// output are more than registers.
std::optional<WindowTile> window_tile(const WindowProblem& problem, const Target& target);
// Of all blocks; nullopt: the target does not run it. most: beyond it a lower bound will do.
std::optional<int64_t> window_cycles(const WindowTile& tile, const WindowProblem& problem,
                                     const Target& target,
                                     int64_t most = std::numeric_limits<int64_t>::max());
// Lines of taps that one straight line of code multiplies: the others are turns of a loop.
int64_t straight_lines(const WindowTile& tile, const WindowProblem& problem);
// Registers of a thread, estimated.
int64_t window_registers(const WindowTile& tile, const WindowProblem& problem);
// Of the weights that one straight line multiplies: ptxas loads all of them in front of it.
int64_t window_weights(const WindowTile& tile, const WindowProblem& problem);
inline constexpr int64_t kMostWindowWeights = 100;
// Where a window of the block lies in the memory that its threads share, in vectors of one load:
// element [channel block, line, position] is at
//   channel * of_channel + line * of_line + position % apart * of_phase + position / apart
// So positions that neighbouring threads read at one time, which are `apart`, lie side by side. The
// strides keep lines in other banks.
struct WindowBanks {
  int64_t apart = 1, of_phase = 1, of_line = 1, of_channel = 1;
  int64_t reads = 1, copies = 1;  // turns of a warp for one vector of each thread
};
// The strides for which threads that ask at one time meet least in a bank.
WindowBanks window_banks(const WindowTile& tile, const WindowProblem& problem);
// Bytes that a block's threads share.
int64_t window_bytes(const WindowTile& tile, const WindowProblem& problem);
// Why the target cannot run it; "": it can.
std::string window_fault(const WindowTile& tile, const WindowProblem& problem,
                         const Target& target);

}  // namespace tw
