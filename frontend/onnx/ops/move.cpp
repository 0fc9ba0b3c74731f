// Importers of operators that move elements: Transpose, Concat, Split, Slice, Gather, Pad, blocks
// of space and depth.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/run_axes.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kFar = int64_t{1} << 41;  // beyond every extent, far from overflow
constexpr int64_t kMostStep = 1 << 20;      // the largest step of op::Slice

// The index counted from the start of the axis; a negative one counts from the end. An index beyond
// every extent is cut to just outside.
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

// Elements start, start + step, ... before `end` of an axis, by the rules of ONNX Slice: NumPy's,
// with clamping.
Part slice_part(NodeImport& n, const Expr& start, const Expr& end, int64_t step,
                const Expr& extent) {
  const auto near = [](const Expr& at) {
    const auto given = as_const(at);
    return given ? Expr(std::clamp(*given, -kFar, kFar)) : at;
  };
  const Expr s = n.simplified(from_start(n, near(start), extent)),
             e = n.simplified(from_start(n, near(end), extent));
  const Expr low = 0, last = n.simplified(extent - 1), before = -1;
  if (step > 0) {
    const Expr from = n.simplified(max(low, min(s, extent))),
               to = n.simplified(max(low, min(e, extent)));
    return {from, n.simplified(max(low, ceil_div(n.simplified(to - from), step)))};
  }
  const Expr from = n.simplified(max(low, min(s, last))),
             to = n.simplified(max(before, min(e, last)));
  return {from, n.simplified(max(low, ceil_div(n.simplified(from - to), -step)))};
}

// As Part, but computed in a run; s, e and step have rank 0.
struct PartValues {
  Val start, size;
};

PartValues part_values(NodeImport& n, Val s, Val e, Val given_step, const Expr& extent) {
  const Val zero = n.scalar(0, DType::i64), one = n.scalar(1, DType::i64),
            minus = n.scalar(-1, DType::i64), d = n.dim_value(extent);
  const auto wrapped = [&](Val v) { return n.select(n.less(v, zero), n.add(v, d), v); };
  const Val far = n.scalar(static_cast<double>(kFar), DType::i64),
            step = n.max(n.sub(zero, far), n.min(given_step, far)), forward = n.less(zero, step);
  const Val low = n.select(forward, zero, minus), high = n.select(forward, d, n.sub(d, one));
  const auto inside = [&](Val v) { return n.max(low, n.min(wrapped(v), high)); };
  const Val from = n.max(zero, inside(s)), to = inside(e),
            stride = n.max(one, n.select(forward, step, n.sub(zero, step)));
  const Val length = n.max(zero, n.min(d, n.select(forward, n.sub(to, from), n.sub(from, to))));
  return {from, n.div(n.add(length, n.sub(stride, one)), stride)};
}

// Slices if data decide the axes or steps: gathers by position along every axis that may be among
// the axes.
void slice_by_positions(NodeImport& n, Val x, Val starts, Val ends, Val axes, Val steps,
                        int64_t count) {
  const int64_t rank = n.rank(x);
  const Val zero = n.scalar(0, DType::i64), one = n.scalar(1, DType::i64);
  if (steps.valid())
    steps = n.only_where(steps, n.binary(BinaryOp::ne, steps, n.scalar(0, steps)), "a step of 0");
  if (n.failed()) return;
  const PerAxis placed(n, axes, count, rank);
  const Val zeros = n.expand(zero, {rank}), ones = n.expand(one, {rank}),
            from = placed.list(starts, zeros), to = placed.list(ends, extents_of(n, x)),
            by = steps.valid() ? placed.list(steps, ones) : ones;
  Val result = x;
  for (int64_t axis = 0; axis < rank && !n.failed(); ++axis) {
    if (!placed.touches(axis)) continue;
    const Val step = n.element_value(by, axis);
    const PartValues part = part_values(n, n.element_value(from, axis), n.element_value(to, axis),
                                        step, n.dim(x, axis));
    const Expr size = n.symbol_of(part.size, 0, n.dim(x, axis));
    result = n.emit(op::Gather{axis, true},
                    {result, n.add(part.start, n.mul(n.iota({size}, 0), step))});
  }
  n.set(result);
}

// True if op::Slice can take the steps, as far as they are known.
bool steps_fit(NodeImport& n, Val steps) {
  const auto known = steps.valid() ? n.known(steps) : std::nullopt;
  return !known || std::ranges::all_of(*known, [](const Expr& step) {
    const int64_t by = as_const(step).value_or(0);
    return by <= kMostStep && by >= -kMostStep;
  });
}

// The entry, if it is known before the run.
std::optional<Expr> known_entry(NodeImport& n, Val list, int64_t i) {
  return list.valid() ? n.builder().known_element(list, i) : std::nullopt;
}

}  // namespace

void import_transpose(NodeImport& n) {
  const Val x = n.in(0);
  Ints reversed(static_cast<size_t>(n.rank(x)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Ints perm = n.integers("perm").value_or(reversed), sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed) return n.invalid("attribute perm is no permutation of the axes");
  n.set(n.transpose(x, std::move(perm)));
}

void import_concat(NodeImport& n) {
  std::vector<Val> parts;
  for (size_t i = 0; i < n.input_count(); ++i) parts.push_back(n.in(i));
  const Val first = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 1), n.rank(first));
  n.set(parts.size() == 1 ? first : n.emit(op::Concat{axis}, std::move(parts)));
}

// The sizes come from the input or the attribute `split`. Otherwise the parts are equal; with
// num_outputs the last one may be smaller.
void import_split(NodeImport& n) {
  Val x = n.in(0);
  const int64_t axis = n.axis(n.integer("axis", 0), n.rank(x));
  const auto count = static_cast<int64_t>(n.output_count());
  std::vector<Expr> sizes;
  bool covers = false;  // the sizes cover the axis, whatever its extent
  if (n.has(1)) {
    sizes = n.dims(n.in(1), "the split");
  } else if (const auto given = n.integers("split")) {
    sizes.assign(given->begin(), given->end());
  } else if (const Expr extent = n.dim(x, axis);
             n.integer("num_outputs", 0) == 0 && !as_const(extent)) {
    sizes.assign(static_cast<size_t>(count), n.simplified(floor_div(extent, Expr(count))));
  } else {
    covers = true;
    const Expr part = floor_div(extent + (count - 1), Expr(std::max<int64_t>(count, 1)));
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(n.simplified(max(min(extent - part * i, part), 0)));
  }
  if (n.failed()) return;
  if (static_cast<int64_t>(sizes.size()) != count)
    return n.invalid(llvm::formatv("{0} sizes for {1} outputs", sizes.size(), count).str());
  Expr start = 0, total = 0;
  for (const Expr& size : sizes) {
    if (const auto fixed = as_const(size); fixed && (*fixed < 0 || *fixed > kFar))
      return n.invalid("a negative or huge split size");
    total = total + size;
  }
  total = n.simplified(total);
  if (const auto all = as_const(total), extent = n.static_dim(x, axis);
      all && extent && *all != *extent)
    return n.invalid(
        llvm::formatv("split sizes add up to {0}, the axis has {1}", *all, *extent).str());
  if (!covers) x = n.with_extent(x, axis, total);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (n.wanted(i)) n.set(i, n.slice(x, axis, start, sizes[i]));
    start = start + sizes[i];
  }
}

// starts, ends and axes are attributes before version 10, later inputs.
void import_slice(NodeImport& n) {
  const Val x = n.in(0);
  const auto list = [&](size_t input, const char* attribute) -> Val {
    if (n.version() >= 10) return n.in(input);
    const Ints values = n.integers(attribute).value_or(Ints());
    return n.dim_values({values.begin(), values.end()});
  };
  const Val starts = list(1, "starts"), ends = list(2, "ends"), given_axes = n.maybe(3),
            given_steps = n.maybe(4);
  const int64_t count = n.length(starts, "starts").value_or(0);
  const auto fits = [&](Val v, const char* what) {
    return !v.valid() || n.length(v, what).value_or(count) == count;
  };
  if (!fits(ends, "ends") || !fits(given_axes, "axes") || !fits(given_steps, "steps"))
    return n.invalid("starts, ends, axes and steps differ in length");
  if (n.failed()) return;
  const auto is_known = [&](Val v) { return !v.valid() || n.known(v).has_value(); };
  if (!is_known(given_axes) || !is_known(given_steps) || !steps_fit(n, given_steps))
    return slice_by_positions(n, x, starts, ends, given_axes, given_steps, count);
  Ints axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  if (given_axes.valid()) axes = n.constants(given_axes, "axes");
  else if (const auto attribute = n.version() < 10 ? n.integers("axes") : std::nullopt)
    axes = *attribute;
  const Ints steps = given_steps.valid() ? n.constants(given_steps, "steps")
                                         : Ints(static_cast<size_t>(count), 1);
  if (n.failed()) return;
  if (static_cast<int64_t>(axes.size()) != count)
    return n.invalid("starts, ends, axes and steps differ in length");
  op::Slice slice;
  slice.starts.assign(static_cast<size_t>(n.rank(x)), Expr(0));
  slice.steps.assign(static_cast<size_t>(n.rank(x)), 1);
  slice.sizes = n.shape(x);
  n.axes(axes, n.rank(x));  // no duplicates
  for (int64_t i = 0; i < count && !n.failed(); ++i) {
    const auto axis = static_cast<size_t>(n.axis(axes[static_cast<size_t>(i)], n.rank(x)));
    const int64_t step = steps[static_cast<size_t>(i)];
    if (step == 0) return n.invalid("a step of 0");
    const Expr extent = slice.sizes[axis];
    const std::optional<Expr> start = known_entry(n, starts, i), end = known_entry(n, ends, i);
    Part part;
    if (start && end) {
      part = slice_part(n, *start, *end, step, extent);
    } else {
      const PartValues values = part_values(n, n.element_value(starts, i), n.element_value(ends, i),
                                            n.scalar(static_cast<double>(step), DType::i64),
                                            extent);
      part = {n.symbol_of(values.start, 0, extent), n.symbol_of(values.size, 0, extent)};
    }
    slice.starts[axis] = part.start;
    slice.sizes[axis] = part.size;
    slice.steps[axis] = step;
  }
  n.set(n.emit(std::move(slice), {x}));
}

void import_gather(NodeImport& n) {
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

// The count that a negative pad cuts off, 0 if it cannot be negative. The pad becomes at least 0.
Expr taken_off(NodeImport& n, Expr& pad) {
  if (constant_bounds(pad, n.builder().symbols()).min.value_or(-1) >= 0) return 0;
  const Expr cut = n.simplified(max(Expr(0), -pad));
  pad = n.simplified(max(Expr(0), pad));
  return cut;
}

// Applies negative pads: slices them off, and leaves begins and ends of at least 0.
Val crop(NodeImport& n, Val x, Shape& begins, Shape& ends) {
  for (int64_t i = 0; i < n.rank(x); ++i) {
    const auto axis = static_cast<size_t>(i);
    const Expr before = taken_off(n, begins[axis]), after = taken_off(n, ends[axis]);
    if (is_const(before, 0) && is_const(after, 0)) continue;
    x = n.slice(x, i, before, n.simplified(n.dim(x, i) - before - after));
  }
  return x;
}

}  // namespace

// pads has all begins, then all ends, for all axes or for those in the input `axes`.
void import_pad(NodeImport& n) {
  Val x = n.in(0), value;
  const std::optional<PadMode> mode = pad_mode(n);
  std::vector<Expr> pads;
  if (n.version() >= 11) {
    value = n.maybe(2);
    const bool open = !n.known(n.in(1)) || (n.has(3) && !n.known(n.in(3)));
    if (open && !n.failed())
      return pad_by_values(n, x, mode.value_or(PadMode::constant), n.in(1), n.maybe(3), value);
    if (!n.failed()) pads = *n.known(n.in(1));
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
  if (pads.size() != 2 * axes.size())
    return n.invalid(llvm::formatv("{0} pads for {1} axes", pads.size(), axes.size()).str());
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

// Takes the middle of x along an axis where x is larger, and pads it with zeros where it is
// smaller.
void import_center_crop_pad(NodeImport& n) {
  const Val x = n.in(0);
  const std::vector<Expr> wanted = n.dims(n.in(1), "the shape");
  Ints axes(static_cast<size_t>(n.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes").value_or(axes);
  n.axes(axes, n.rank(x));  // no duplicates
  if (n.failed()) return;
  if (wanted.size() != axes.size())
    return n.invalid(llvm::formatv("{0} extents for {1} axes", wanted.size(), axes.size()).str());
  const auto rank = static_cast<size_t>(n.rank(x));
  op::Slice crop{Shape(rank, Expr(0)), Ints(rank, 1), n.shape(x)};
  op::Pad pad{PadMode::constant, Shape(rank, Expr(0)), Shape(rank, Expr(0))};
  bool padded = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(n.axis(axes[i], n.rank(x)));
    const Expr from = crop.sizes[axis], to = wanted[i], zero = 0;
    if (const auto fixed = as_const(to); fixed && (*fixed < 0 || *fixed > kFar))
      return n.invalid("a negative or huge extent");
    crop.starts[axis] = n.simplified(floor_div(max(zero, n.simplified(from - to)), Expr(2)));
    crop.sizes[axis] = n.simplified(min(from, to));
    const Expr missing = n.simplified(max(zero, n.simplified(to - from)));
    pad.begins[axis] = n.simplified(floor_div(missing, Expr(2)));
    pad.ends[axis] = n.simplified(missing - pad.begins[axis]);
    padded = padded || !is_const(missing, 0);
  }
  const Val middle = n.emit(std::move(crop), {x});
  n.set(padded ? n.emit(std::move(pad), {middle}) : middle);
}

namespace {

// Blocks of b x b between space and depth; both operators work on [N, C, H, W].
struct Blocks {
  int64_t size = 1;
  bool columns_first = false;  // channel = (depth, block) instead of (block, depth)
};

Blocks read_blocks(NodeImport& n, Val x) {
  const int64_t block = n.integer("blocksize", 0);
  if (!n.failed() && (block < 1 || block > (int64_t{1} << 20)))
    n.invalid("attribute blocksize must be positive");
  if (!n.failed() && n.rank(x) != 4)
    n.invalid(llvm::formatv("input of rank {0}, 4 is needed", n.rank(x)).str());
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.invalid("attribute mode is '" + mode + "', not DCR or CRD");
  return n.failed() ? Blocks() : Blocks{block, mode == "CRD"};
}

}  // namespace

void import_depth_to_space(NodeImport& n) {
  const Val x = n.in(0);
  const auto [b, columns_first] = read_blocks(n, x);
  const int64_t channels = n.failed() ? 1 : n.need_static_dim(x, 1, "DepthToSpace");
  if (!n.failed() && channels % (b * b) != 0)
    return n.invalid(llvm::formatv("{0} channels in blocks of {1}", channels, b * b).str());
  const Expr batch = n.dim(x, 0), depth = channels / (b * b), rows = n.dim(x, 2),
             columns = n.dim(x, 3);
  const Val parted =
      columns_first
          ? n.transpose(n.reshape(x, {batch, depth, b, b, rows, columns}), {0, 1, 4, 2, 5, 3})
          : n.transpose(n.reshape(x, {batch, b, b, depth, rows, columns}), {0, 3, 4, 1, 5, 2});
  n.set(n.reshape(parted, {batch, depth, rows * Expr(b), columns * Expr(b)}));
}

void import_space_to_depth(NodeImport& n) {
  const Val x = n.in(0);
  const auto [b, columns_first] = read_blocks(n, x);
  const Expr batch = n.dim(x, 0), depth = n.dim(x, 1);
  const Expr rows = n.simplified(floor_div(n.dim(x, 2), Expr(b))),
             columns = n.simplified(floor_div(n.dim(x, 3), Expr(b)));
  const Val parted = n.reshape(x, {batch, depth, rows, b, columns, b});
  const Val moved = n.transpose(parted,
                                columns_first ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  n.set(n.reshape(moved, {batch, depth * Expr(b * b), rows, columns}));
}

}  // namespace tw::onnx_import
