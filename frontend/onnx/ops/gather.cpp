// Importers of gathers with indices for each element of the result: GatherElements, GatherND,
// ReverseSequence; and of CumSum and CumProd.
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {

// out[i, j ...] = x[i, indices[i, j ...] ...], with the index at `axis`
void import_gather_elements(NodeImport& n) {
  const Val x = n.in(0), indices = n.in(1);
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(x));
  if (n.failed()) return;
  if (n.rank(x) != n.rank(indices))
    return n.invalid(
        llvm::formatv("indices of rank {0} for data of rank {1}", n.rank(indices), n.rank(x))
            .str());
  Ints places = all_axes(n.rank(x));
  places[static_cast<size_t>(axis)] = -1;
  n.set(take(n, x, std::move(places), {indices}, n.shape(indices), true));
}

// The last axis of the indices is a point in the axes of x behind the batch axes. The remaining
// axes of x are copied.
void import_gather_nd(NodeImport& n) {
  const Val x = n.in(0);
  Val indices = n.in(1);
  const int64_t batch = n.integer("batch_dims", 0), rank = n.rank(x), outer = n.rank(indices) - 1;
  if (n.failed()) return;
  if (outer < 0) return n.invalid("indices without an axis");
  const int64_t depth = n.need_static_dim(indices, outer, "GatherND");
  if (n.failed()) return;
  if (batch < 0 || batch > outer || depth < 1 || batch + depth > rank)
    return n.invalid(
        llvm::formatv("points of {0} coordinates behind {1} batch axes in data of rank {2}", depth,
                      batch, rank)
            .str());
  for (int64_t i = 0; i < batch; ++i) indices = n.with_extent(indices, i, n.dim(x, i));
  if (n.failed()) return;
  const int64_t rest = rank - batch - depth;
  Ints places;
  Shape shape(n.shape(indices).begin(), n.shape(indices).end() - 1);
  std::vector<Val> tables;
  for (int64_t i = 0; i < rank; ++i) {
    if (i < batch || i >= batch + depth) {
      places.push_back(i < batch ? i : outer + i - batch - depth);
      continue;
    }
    places.push_back(-1);
    const Val coordinate = n.slice(indices, outer, i - batch, 1);
    tables.push_back(
        with_trailing(n, n.reshape(coordinate, Shape(shape.begin(), shape.begin() + outer)), rest));
  }
  for (int64_t i = rank - rest; i < rank; ++i) shape.push_back(n.dim(x, i));
  n.set(take(n, x, std::move(places), std::move(tables), std::move(shape), true));
}

// Step t of a sequence of length l is step l - 1 - t for t < l, else t.
void import_reverse_sequence(NodeImport& n) {
  const Val x = n.in(0);
  const int64_t time = n.integer("time_axis", 0), batch = n.integer("batch_axis", 1),
                rank = n.rank(x);
  if (n.failed()) return;
  if (rank < 2 || time < 0 || time > 1 || batch < 0 || batch > 1 || time == batch)
    return n.invalid("time_axis and batch_axis must be 0 and 1");
  const Val lengths = n.reshape(n.within(n.in(1), 0, n.dim(x, time), "length"),
                                only_axis(rank, batch, n.dim(x, batch)));
  const Val step = positions(n, n.dim(x, time), rank, time);
  const Val from = n.select(n.less(step, lengths), n.sub(n.sub(lengths, integer(n, 1)), step),
                            step);
  Ints places = all_axes(rank);
  places[static_cast<size_t>(time)] = -1;
  n.set(take(n, x, std::move(places), {from}, n.shape(x)));
}

void import_cumulate(NodeImport& n, ReduceKind kind) {
  const Val x = n.in(0), axis = n.in(1);
  const bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
  if (n.failed()) return;
  if (n.rank(x) == 0) return n.invalid("an input of rank 0 has no axis");
  n.set(by_axis(n, axis, n.rank(x), n.rank(x),
                [&](int64_t a) { return n.emit(op::Cumulate{kind, a, exclusive, reverse}, {x}); }));
}

}  // namespace tw::onnx_import
