// Sliding windows over spatial axes: the geometry that conv, conv_transpose and pool share.
#pragma once
#include "ir/graph/ops/common.h"

namespace tw {

// Strides, dilations and pads of the right length and range; kernel extents >= 1.
Error check_window(size_t spatial, const Ints& strides, const Ints& dilations, const Ints& pads);
// floor((in + pads - ((kernel - 1) * dilation + 1)) / stride) + 1; in ceil mode ceil, less the
// windows that would start in the end padding (ONNX 1.16 and later). Errors when a constant extent
// is smaller than the window.
Expected<Expr> window_count(size_t axis, const Expr& in, const Expr& kernel, int64_t stride,
                            int64_t dilation, int64_t pad_begin, int64_t pad_end, bool ceil_mode);

// Which rows of a small-side plane meet which rows of a large-side plane. The last spatial axis is
// a row; all others are flattened. large index = small index * stride + tap * dilation - pad.
struct WindowGeometry {
  WindowGeometry(std::span<const int64_t> large, std::span<const int64_t> small,
                 std::span<const int64_t> kernel, const Ints& strides, const Ints& dilations,
                 const Ints& pads);
  // Of the last axis: small indices [begin, end), large = small * stride + shift
  struct Tap {
    int64_t begin, end, shift;
  };
  // Rows of the small plane, their length, outer taps (all kernel axes but the last)
  int64_t rows, row, taps;
  int64_t stride;                    // of the last axis
  int64_t large_plane, small_plane;  // elements
  std::vector<int64_t> start;        // [rows * taps]: offset of the large row, -1: outside
  std::vector<Tap> inner;            // by tap of the last axis
};

}  // namespace tw
