// The source positions of a resized axis. The evaluator and the lowering share them, so both use
// the same taps.
#pragma once
#include "ir/graph/ops.h"

namespace tw {

struct ResizeTap {
  int64_t index;
  double weight;
};
// The source indices and weights of each of the `out` positions along `axis`. The source extent
// `in` is >= 1, and indices are clamped to the edge. Nearest has one tap, linear two, cubic four (a
// = cubic_a). A scale that is a quotient of extents gives exact coordinates. Another scale is an
// f32 number, as in the ONNX operator, and its coordinates are computed in f32. Source: ONNX
// operator Resize, version 19.
std::vector<std::vector<ResizeTap>> resize_taps(const op::Resize& resize, size_t axis, int64_t in,
                                                int64_t out);

}  // namespace tw
