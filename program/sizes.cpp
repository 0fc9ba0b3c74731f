#include "program/sizes.h"

#include <algorithm>

#include "ir/size_ends.h"

namespace tw {
namespace {

// A larger tensor has no place in an arena: a run gets memory for the bytes that it needs.
constexpr int64_t kMostBytes = int64_t{1} << 36;

// The elements start, start + step, ... must lie inside the axis.
void add_slice(const op::Slice& slice, const Shape& x, std::vector<Expr>& out) {
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const Expr &start = slice.starts[axis], &size = slice.sizes[axis];
    if (is_const(start, 0) && slice.steps[axis] == 1 && equal(Shape{size}, Shape{x[axis]}))
      continue;
    const Expr last = start + (size - 1) * Expr(slice.steps[axis]),
               low = slice.steps[axis] > 0 ? start : last,
               high = slice.steps[axis] > 0 ? last : start;
    const Expr inside = logical_and(le(Expr(0), low), lt(high, x[axis]));
    out.push_back(binary(BinaryOp::logical_or, inside, eq(size, Expr(0))));
  }
}

// The window must fit into the padded extent that it slides over, but for `beyond` elements.
void add_windows(const Shape& x, const std::vector<Expr>& kernel, const Ints& dilations,
                 const Ints& pads, const Ints& beyond, std::vector<Expr>& out) {
  const size_t axes = kernel.size();
  for (size_t i = 0; i < axes; ++i)
    out.push_back(le((kernel[i] - 1) * Expr(dilations[i]) + Expr(1 - beyond[i]),
                     x[i + 2] + Expr(pads[i] + pads[i + axes])));
}

// These axes of x must not be empty, unless the result is.
void add_not_empty(const Shape& x, const std::vector<size_t>& axes, const Shape& result,
                   std::vector<Expr>& out) {
  Expr none;
  for (const Expr& extent : result) {
    const Expr empty = eq(extent, Expr(0));
    none = none.defined() ? binary(BinaryOp::logical_or, none, empty) : empty;
  }
  for (size_t axis : axes) {
    const Expr some = le(Expr(1), x[axis]);
    out.push_back(none.defined() ? binary(BinaryOp::logical_or, some, none) : some);
  }
}

// Each extent must be 1 or that of the shape.
void add_broadcast(const Shape& from, const Shape& to, std::vector<Expr>& out) {
  for (size_t i = 0, offset = to.size() - from.size(); i < from.size(); ++i)
    if (!is_const(from[i], 1) && !equal(Shape{from[i]}, Shape{to[offset + i]}))
      out.push_back(
          binary(BinaryOp::logical_or, eq(from[i], Expr(1)), eq(from[i], to[offset + i])));
}

void add_take(const op::Take& take, const Shape& x, std::vector<Expr>& out) {
  std::vector<size_t> computed;
  for (size_t axis = 0; axis < take.places.size(); ++axis)
    if (take.places[axis] < 0) computed.push_back(axis);
    else out.push_back(le(take.shape[static_cast<size_t>(take.places[axis])], x[axis]));
  add_not_empty(x, computed, take.shape, out);
}

void add_pad(const op::Pad& pad, const Shape& x, const Shape& result, std::vector<Expr>& out) {
  std::vector<size_t> padded;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    out.push_back(le(Expr(0), pad.begins[axis]));
    out.push_back(le(Expr(0), pad.ends[axis]));
    if (!is_const(pad.begins[axis], 0) || !is_const(pad.ends[axis], 0)) padded.push_back(axis);
  }
  if (pad.mode != PadMode::constant) add_not_empty(x, padded, result, out);
}

// The conditions of an operator on sizes that only a run knows. An operator without an overload
// does not compile.
struct OperatorConditions {
  const Graph& graph;
  const Node& node;
  std::vector<Expr>& out;

  const Shape& shape(size_t i) const { return graph.value(node.inputs[i]).type.shape; }
  const Shape& x() const { return shape(0); }
  const Shape& result() const { return graph.value(node.output).type.shape; }

  void operator()(const op::Reshape& a) const {
    if (!same_count(x(), a.shape)) out.push_back(eq(element_count(x()), element_count(a.shape)));
  }
  void operator()(const op::Slice& a) const { add_slice(a, x(), out); }
  void operator()(const op::Pool& a) const {
    Ints beyond(a.kernel.size(), 0);
    for (size_t i = 0; i < beyond.size() && a.ceil_mode; ++i) beyond[i] = a.strides[i] - 1;
    add_windows(x(), {a.kernel.begin(), a.kernel.end()}, a.dilations, a.pads, beyond, out);
  }
  void operator()(const op::Conv& a) const {
    add_windows(x(), {shape(1).begin() + 2, shape(1).end()}, a.dilations, a.pads,
                Ints(shape(1).size() - 2, 0), out);
  }
  void operator()(const op::Expand& a) const {
    if (!a.exact) return add_broadcast(x(), a.shape, out);
    for (size_t axis = 0; axis < a.shape.size(); ++axis)
      if (!equal(Shape{x()[axis]}, Shape{a.shape[axis]}))
        out.push_back(eq(x()[axis], a.shape[axis]));
  }
  void operator()(const op::Take& a) const { add_take(a, x(), out); }
  void operator()(const op::Gather& a) const {
    add_not_empty(x(), {static_cast<size_t>(a.axis)}, result(), out);
  }
  void operator()(const op::Pad& a) const { add_pad(a, x(), result(), out); }
  void operator()(const op::Resize&) const {
    std::vector<size_t> resized;
    for (size_t axis = 0; axis < x().size(); ++axis)
      if (!equal(Shape{x()[axis]}, Shape{result()[axis]})) resized.push_back(axis);
    add_not_empty(x(), resized, result(), out);
  }
  void operator()(const op::MatMul& a) const {
    if (a.most_products == 0) return;
    out.push_back(le(shape(1)[shape(1).size() - (a.trans_b ? 1 : 2)], Expr(a.most_products)));
  }
  void operator()(const op::Loop& a) const {
    if (!a.conditional) out.push_back(le(a.trip[0], Expr(kMostExtent)));
  }
  // Type inference checks all that these need, or the functions that they call check it.
  template <OneOf<op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize,
                  op::Lookup, op::ConvTranspose, op::MatMulNBits, op::Reduce, op::ArgReduce,
                  op::Softmax, op::LayerNorm, op::BatchNorm, op::Transpose, op::Concat, op::Within,
                  op::Iota, op::Cumulate, op::Recurrent, op::ShapeOf, op::DimVector, op::LayoutCast,
                  op::Extern, op::If>
                Op>
  void operator()(const Op&) const {}
};

// As largest(), in arithmetic that may wrap.
Expr largest_of(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges) {
  Ranges over;
  for (const std::string& symbol : symbols) {
    if (!uses_var(bytes, symbol)) continue;
    const auto range = ranges.find(symbol);
    if (range == ranges.end() || !range->second.max.defined()) return {};
    over.insert(*range);
  }
  const std::optional<Interval> interval = interval_over(bytes, over, ranges);
  if (!interval) return {};
  for (const auto& [symbol, range] : over)
    if (uses_var(interval->max, symbol)) return {};
  if (std::ranges::none_of(
          symbols, [&](const std::string& symbol) { return uses_var(interval->max, symbol); }))
    return interval->max;
  // The maximum may use symbols of data that bound others.
  return over.empty() ? Expr() : largest_of(interval->max, symbols, ranges);
}

}  // namespace

Expr largest(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges) {
  const std::optional<Bounds> ends = size_ends(bytes, ranges);
  if (!ends || ends->max.value_or(0) > kMostBytes) return {};
  return largest_of(bytes, symbols, ranges);
}

Expr most_bytes(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges) {
  Expr end = largest(bytes, symbols, ranges);
  if (end.defined()) return end;
  const std::optional<int64_t> bound = constant_bounds(bytes, ranges).max;
  return bound ? Expr(*bound) : Expr();
}

std::vector<Expr> conditions_of(const Graph& graph, const Node& node) {
  std::vector<Expr> out;
  for (const ValueId made : node.outputs())
    for (const Expr& extent : graph.value(made).type.shape)
      if (!as_const(extent)) out.push_back(le(Expr(0), extent));
  if (!node.inputs.empty() && node.inputs[0].valid())
    std::visit(OperatorConditions{graph, node, out}, node.attrs);
  return out;
}

std::vector<int> plan_growable(std::vector<Lifetime>& lifetimes, const Ranges& symbols, int& count,
                               Program& program) {
  std::vector<int> numbers(lifetimes.size(), -1);
  std::vector<int> last;  // by growable buffer: the last call that uses it
  std::vector<size_t> order;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (!is_data_dependent(lifetimes[i].bytes)) continue;
    if (const Expr bytes = largest(lifetimes[i].bytes, program.data_symbols, symbols);
        bytes.defined())
      lifetimes[i].bytes = bytes;
    else order.push_back(i);
  }
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  for (size_t i : order) {
    const Lifetime& own = lifetimes[i];
    const auto free = std::ranges::find_if(last, [&](int end) { return end < own.first; });
    numbers[i] = count + static_cast<int>(free - last.begin());
    if (free == last.end()) last.push_back(own.last);
    else *free = own.last;
    SizeStep step{.kind = SizeStep::Kind::grow,
                  .before = static_cast<size_t>(own.first),
                  .at = {Place::growable, numbers[i], Expr(0)}};
    step.bytes = own.bytes;
    program.steps.push_back(std::move(step));
  }
  count += static_cast<int>(last.size());
  std::ranges::stable_sort(program.steps, [](const SizeStep& a, const SizeStep& b) {
    return std::pair(a.before, a.kind) < std::pair(b.before, b.kind);
  });
  return numbers;
}

}  // namespace tw
