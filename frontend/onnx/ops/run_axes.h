// Axes that are known while running only: a flag for each axis of the input, and shapes made of the
// flags.
#pragma once
#include <functional>

#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {

// i64[rank]: 1 for the axes in the list, which may count from the end.
Val axis_flags(NodeImport& n, Val axes, int64_t rank);
// Lists with an entry for each of `axes` (absent: the first ones) as lists with one for every axis
// of a tensor.
class PerAxis {
 public:
  PerAxis(NodeImport& n, Val axes, int64_t count, int64_t rank);
  // i64[rank]: the entry of each listed axis, that of `fallback` for the others.
  Val list(Val values, Val fallback) const;
  // The axis may be one of them.
  bool touches(int64_t axis) const;

 private:
  NodeImport& n_;
  int64_t count_, rank_;
  Val flags_, wanted_;
};

// The extents of x as i64[rank].
Val extents_of(NodeImport& n, Val x);
// flags ? a : b, element by element.
Val where_flagged(NodeImport& n, Val flags, Val a, Val b);
// The elements of `list` that have no flag, `count` in all, in their order.
Val without_flagged(NodeImport& n, Val list, Val flags, int64_t count);
// Reduces the flagged axes; keep: to extents of 1, else `listed` axes go.
Val reduce_flagged(NodeImport& n, ReduceKind kind, Val x, Val flags, int64_t listed, bool keep);
// pad_by_values.cpp: what Pad gives (n.set) where pads or axes (absent: all) are known while
// running only.
void pad_by_values(NodeImport& n, Val x, PadMode mode, Val pads, Val axes, Val value);
// The result for an axis of a tensor of that rank, one of the first `count`; where it is known
// while running only, one of all results is chosen then.
Val by_axis(NodeImport& n, Val axis, int64_t rank, int64_t count,
            const std::function<Val(int64_t)>& make);
// v, whose extents are those of `shape` or 1, at every point of it.
Val stretched(NodeImport& n, Val v, const Shape& shape);

}  // namespace tw::onnx_import
