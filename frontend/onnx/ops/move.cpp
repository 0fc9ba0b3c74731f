// Operators that move elements: Transpose, Concat, Split, Slice, Gather, Pad, blocks of space and depth.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kFar = int64_t{1} << 41;  // beyond every extent, far from overflow

// An index that counts from the end when negative, as a plain one. Those beyond every extent are cut to just outside.
Expr from_start(NodeImport& n, const Expr& index, const Expr& extent) {
  const Bounds bounds = constant_bounds(index, n.builder().symbols());
  if (bounds.min && *bounds.min >= kFar) return extent;
  if (bounds.max && *bounds.max <= -kFar) return -1;
  if (bounds.min && *bounds.min >= 0) return index;
  if (bounds.max && *bounds.max < 0) return index + extent;
  return select(lt(index, 0), index + extent, index);
}

struct Part {
  Expr start, size;
};

// Elements start, start + step ... before end of an axis, by the rules of ONNX Slice (NumPy's, with clamping).
Part slice_part(NodeImport& n, const Expr& start, const Expr& end, int64_t step, const Expr& extent) {
  const Expr s = n.simplified(from_start(n, start, extent)), e = n.simplified(from_start(n, end, extent));
  const Expr low = 0, last = n.simplified(extent - 1), before = -1;
  if (step > 0) {
    const Expr from = n.simplified(max(low, min(s, extent))), to = n.simplified(max(low, min(e, extent)));
    return {from, n.simplified(max(low, ceil_div(n.simplified(to - from), step)))};
  }
  const Expr from = n.simplified(max(low, min(s, last))), to = n.simplified(max(before, min(e, last)));
  return {from, n.simplified(max(low, ceil_div(n.simplified(from - to), -step)))};
}

}  // namespace

void import_transpose(NodeImport& n, int) {
  const Val x = n.in(0);
  Ints reversed(static_cast<size_t>(n.rank(x)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Ints perm = n.integers("perm").value_or(reversed), sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed) return n.invalid("attribute perm is no permutation of the axes");
  n.set(n.transpose(x, std::move(perm)));
}

void import_concat(NodeImport& n, int) {
  std::vector<Val> parts;
  for (size_t i = 0; i < n.input_count(); ++i) parts.push_back(n.in(i));
  const Val first = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 1), n.rank(first));
  n.set(parts.size() == 1 ? first : n.emit(op::Concat{axis}, std::move(parts)));
}

// Sizes from the input or attribute `split`, else equal parts; with num_outputs the last may be smaller.
void import_split(NodeImport& n, int) {
  const Val x = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(x));
  const auto count = static_cast<int64_t>(n.output_count());
  std::vector<Expr> sizes;
  if (n.has(1)) {
    sizes = n.dims(n.in(1), "the split");
  } else if (const auto given = n.integers("split")) {
    sizes.assign(given->begin(), given->end());
  } else if (const std::optional<int64_t> extent = n.static_dim(x, axis)) {
    const int64_t part = (*extent + count - 1) / std::max<int64_t>(count, 1);
    for (int64_t i = 0; i < count; ++i) sizes.emplace_back(std::clamp<int64_t>(*extent - i * part, 0, part));
  } else {
    sizes.assign(static_cast<size_t>(count), n.simplified(floor_div(n.dim(x, axis), Expr(count))));
  }
  if (n.failed()) return;
  if (static_cast<int64_t>(sizes.size()) != count) return n.invalid(llvm::formatv("{0} sizes for {1} outputs", sizes.size(), count).str());
  Expr start = 0, total = 0;
  for (const Expr& size : sizes) {
    if (const auto fixed = as_const(size); fixed && (*fixed < 0 || *fixed > kFar)) return n.invalid("a negative or huge split size");
    total = total + size;
  }
  const auto all = as_const(n.simplified(total)), extent = n.static_dim(x, axis);
  if (all && extent && *all != *extent) return n.invalid(llvm::formatv("split sizes add up to {0}, the axis has {1}", *all, *extent).str());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (n.wanted(i)) n.set(i, n.slice(x, axis, start, sizes[i]));
    start = start + sizes[i];
  }
}

// starts, ends and axes are attributes before version 10 and inputs since.
void import_slice(NodeImport& n, int) {
  const Val x = n.in(0);
  const bool inputs = n.version() >= 10;
  const auto list = [&](size_t input, const char* attribute) -> std::vector<Expr> {
    if (inputs) return n.dims(n.in(input), attribute);
    const Ints values = n.integers(attribute).value_or(Ints());
    return {values.begin(), values.end()};
  };
  const std::vector<Expr> starts = list(1, "starts"), ends = list(2, "ends");
  std::optional<Ints> axes = inputs ? std::nullopt : n.integers("axes");
  if (n.has(3)) axes = n.constants(n.in(3), "axes");
  Ints steps = n.has(4) ? n.constants(n.in(4), "steps") : Ints(starts.size(), 1);
  if (!axes) {
    axes = Ints(starts.size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (n.failed()) return;
  if (ends.size() != starts.size() || axes->size() != starts.size() || steps.size() != starts.size())
    return n.invalid("starts, ends, axes and steps differ in length");
  op::Slice s;
  s.starts.assign(static_cast<size_t>(n.rank(x)), Expr(0));
  s.steps.assign(static_cast<size_t>(n.rank(x)), 1);
  s.sizes = n.shape(x);
  n.axes(*axes, n.rank(x));  // no duplicates
  for (size_t i = 0; i < starts.size() && !n.failed(); ++i) {
    const auto axis = static_cast<size_t>(n.axis((*axes)[i], n.rank(x)));
    const int64_t step = std::clamp(steps[i], -kFar, kFar);
    if (step == 0) return n.invalid("a step of 0");
    const Part part = slice_part(n, starts[i], ends[i], step, s.sizes[axis]);
    s.starts[axis] = part.start;
    s.sizes[axis] = part.size;
    s.steps[axis] = step;
  }
  n.set(n.emit(std::move(s), {x}));
}

void import_gather(NodeImport& n, int) {
  const Val x = n.in(0), indices = n.in(1);
  n.set(n.emit(op::Gather{n.axis(n.integer("axis", 0), n.rank(x))}, {x, indices}));
}

namespace {

std::optional<PadMode> pad_mode(NodeImport& n) {
  const std::string mode = n.text("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  n.invalid("attribute mode is '" + mode + "'");
  return std::nullopt;
}

// Negative pads cut: slices them off and leaves zeros in begins and ends.
Val crop(NodeImport& n, Val x, Shape& begins, Shape& ends) {
  for (int64_t i = 0; i < n.rank(x); ++i) {
    const auto axis = static_cast<size_t>(i);
    const int64_t before = std::min<int64_t>(as_const(begins[axis]).value_or(0), 0);
    const int64_t after = std::min<int64_t>(as_const(ends[axis]).value_or(0), 0);
    if (before == 0 && after == 0) continue;
    x = n.slice(x, i, -before, n.simplified(n.dim(x, i) + Expr(before) + Expr(after)));
    if (before < 0) begins[axis] = 0;
    if (after < 0) ends[axis] = 0;
  }
  return x;
}

}  // namespace

// pads: all begins, then all ends; of all axes or of those in the input `axes`.
void import_pad(NodeImport& n, int) {
  Val x = n.in(0), value;
  const std::optional<PadMode> mode = pad_mode(n);
  std::vector<Expr> pads;
  if (n.version() >= 11) {
    pads = n.dims(n.in(1), "the pads");
    value = n.maybe(2);
  } else {
    const Ints given = n.integers("pads").value_or(Ints());
    pads.assign(given.begin(), given.end());
    if (n.real("value", 0) != 0) value = n.scalar(n.real("value", 0), x);
  }
  const auto rank = static_cast<size_t>(n.rank(x));
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has(3)) {
    axes = n.constants(n.in(3), "the list of axes");
    for (int64_t& a : axes) a = n.axis(a, n.rank(x));
  }
  if (n.failed()) return;
  if (pads.size() != 2 * axes.size()) return n.invalid(llvm::formatv("{0} pads for {1} axes", pads.size(), axes.size()).str());
  Shape begins(rank, Expr(0)), ends(rank, Expr(0));
  bool any = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    for (const Expr& pad : {pads[i], pads[axes.size() + i]}) {
      const auto fixed = as_const(pad);
      if (fixed && (*fixed > kFar || *fixed < -kFar)) return n.invalid("a huge pad");
      any = any || !fixed || *fixed > 0;
    }
    begins[axis] = pads[i];
    ends[axis] = pads[axes.size() + i];
  }
  x = crop(n, x, begins, ends);
  if (!any) return n.set(x);
  if (value.valid() && n.rank(value) > 0) value = n.reshape(value, {});
  std::vector<Val> inputs = {x};
  if (value.valid() && *mode == PadMode::constant) inputs.push_back(value);
  n.set(n.emit(op::Pad{*mode, std::move(begins), std::move(ends)}, std::move(inputs)));
}

namespace {

// b x b blocks between space and depth; both work on [N, C, H, W].
struct Blocks {
  int64_t size = 1;
  bool columns_first = false;  // channel = (depth, block) instead of (block, depth)
};

Blocks read_blocks(NodeImport& n, Val x) {
  const int64_t block = n.integer("blocksize", 0);
  if (!n.failed() && (block < 1 || block > (int64_t{1} << 20))) n.invalid("attribute blocksize must be positive");
  if (!n.failed() && n.rank(x) != 4) n.invalid(llvm::formatv("input of rank {0}, 4 is needed", n.rank(x)).str());
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.invalid("attribute mode is '" + mode + "', not DCR or CRD");
  return n.failed() ? Blocks() : Blocks{block, mode == "CRD"};
}

}  // namespace

void import_depth_to_space(NodeImport& n, int) {
  const Val x = n.in(0);
  const auto [b, columns_first] = read_blocks(n, x);
  const int64_t channels = n.failed() ? 1 : n.need_static_dim(x, 1, "DepthToSpace");
  if (!n.failed() && channels % (b * b) != 0) return n.invalid(llvm::formatv("{0} channels in blocks of {1}", channels, b * b).str());
  const Expr batch = n.dim(x, 0), depth = channels / (b * b), rows = n.dim(x, 2), columns = n.dim(x, 3);
  const Val parted = columns_first ? n.transpose(n.reshape(x, {batch, depth, b, b, rows, columns}), {0, 1, 4, 2, 5, 3})
                                   : n.transpose(n.reshape(x, {batch, b, b, depth, rows, columns}), {0, 3, 4, 1, 5, 2});
  n.set(n.reshape(parted, {batch, depth, rows * Expr(b), columns * Expr(b)}));
}

void import_space_to_depth(NodeImport& n, int) {
  const Val x = n.in(0);
  const auto [b, columns_first] = read_blocks(n, x);
  const Expr batch = n.dim(x, 0), depth = n.dim(x, 1);
  const Expr rows = n.simplified(floor_div(n.dim(x, 2), Expr(b))), columns = n.simplified(floor_div(n.dim(x, 3), Expr(b)));
  const Val parted = n.reshape(x, {batch, depth, rows, b, columns, b});
  const Val moved = n.transpose(parted, columns_first ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  n.set(n.reshape(moved, {batch, depth * Expr(b * b), rows, columns}));
}

}  // namespace tw::onnx_import
