// Where a resized axis reads: shared by the evaluator and by the lowering, so that both take the
// same taps.
#pragma once
#include "ir/graph/ops.h"

namespace tw {

struct ResizeTap {
  int64_t index;
  double weight;
};
// For each of `out` positions along `axis` (source extent `in` >= 1) the source indices, clamped to
// the edge, and their weights: one tap for nearest, two for linear, four for cubic (a = cubic_a).
// A scale that is a quotient of extents gives exact coordinates. Others are f32 numbers, as in the
// ONNX operator, and so is what is computed of them. Source: ONNX operator Resize, version 19.
std::vector<std::vector<ResizeTap>> resize_taps(const op::Resize& resize, size_t axis, int64_t in,
                                                int64_t out);

}  // namespace tw
