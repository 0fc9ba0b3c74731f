// Convolutions that are no products in tiles on a device with threads: grouped ones of few channels
// and depthwise ones. A thread makes neighbouring outputs of a row and of lines below each other,
// and loads the window of the input that these read once.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "kernels/conv/conv.h"
#include "kernels/device/device.h"

namespace tw {

// Where a thread finds the elements that its taps read.
enum class WindowPlace : uint8_t {
  registers,  // its whole window, loaded once
  line,       // one line of taps after the other, loaded in front of each
  block,      // a window of all threads of its block, in the memory that they share
};
inline constexpr std::array kWindowPlaces = {WindowPlace::registers, WindowPlace::line,
                                             WindowPlace::block};

// How threads make the outputs.
struct WindowTile {
  int64_t pixels = 1, lines = 1;  // of one thread: neighbours in a row, and below each other
  // Threads of a block: along a row, along lines, along channels (blocks of them)
  int64_t across = 1, down = 1, deep = 1;
  WindowPlace place = WindowPlace::registers;
  int64_t threads() const { return across * down * deep; }
  bool operator==(const WindowTile&) const = default;
};

// What they are made of.
struct WindowAxis {
  int64_t out = 1, in = 1, taps = 1, stride = 1, dilation = 1;
  // Positions that so many neighbouring outputs read
  int64_t span(int64_t outputs) const { return (outputs - 1) * stride + (taps - 1) * dilation + 1; }
};
struct WindowProblem {
  int64_t images = 1;             // with all spatial axes but the last two
  WindowAxis line, row;           // these; a convolution along one axis has one line
  int64_t outer_taps = 1;         // of the other axes
  int64_t channels = 1;           // of the output, in blocks of `lanes`
  int64_t lanes = 1;              // that lie side by side in a block
  int64_t depth = 1, step = 1;    // input channels of an output, and how many of a step
  int64_t loaded = 1;             // channels of the input that a thread loads side by side
  int64_t bytes = 4, inputs = 1;  // of an element; elements of the whole input
  bool copied = true;             // there may be a window: else elements are read where they are
};

struct WindowStages {
  const char* family() const { return "windows"; }
  Stage window;        // the copy of the input with what is around it; none: read in place
  Stage acc;           // the sums
  ConvLoops sums;      // in whole blocks of the usual tile
  Loop channels;       // of the sums: input channels, or blocks of them; none: one
  Loop channel_lanes;  // of such a block
  Loops taps;          // by spatial axis; none where there is one
  ConvOutput out;
  WindowProblem problem;
  WindowTile tile;  // the usual one
};

// nullopt: not in windows (other types than floats, free sizes of the image).
Expected<std::optional<Lowered<WindowStages>>> lower_conv_in_windows(GroupBuilder& b,
                                                                     const Node& node);
void schedule_windows(ScheduleBuilder& s, const WindowStages& m);

}  // namespace tw
