// Sliding windows over spatial axes: the geometry that conv, conv_transpose and pool share.
#pragma once
#include "ir/graph/ops/common.h"

namespace tw {

// Requires strides, dilations and pads of the right count and range.
Error check_window(size_t spatial, const Ints& strides, const Ints& dilations, const Ints& pads);
// floor((in + pads - ((kernel - 1) * dilation + 1)) / stride) + 1. Ceil mode takes ceil, minus the
// windows that would start in the end padding (ONNX 1.16 and later). Error: a constant extent is
// smaller than the window.
Expected<Expr> window_count(size_t axis, const Expr& in, const Expr& kernel, int64_t stride,
                            int64_t dilation, int64_t pad_begin, int64_t pad_end, bool ceil_mode);

// Pairs rows of a small-side plane with rows of a large-side plane: large index = small index *
// stride + tap * dilation - pad. The last spatial axis is a row. The other axes are flattened.
struct WindowGeometry {
  WindowGeometry(std::span<const int64_t> large, std::span<const int64_t> small,
                 std::span<const int64_t> kernel, const Ints& strides, const Ints& dilations,
                 const Ints& pads);
  // One tap of the last axis. It covers small indices [begin, end), with large = small * stride +
  // shift.
  struct Tap {
    int64_t begin, end, shift;
  };
  // rows: of the small plane; row: their length; taps: over all kernel axes but the last
  int64_t rows, row, taps;
  int64_t stride;                    // along the last axis
  int64_t large_plane, small_plane;  // elements of each plane
  std::vector<int64_t> start;        // [rows * taps] offset of the large row; -1: outside
  std::vector<Tap> inner;            // one for each tap of the last axis
};

}  // namespace tw
