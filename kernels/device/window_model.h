// How many cycles a device takes for a convolution in windows, and the tile of threads that takes
// the fewest. The formula is in docs/internals/gpu-windows.md. All numbers are integers, so the
// choice is the same on every machine.
#pragma once
#include "ir/target.h"
#include "kernels/device/windows.h"

namespace tw {

// The one that takes the fewest; nullopt: the target has no threads, or a thread's weights for one
// output are more than registers.
std::optional<WindowTile> window_tile(const WindowProblem& problem, const Target& target);
// Of all blocks; nullopt: the target does not run it.
std::optional<int64_t> window_cycles(const WindowTile& tile, const WindowProblem& problem,
                                     const Target& target);
// Registers of a thread, estimated.
int64_t window_registers(const WindowTile& tile, const WindowProblem& problem);
// Of the weights that one straight line multiplies: ptxas loads all of them in front of it.
int64_t window_weights(const WindowTile& tile, const WindowProblem& problem);
inline constexpr int64_t kMostWindowWeights = 100;
// Bytes that a block's threads share.
int64_t window_bytes(const WindowTile& tile, const WindowProblem& problem);
// Why the target cannot run it; "": it can.
std::string window_fault(const WindowTile& tile, const WindowProblem& problem,
                         const Target& target);

}  // namespace tw
