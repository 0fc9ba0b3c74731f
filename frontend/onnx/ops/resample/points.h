// Building blocks of operators that read at computed places: indices as values, and what is read
// there.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

inline Val integer(NodeImport& n, int64_t value) {
  return n.scalar(static_cast<double>(value), DType::i64);
}
// A rank-0 i64 value of a dim expression.
Val integer(NodeImport& n, const Expr& value);
// i64: 0, 1 ... extent - 1 along `axis` of a tensor of this rank, whose other extents are 1.
Val positions(NodeImport& n, const Expr& extent, int64_t rank, int64_t axis);
// An index into `count` places, of any shape, as i64 from their beginning: a negative one counts
// from the end. The run ends where one lies outside; `what` is its name.
Val place_of(NodeImport& n, Val index, const Expr& count, const char* what);
// op::Take.
Val take(NodeImport& n, Val x, Ints places, std::vector<Val> tables, Shape shape,
         bool wrap = false);
// 0 ... rank - 1.
Ints all_axes(int64_t rank);
// A shape of `rank` ones but for this extent.
Shape only_axis(int64_t rank, int64_t axis, const Expr& extent);
// v with axes of extent 1 behind its own.
Val with_trailing(NodeImport& n, Val v, int64_t count);
// A constant tensor of these numbers.
Val table(NodeImport& n, const std::vector<double>& values, std::vector<int64_t> shape,
          DType dtype);

}  // namespace tw::onnx_import
