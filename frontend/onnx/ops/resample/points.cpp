#include "frontend/onnx/ops/resample/points.h"

#include <numeric>

namespace tw::onnx_import {

Val integer(NodeImport& n, const Expr& value) {
  const Expr known = n.simplified(value);
  if (const auto fixed = as_const(known)) return integer(n, *fixed);
  return n.builder().known({known}, DType::i64, {});
}

Shape only_axis(int64_t rank, int64_t axis, const Expr& extent) {
  Shape shape(static_cast<size_t>(rank), Expr(1));
  shape[static_cast<size_t>(axis)] = extent;
  return shape;
}

Val positions(NodeImport& n, const Expr& extent, int64_t rank, int64_t axis) {
  return n.failed() ? Val{}
                    : n.emit(op::Iota{only_axis(rank, axis, n.simplified(extent)), axis}, {});
}

Val place_of(NodeImport& n, Val index, const Expr& count, const char* what) {
  const Val given = n.within(index, Expr(0) - count, count - Expr(1), what);
  return n.failed() ? Val{} : n.emit(op::Gather{0}, {positions(n, count, 1, 0), given});
}

Val take(NodeImport& n, Val x, Ints places, std::vector<Val> tables, Shape shape, bool wrap) {
  if (n.failed()) return {};
  for (Expr& e : shape) e = n.simplified(e);
  tables.insert(tables.begin(), x);
  return n.emit(op::Take{std::move(places), wrap, std::move(shape)}, std::move(tables));
}

Ints all_axes(int64_t rank) {
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Val with_trailing(NodeImport& n, Val v, int64_t count) {
  Shape shape = n.shape(v);
  shape.insert(shape.end(), static_cast<size_t>(count), Expr(1));
  return n.reshape(v, std::move(shape));
}

Val table(NodeImport& n, const std::vector<double>& values, std::vector<int64_t> shape,
          DType dtype) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return n.builder().add_constant(tensor);
}

}  // namespace tw::onnx_import
