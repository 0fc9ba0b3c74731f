// Importer of Pad for pads or axes that only the run knows: it computes the place that each element
// reads.
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {
namespace {

Val both(NodeImport& n, Val a, Val b) { return n.binary(BinaryOp::logical_and, a, b); }

Shape dims_from(NodeImport& n, Val list, const char* what) {
  const std::vector<Expr> dims = n.dims(list, what);
  return Shape(dims.begin(), dims.end());
}

}  // namespace

// Element p of an axis reads p - pad, folded back by the mode. Negative pads cut first.
void pad_by_values(NodeImport& n, Val x, PadMode mode, Val pads, Val axes, Val value) {
  const int64_t rank = n.rank(x), count = axes.valid() ? n.need_static_dim(axes, 0, "Pad") : rank;
  if (n.failed()) return;
  if (n.rank(pads) != 1 || n.static_dim(pads, 0) != 2 * count || count > rank)
    return n.invalid(llvm::formatv("{0} axes need twice as many pads", count).str());
  if (rank == 0) return n.set(x);
  const PerAxis placed(n, axes, count, rank);
  const Val zero = integer(n, 0), one = integer(n, 1), none = n.expand(zero, {rank});
  const Val begins = placed.list(n.slice(pads, 0, 0, count), none),
            ends = placed.list(n.slice(pads, 0, count, count), none);
  const Shape shape = dims_from(n, n.add(n.add(extents_of(n, x), begins), ends),
                                "the padded shape");
  if (n.failed()) return;
  Ints places = all_axes(rank);
  std::vector<Val> tables;
  Val inside;
  for (int64_t i = 0; i < rank; ++i) {
    if (!placed.touches(i)) continue;
    const Val begin = n.element_value(begins, i), whole = integer(n, n.dim(x, i)),
              cut = n.sub(zero, n.min(begin, zero));
    // The extent that the cuts leave
    const Val extent = n.add(n.sub(whole, cut), n.min(n.element_value(ends, i), zero));
    Val at = n.sub(positions(n, shape[static_cast<size_t>(i)], rank, i), n.max(begin, zero));
    if (mode == PadMode::constant) {
      const Val here = both(n, n.binary(BinaryOp::le, zero, at), n.less(at, extent));
      inside = inside.valid() ? both(n, inside, here) : here;
    } else if (mode == PadMode::wrap) {
      at = n.binary(BinaryOp::floor_mod, at, n.max(one, extent));
    } else if (mode == PadMode::reflect) {
      const Val period = n.max(one, n.mul(integer(n, 2), n.sub(extent, one)));
      at = n.binary(BinaryOp::floor_mod, at, period);
      at = n.min(at, n.sub(period, at));
    } else {
      at = n.max(zero, n.min(at, n.sub(extent, one)));
    }
    at = n.add(at, cut);
    places[static_cast<size_t>(i)] = -1;
    tables.push_back(at);
  }
  const Val read = take(n, x, std::move(places), std::move(tables), shape);
  n.set(inside.valid()
            ? n.select(inside, read, value.valid() ? n.reshape(value, {}) : n.scalar(0, x))
            : read);
}

}  // namespace tw::onnx_import
