// Rules that fold data movement into convolutions, pools and matrix products.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "passes/canonicalize/canonicalize.h"

namespace tw {
namespace {

// The pad as "all begins, then all ends" of the spatial axes (2 and up). nullopt if it is symbolic
// or pads other axes.
std::optional<Ints> spatial_pads(const op::Pad& pad) {
  size_t spatial = pad.begins.size() < 2 ? 0 : pad.begins.size() - 2;
  Ints pads(2 * spatial, 0);
  for (size_t i = 0; i < pad.begins.size(); ++i) {
    std::optional<int64_t> begin = as_const(pad.begins[i]), end = as_const(pad.ends[i]);
    if (!begin || !end || (i < 2 && (*begin != 0 || *end != 0))) return std::nullopt;
    if (i < 2) continue;
    pads[i - 2] = *begin;
    pads[spatial + i - 2] = *end;
  }
  return pads;
}

// The value that a constant-mode pad writes; nullopt if it is not a constant.
std::optional<double> pad_value(const Graph& graph, const Node& pad) {
  ValueId value = input_or_none(pad, 1);
  return value.valid() ? splat(graph, value) : std::optional<double>(0.0);
}

struct FoldedPad {
  Ints pads;
  double value;
  ValueId source;
};

std::optional<FoldedPad> padded_input(Rewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const Node* maker = graph.def(node.inputs[0]);
  const op::Pad* pad = get_if<op::Pad>(maker);
  if (!pad || pad->mode != PadMode::constant || !rewriter.type(maker->inputs[0]).layout.plain())
    return std::nullopt;
  std::optional<Ints> pads = spatial_pads(*pad);
  std::optional<double> value = pad_value(graph, *maker);
  if (!pads || !value) return std::nullopt;
  return FoldedPad{*pads, *value, maker->inputs[0]};
}

void add_to(Ints& pads, const Ints& more) {
  for (size_t i = 0; i < pads.size(); ++i) pads[i] += more[i];
}

// conv(pad(x, 0)) -> conv(x) with larger pads. A quantized tensor is padded by its zero point.
bool pad_into_conv(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Conv* conv = get_if<op::Conv>(&node);
  if (!conv) return false;
  std::optional<FoldedPad> pad = padded_input(rewriter, node);
  if (!pad || pad->value != static_cast<double>(conv->x_zero)) return false;
  op::Conv padded = *conv;
  add_to(padded.pads, pad->pads);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = pad->source;
  rewriter.update(id, padded, inputs);
  return true;
}

// The parts of one tensor that a concatenation puts side by side along the channels. A part has
// every steps[i]-th point of spatial axis i, from starts[part][i] on. Together the parts are the
// whole tensor.
struct Phases {
  ValueId source;
  Ints steps;
  std::vector<Ints> starts;
};

std::optional<Phases> phases_of(const Graph& graph, const Node& concat) {
  if (std::get<op::Concat>(concat.attrs).axis != 1) return std::nullopt;
  Phases phases;
  int64_t points = 1;
  for (ValueId part : concat.inputs) {
    const Node* maker = graph.def(part);
    const op::Slice* slice = get_if<op::Slice>(maker);
    if (!slice || slice->sizes.size() < 3) return std::nullopt;
    const Shape& whole = graph.value(maker->inputs[0]).type.shape;
    if (part == concat.inputs[0])
      phases = {maker->inputs[0], Ints(slice->steps.begin() + 2, slice->steps.end()), {}};
    if (maker->inputs[0] != phases.source || !equal(Shape{slice->sizes[0]}, Shape{whole[0]}))
      return std::nullopt;
    Ints start;
    for (size_t i = 0; i < slice->sizes.size(); ++i) {
      const std::optional<int64_t> from = as_const(slice->starts[i]),
                                   size = as_const(slice->sizes[i]), extent = as_const(whole[i]);
      const int64_t step = i < 2 ? 1 : phases.steps[i - 2];
      if (!from || slice->steps[i] != step || step < 1 || *from >= step ||
          (i > 0 && (!size || !extent || *size * step != *extent)))
        return std::nullopt;
      if (i >= 2) start.push_back(*from);
      if (i >= 2 && phases.starts.empty()) points *= step;
    }
    if (std::find(phases.starts.begin(), phases.starts.end(), start) != phases.starts.end())
      return std::nullopt;
    phases.starts.push_back(std::move(start));
  }
  if (points < 2 || points != static_cast<int64_t>(phases.starts.size())) return std::nullopt;
  return phases;
}

// Turns weights [M, parts * C, K...] for the parts into weights [M, C, K * steps...] for the whole.
Tensor interleaved(const Tensor& w, const Phases& phases) {
  const size_t rank = phases.steps.size();
  const int64_t channels = w.shape[1] / static_cast<int64_t>(phases.starts.size());
  const auto width = static_cast<size_t>(dtype_bytes(w.dtype));
  std::vector<int64_t> shape = w.shape;
  shape[1] = channels;
  for (size_t i = 0; i < rank; ++i) shape[i + 2] *= phases.steps[i];
  Tensor out = Tensor::zeros(w.dtype, shape);
  for (int64_t from = 0; from < w.size(); ++from) {
    std::vector<int64_t> at(w.shape.size());
    for (int64_t axis = static_cast<int64_t>(at.size()) - 1, rest = from; axis >= 0; --axis) {
      at[static_cast<size_t>(axis)] = rest % w.shape[static_cast<size_t>(axis)];
      rest /= w.shape[static_cast<size_t>(axis)];
    }
    const Ints& start = phases.starts[static_cast<size_t>(at[1] / channels)];
    int64_t to = at[0] * channels + at[1] % channels;
    for (size_t i = 0; i < rank; ++i)
      to = to * shape[i + 2] + at[i + 2] * phases.steps[i] + start[i];
    std::memcpy(out.bytes.data() + static_cast<size_t>(to) * width,
                w.bytes.data() + static_cast<size_t>(from) * width, width);
  }
  return out;
}

// conv(concat of every s-th point of x, from each start) -> conv(x) with s times the kernel and the
// stride. It computes the same products without moving x first.
bool phases_into_conv(Rewriter& rewriter, NodeId id) {
  // Channels of the concatenation: with more, algorithms for stride 1 save more multiplications
  constexpr int64_t kMostChannels = 32;
  const Node& node = rewriter.node(id);
  const op::Conv* conv = get_if<op::Conv>(&node);
  if (!conv || conv->group != 1 ||
      std::any_of(conv->dilations.begin(), conv->dilations.end(), [](int64_t d) { return d != 1; }))
    return false;
  const Node* maker = rewriter.graph().def(node.inputs[0]);
  if (!get_if<op::Concat>(maker) || rewriter.uses(node.inputs[0]) != 1 ||
      !rewriter.graph().is_constant(node.inputs[1]))
    return false;
  if (as_const(rewriter.type(node.inputs[0]).shape[1]).value_or(kMostChannels + 1) > kMostChannels)
    return false;
  std::optional<Phases> phases = phases_of(rewriter.graph(), *maker);
  if (!phases) return false;
  op::Conv whole = *conv;
  const size_t rank = phases->steps.size();
  for (size_t i = 0; i < rank; ++i) {
    whole.strides[i] *= phases->steps[i];
    whole.pads[i] *= phases->steps[i];
    whole.pads[i + rank] *= phases->steps[i];
  }
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = phases->source;
  const std::string name = rewriter.graph().value(node.output).name + "_weights";
  inputs[1] = rewriter.add_constant(
      name, interleaved(rewriter.graph().constant_tensor(inputs[1]), *phases));
  rewriter.update(id, whole, inputs);
  return true;
}

// Leaves out the first and last taps that meet only padding, as most taps of a dilated convolution
// do on a small picture.
bool taps_in_padding(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Conv* conv = get_if<op::Conv>(&node);
  if (!conv || !rewriter.graph().is_constant(node.inputs[1])) return false;
  const Shape &in = rewriter.type(node.inputs[0]).shape, &out = rewriter.type(node.output).shape;
  const Shape& weights = rewriter.type(node.inputs[1]).shape;
  op::Conv fewer = *conv;
  op::Slice taps{Shape(weights.size(), Expr(0)), Ints(weights.size(), 1), weights};
  bool changed = false;
  for (size_t axis = 2, rank = weights.size() - 2; axis < weights.size(); ++axis) {
    const std::optional<int64_t> points = as_const(in[axis]), results = as_const(out[axis]),
                                 count = as_const(weights[axis]);
    if (!points || !results || !count || *results < 1) return false;
    const int64_t dilation = conv->dilations[axis - 2];
    int64_t &begin = fewer.pads[axis - 2], &end = fewer.pads[axis - 2 + rank];
    const int64_t span = (*results - 1) *
                         conv->strides[axis - 2];  // from the first point to the last
    int64_t first = 0, left = *count;
    for (; left > 1 && begin >= dilation && span < begin; ++first, --left) begin -= dilation;
    for (; left > 1 && end >= dilation && (left - 1) * dilation - begin >= *points; --left)
      end -= dilation;
    taps.starts[axis] = Expr(first), taps.sizes[axis] = Expr(left);
    changed |= left < *count;
  }
  if (!changed) return false;
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = rewriter.add(taps, {inputs[1]}, id, "taps");
  rewriter.update(id, fewer, inputs);
  return true;
}

// A pointwise convolution with a stride reads one point of several: conv(x) -> conv of stride 1
// (every s-th point of x). These points are one row in memory. Copying them costs little beside
// many output channels.
bool points_before_conv(Rewriter& rewriter, NodeId id) {
  constexpr int64_t kFewestOutputs = 128;
  const Node& node = rewriter.node(id);
  const op::Conv* conv = get_if<op::Conv>(&node);
  if (!conv || conv->group != 1 || !is_float(rewriter.type(node.output).dtype)) return false;
  const Shape& weights = rewriter.type(node.inputs[1]).shape;
  if (as_const(weights[0]).value_or(0) < kFewestOutputs ||
      !std::all_of(weights.begin() + 2, weights.end(),
                   [](const Expr& k) { return is_const(k, 1); }))
    return false;
  const auto all = [](const Ints& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
  };
  if (all(conv->strides, 1) || !all(conv->pads, 0)) return false;
  op::Slice points{.starts = Shape(weights.size(), Expr(0)),
                   .steps = {1, 1},
                   .sizes = rewriter.type(node.output).shape};
  points.sizes[1] = rewriter.type(node.inputs[0]).shape[1];
  points.steps.insert(points.steps.end(), conv->strides.begin(), conv->strides.end());
  op::Conv dense = *conv;
  dense.strides.assign(conv->strides.size(), 1);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = rewriter.add(points, {inputs[0]}, id, "points");
  rewriter.update(id, dense, inputs);
  return true;
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return is_unsigned_int(dtype) || dtype == DType::boolean
             ? 0
             : -std::ldexp(1.0, dtype_bytes(dtype) * 8 - 1);
}

// average_pool(pad(x, 0)) counts the padding; max_pool(pad(x, lowest)) never takes it. The new pads
// must be smaller than the kernel.
bool pad_into_pool(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Pool* pool = get_if<op::Pool>(&node);
  if (!pool || pool->ceil_mode) return false;
  std::optional<FoldedPad> pad = padded_input(rewriter, node);
  if (!pad) return false;
  op::Pool padded = *pool;
  bool had_pads = std::any_of(pool->pads.begin(), pool->pads.end(),
                              [](int64_t p) { return p != 0; });
  switch (pool->kind) {
    case PoolKind::average:
      if (pad->value != 0 || (had_pads && !pool->count_include_pad)) return false;
      padded.count_include_pad = true;
      break;
    case PoolKind::sum:
      if (pad->value != 0) return false;
      break;
    case PoolKind::max:
      if (pad->value != lowest(rewriter.type(node.output).dtype)) return false;
      break;
  }
  add_to(padded.pads, pad->pads);
  for (size_t i = 0; i < padded.pads.size(); ++i)
    if (padded.pads[i] >= padded.kernel[i % padded.kernel.size()]) return false;
  rewriter.update(id, padded, {pad->source});
  return true;
}

bool swaps_last_two(const Ints& perm) {
  size_t rank = perm.size();
  if (rank < 2) return false;
  for (size_t i = 0; i + 2 < rank; ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return perm[rank - 1] == static_cast<int64_t>(rank) - 2;
}

op::MatMul toggled(op::MatMul matmul, size_t side) {
  bool& flag = side == 0 ? matmul.trans_a : matmul.trans_b;
  flag = !flag;
  return matmul;
}

// matmul(transpose of the last two axes) -> matmul with the operand's flag toggled.
bool transpose_into_matmul(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::MatMul* matmul = get_if<op::MatMul>(&node);
  if (!matmul) return false;
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Node* maker = rewriter.graph().def(node.inputs[side]);
    const op::Transpose* transpose = get_if<op::Transpose>(maker);
    if (!transpose || !swaps_last_two(transpose->perm)) continue;
    std::vector<ValueId> inputs = node.inputs;
    inputs[side] = maker->inputs[0];
    rewriter.update(id, toggled(*matmul, side), inputs);
    return true;
  }
  return false;
}

// For a transpose that moves the innermost axis and that one matmul alone reads. The matmul's flag
// takes over the swap of the last two axes, so the innermost axis stays and copying moves whole
// rows (attention's keys).
bool keep_rows_for_matmul(Rewriter& rewriter, NodeId id) {
  const op::MatMul* matmul = get_if<op::MatMul>(&rewriter.node(id));
  if (!matmul) return false;
  for (size_t side : {size_t{0}, size_t{1}}) {
    std::vector<ValueId> inputs = rewriter.node(id).inputs;
    const Node* maker = rewriter.graph().def(inputs[side]);
    const op::Transpose* transpose = get_if<op::Transpose>(maker);
    if (!transpose || rewriter.uses(inputs[side]) != 1) continue;
    Ints perm = transpose->perm;
    size_t rank = perm.size();
    if (perm[rank - 2] != static_cast<int64_t>(rank) - 1) continue;
    std::swap(perm[rank - 2], perm[rank - 1]);
    op::MatMul turned = toggled(*matmul, side);
    inputs[side] = rewriter.add(op::Transpose{perm}, {maker->inputs[0]},
                                rewriter.graph().value(inputs[side]).def, "rows");
    rewriter.update(id, turned, inputs);
    return true;
  }
  return false;
}

}  // namespace

std::span<const Rule> contraction_rules() {
  static constexpr Rule kRules[] = {
      {"pad-into-conv", when_plain<pad_into_conv>},
      {"phases-into-conv", when_plain<phases_into_conv>},
      {"taps-in-padding", when_plain<taps_in_padding>},
      {"points-before-conv", when_plain<points_before_conv>},
      {"pad-into-pool", when_plain<pad_into_pool>},
      {"transpose-into-matmul", when_plain<transpose_into_matmul>},
      {"keep-rows-for-matmul", when_plain<keep_rows_for_matmul>},
  };
  return kRules;
}

}  // namespace tw
