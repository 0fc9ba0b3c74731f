// Axes that only the run knows: a flag for each axis of the input, and shapes made from the flags.
#pragma once
#include <functional>

#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {

// i64[rank]: 1 for each axis in the list. Entries may count from the end.
Val axis_flags(NodeImport& n, Val axes, int64_t rank);
// Turns lists with an entry for each of `axes` (absent: the first axes) into lists with an entry
// for every axis of a tensor.
class PerAxis {
 public:
  PerAxis(NodeImport& n, Val axes, int64_t count, int64_t rank);
  // i64[rank]: the entry of each listed axis, and that of `fallback` for the others.
  Val list(Val values, Val fallback) const;
  // True if the axis may be among `axes`.
  bool touches(int64_t axis) const;

 private:
  NodeImport& n_;
  int64_t count_, rank_;
  Val flags_, wanted_;
};

Val extents_of(NodeImport& n, Val x);
// flags ? a : b, element by element.
Val where_flagged(NodeImport& n, Val flags, Val a, Val b);
// The `count` elements of `list` without a flag, in their order.
Val without_flagged(NodeImport& n, Val list, Val flags, int64_t count);
// Reduces the flagged axes: to extents of 1 if `keep`; otherwise the `listed` axes are dropped.
Val reduce_flagged(NodeImport& n, ReduceKind kind, Val x, Val flags, int64_t listed, bool keep);
// Pad for pads or axes (absent: all) that only the run knows; sets the node's output. In
// pad_by_values.cpp.
void pad_by_values(NodeImport& n, Val x, PadMode mode, Val pads, Val axes, Val value);
// make(axis) for an axis of a tensor with this rank, one of the first `count`. If only the run
// knows the axis, it chooses among the results of all of them.
Val by_axis(NodeImport& n, Val axis, int64_t rank, int64_t count,
            const std::function<Val(int64_t)>& make);
// Expands v, whose extents are those of `shape` or 1, to `shape`.
Val stretched(NodeImport& n, Val v, const Shape& shape);

}  // namespace tw::onnx_import
