// Building blocks of operators that read at computed places: indices as values, and reads at these
// indices.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

inline Val integer(NodeImport& n, int64_t value) {
  return n.scalar(static_cast<double>(value), DType::i64);
}
// A rank-0 i64 value of a dim expression.
Val integer(NodeImport& n, const Expr& value);
// i64: 0, 1, ... extent - 1 along `axis` of a tensor of this rank; its other extents are 1.
Val positions(NodeImport& n, const Expr& extent, int64_t rank, int64_t axis);
// An index of any shape into `count` places, as i64 from the beginning; a negative one counts from
// the end. The run ends if one lies outside; `what` names it in the message.
Val place_of(NodeImport& n, Val index, const Expr& count, const char* what);
Val take(NodeImport& n, Val x, Ints places, std::vector<Val> tables, Shape shape,
         bool wrap = false);
// 0 ... rank - 1.
Ints all_axes(int64_t rank);
// A shape of `rank` ones, except for this extent.
Shape only_axis(int64_t rank, int64_t axis, const Expr& extent);
// v with `count` axes of extent 1 behind its own.
Val with_trailing(NodeImport& n, Val v, int64_t count);
Val table(NodeImport& n, const std::vector<double>& values, std::vector<int64_t> shape,
          DType dtype);

}  // namespace tw::onnx_import
