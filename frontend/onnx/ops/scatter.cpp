// Importers of writes at places that data decide, and of determinants: functions of the runtime
// library.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"
#include "ir/graph/externs.h"

namespace tw::onnx_import {
namespace {

// The reduction's number in runtime/ops/scatter.h.
int64_t reduction_of(NodeImport& n) {
  const std::string word = n.text("reduction", "none");
  const char* const words[] = {"none", "add", "mul", "max", "min"};
  for (int64_t i = 0; i < 5; ++i)
    if (word == words[i]) return i;
  n.invalid("reduction '" + word + "'");
  return 0;
}

}  // namespace

void import_scatter_elements(NodeImport& n) {
  const Val data = n.in(0), indices = n.in(1), updates = n.in(2);
  if (n.failed()) return;
  if (n.rank(data) == 0) return n.invalid("a scalar has no axis to scatter along");
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(data));
  n.set(n.emit_extern(ExternFunction::scatter_elements, {axis, reduction_of(n)}, {},
                      {data, indices, updates})[0]);
}

void import_scatter_nd(NodeImport& n) {
  const Val data = n.in(0), updates = n.in(2);
  Val indices = n.in(1);
  if (n.failed()) return;
  // If the index's extent is free, it follows from the ranks
  const int64_t points = n.rank(indices) - 1, depth = points + n.rank(data) - n.rank(updates);
  if (points >= 0 && !n.static_dim(indices, points))
    indices = n.with_extent(indices, points, depth);
  n.set(n.emit_extern(ExternFunction::scatter_nd, {reduction_of(n)}, {},
                      {data, indices, updates})[0]);
}

void import_tensor_scatter(NodeImport& n) {
  const Val cache = n.in(0), update = n.in(1);
  const std::string mode = n.text("mode", "linear");
  if (n.failed()) return;
  if (mode != "linear" && mode != "circular") return n.invalid("mode '" + mode + "'");
  const int64_t axis = n.axis(n.integer("axis", -2), n.rank(cache));
  n.set(n.emit_extern(ExternFunction::tensor_scatter, {axis, mode == "circular"}, {},
                      {cache, update, n.maybe(2)})[0]);
}

// Writes each window's element to its place in a tensor of zeros. Places are flat indices into the
// inferred shape; output_shape only pads that shape at its ends.
void import_max_unpool(NodeImport& n) {
  const Val x = n.in(0), places = n.in(1);
  const Ints kernel = n.integers("kernel_shape").value_or(Ints());
  if (n.failed()) return;
  if (static_cast<int64_t>(kernel.size()) != n.rank(x) - 2)
    return n.invalid("kernel_shape needs an entry a spatial axis");
  const size_t axes = kernel.size();
  const Ints strides = n.integers("strides").value_or(Ints(axes, 1)),
             pads = n.integers("pads").value_or(Ints(2 * axes, 0));
  if (strides.size() != axes || pads.size() != 2 * axes)
    return n.invalid("strides and pads need entries for each spatial axis");
  Shape shape = n.shape(x);
  Expr total = 1;
  for (size_t i = 0; i < axes; ++i) {
    for (int64_t v : {kernel[i], strides[i], pads[i], pads[axes + i]})
      if (v < 0 || v > 1 << 20)
        return n.invalid(
            llvm::formatv("an entry of {0} in kernel_shape, strides or pads", v).str());
    shape[i + 2] = n.simplified((shape[i + 2] - Expr(1)) * Expr(strides[i]) +
                                Expr(kernel[i] - pads[i] - pads[axes + i]));
  }
  for (const Expr& extent : shape) total = total * extent;
  total = n.simplified(total);
  const Expr count = n.simplified(element_count(n.shape(x)));
  const Val zeros = n.expand(n.reshape(n.scalar(0, x), {Expr(1)}), {total});
  const Val flat = n.emit_extern(
      ExternFunction::scatter_elements, {0, 0}, {},
      {zeros, n.within(n.reshape(places, {count}), 0, total - Expr(1), "index"),
       n.reshape(x, {count})})[0];
  const Val y = n.reshape(flat, shape);
  if (!n.has(2)) return n.set(y);
  const Shape wanted = n.dims(n.in(2), "the output's shape");
  if (n.failed()) return;
  if (wanted.size() != shape.size()) return n.invalid("output_shape has another rank");
  op::Pad pad;
  for (size_t i = 0; i < shape.size(); ++i) {
    pad.begins.emplace_back(0);
    pad.ends.push_back(n.simplified(wanted[i] - shape[i]));
  }
  n.set(n.emit(std::move(pad), {y}));
}

void import_det(NodeImport& n) {
  const Val x = n.in(0);
  if (!n.failed()) n.set(n.emit_extern(ExternFunction::det, {}, {}, {x})[0]);
}

}  // namespace tw::onnx_import
