// Convolutions that do not become products in tiles, on a device with threads: grouped ones of few
// channels, and depthwise ones. A thread computes neighbouring outputs of a row and of lines below
// each other. It loads the window of the input that these outputs read only once.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "kernels/conv/conv.h"
#include "kernels/device/device.h"

namespace tw {

// The place from which a thread's taps read
enum class WindowPlace : uint8_t {
  registers,  // the thread's whole window, loaded once to registers
  line,       // one line of taps at a time, loaded before it is used
  block,      // a window for all threads of its block, in the memory they share
};
inline constexpr std::array kWindowPlaces = {WindowPlace::registers, WindowPlace::line,
                                             WindowPlace::block};

// The outputs of a thread, and the threads of a block
struct WindowTile {
  int64_t pixels = 1, lines = 1;  // outputs of a thread along a row, and along lines
  // Threads of a block: along a row, along lines, along blocks of channels
  int64_t across = 1, down = 1, deep = 1;
  WindowPlace place = WindowPlace::registers;
  int64_t threads() const { return across * down * deep; }
  bool operator==(const WindowTile&) const = default;
};

// Sizes of a convolution along one axis
struct WindowAxis {
  int64_t out = 1, in = 1, taps = 1, stride = 1, dilation = 1;
  // Positions that `outputs` neighbouring outputs read
  int64_t span(int64_t outputs) const { return (outputs - 1) * stride + (taps - 1) * dilation + 1; }
};
struct WindowProblem {
  int64_t images = 1;             // images times the extents of all spatial axes but the last two
  WindowAxis line, row;           // the last two axes; with one spatial axis there is one line
  int64_t outer_taps = 1;         // taps of the other axes
  int64_t channels = 1;           // blocks of output channels, of `lanes` each
  int64_t lanes = 1;              // adjacent channels of a block
  int64_t depth = 1, step = 1;    // input channels of an output, and those of one step
  int64_t loaded = 1;             // adjacent input channels that a thread loads
  int64_t bytes = 4, inputs = 1;  // bytes of an element; elements of the whole input
  bool copied = true;             // true: there may be a window; false: elements are read in place
};

struct WindowStages {
  const char* family() const { return "windows"; }
  Stage window;    // copy of the input with its padding; none: read in place
  Stage acc;       // the sums
  ConvLoops sums;  // in whole blocks of the default tile
  Loop channels;   // loop of the sums over input channels, or blocks of them; none: there is one
  Loop channel_lanes;  // loop in such a block
  Loops taps;          // by spatial axis; none for an extent of 1
  ConvOutput out;
  WindowProblem problem;
  WindowTile tile;  // the default one
};

// The problem and the usual tile of a convolution as defined. nullopt: it is not computed in
// windows (other types than floats, or free image sizes).
std::optional<WindowStages> windows_of(const ScheduleBuilder& s, const ConvStages& m);
// Arranges the definition so. The blocks of its tensors are laid out before.
WindowStages arrange_in_windows(ScheduleBuilder& s, const ConvStages& m,
                                const WindowStages& stages);
void schedule_windows(ScheduleBuilder& s, const WindowStages& m);

}  // namespace tw
