#include "passes/choose/layout_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/core_rates.h"
#include "ir/group.h"
#include "ir/simplify.h"
#include "kernels/conv/merged_groups.h"
#include "kernels/device/tensor_form.h"
#include "passes/choose/analytic_cost.h"
#include "passes/choose/pbqp.h"

namespace tw {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Shares of the peak: blocked convolutions with two or more vectors of channels a tile, and with
// one; plain ones, whose vectors run along a row, and those that read every other pixel of the row;
// depthwise ones.
constexpr double kWide = 0.9, kNarrow = 0.75, kPlain = 0.06, kPlainStrided = 0.015,
                 kDepthwise = 0.5;
constexpr double kPair = 0.93;  // share that two narrow vectors reach of one twice as wide

double product(const Shape& shape, size_t from = 0) {
  double count = 1;
  for (size_t i = from; i < shape.size(); ++i) count *= nominal(shape[i]);
  return count;
}

int64_t channels(const TensorType& t) {
  return t.shape.size() < 2 ? 0 : as_const(t.shape[1]).value_or(0);
}

double blocks(int64_t extent, int64_t block) {
  return static_cast<double>((extent + block - 1) / block);
}

// The number of stored elements, relative to logical ones.
double padding(const TensorType& t, const Layout& layout) {
  int64_t c = channels(t);
  return layout.plain() || c == 0
             ? 1
             : blocks(c, layout.block) * static_cast<double>(layout.block) / static_cast<double>(c);
}

int64_t group_of(const Node& node) {
  if (const auto* conv = std::get_if<op::Conv>(&node.attrs)) return conv->group;
  return std::get<op::ConvTranspose>(node.attrs).group;
}

bool is_convolution(const Node& node) {
  return std::holds_alternative<op::Conv>(node.attrs) ||
         std::holds_alternative<op::ConvTranspose>(node.attrs);
}

// True if a point of the result reads one point of each operand.
bool moves_points(const Node& node) {
  return is_elementwise(node) || std::holds_alternative<op::Concat>(node.attrs) ||
         std::holds_alternative<op::Resize>(node.attrs) ||
         std::holds_alternative<op::Pad>(node.attrs) ||
         std::holds_alternative<op::Slice>(node.attrs);
}

bool whole(const Expr& e, int64_t block) {
  auto known = as_const(e);
  return known && *known % block == 0;
}

}  // namespace

bool is_depthwise(const Graph& graph, const Node& node) {
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  if (!conv || conv->group == 1) return false;
  return conv->group == channels(graph.value(node.inputs[0]).type) &&
         conv->group == channels(graph.value(node.output).type);
}

// True: each group of the convolution reads one channel, which its outputs share. The schedule
// spreads these channels to the outputs' places.
static bool spreads_channels(const Graph& graph, const Node& node) {
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  return conv && conv->group > 1 && conv->group == channels(graph.value(node.inputs[0]).type);
}

// For a convolution whose groups are merged in blocks: how many groups, and how many steps of the
// depth one instruction takes. nullopt if groups are whole blocks themselves, or cannot be merged.
static std::optional<std::pair<int64_t, int64_t>> merged_groups(const Graph& graph,
                                                                const Node& node,
                                                                const Target& target,
                                                                int64_t block) {
  const auto* conv = std::get_if<op::Conv>(&node.attrs);
  if (!conv || conv->group == 1 || block == 0 || !target.driver.empty() ||
      spreads_channels(graph, node) || !graph.is_constant(node.inputs[1]))
    return std::nullopt;
  const TensorType& x = graph.value(node.inputs[0]).type;
  const int64_t in = channels(x) / conv->group,
                out = channels(graph.value(node.output).type) / conv->group;
  if (!is_byte(x.dtype) || out % block == 0) return std::nullopt;
  const int64_t count = groups_that_fill(conv->group, in, block, out, block);
  const int64_t most = most_merged_groups(target, {x.dtype, conv->x_zero},
                                          graph.value(node.inputs[1]).type.dtype, block);
  if (count <= 1 || count > most) return std::nullopt;
  return std::pair(count, most);
}

bool LayoutCosts::may_block(const Node& node, int64_t block) const {
  const TensorType& out = type(node.output);
  if (out.shape.size() < 3 || channels(out) <= 1) return false;
  if (is_convolution(node)) {
    if ((out.dtype != DType::f32 && out.dtype != DType::f16 && out.dtype != DType::i32) ||
        channels(type(node.inputs[0])) == 0)
      return false;
    int64_t group = group_of(node);
    return group == 1 || is_depthwise(graph_, node) || (channels(out) / group) % block == 0 ||
           (spreads_channels(graph_, node) && target_.driver.empty()) ||
           merged_groups(graph_, node, target_, block).has_value();
  }
  if (std::holds_alternative<op::Pool>(node.attrs)) return true;
  if (is_elementwise(node))
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v.valid() && !graph_.is_constant(v) && equal(type(v).shape, out.shape);
    });
  if (const auto* concat = std::get_if<op::Concat>(&node.attrs))
    return concat->axis != 1 || std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
             return whole(type(v).shape[1], block);
           });
  if (const auto* slice = std::get_if<op::Slice>(&node.attrs))
    return (is_const(slice->starts[1], 0) &&
            equal(Shape{slice->sizes[1]}, Shape{type(node.inputs[0]).shape[1]}) &&
            slice->steps[1] == 1) ||
           (whole(slice->starts[1], block) && whole(slice->sizes[1], block) &&
            slice->steps[1] == 1);
  if (const auto* resize = std::get_if<op::Resize>(&node.attrs))
    return resize->scales[0] == 1 && resize->scales[1] == 1;
  if (const auto* pad = std::get_if<op::Pad>(&node.attrs))
    return is_const(pad->begins[1], 0) && is_const(pad->ends[1], 0);
  return false;
}

std::vector<Layout> LayoutCosts::alternatives(const Node& node) const {
  std::vector<Layout> list = {Layout{}};
  // A tensor instruction takes blocks of its lanes only
  const std::optional<TensorInstruction> tensor = tensor_instruction(target_, true);
  for (int64_t block = tensor ? tensor->lanes : target_.lanes(4);
       block >= (tensor ? tensor->lanes : 4); block /= 2)
    if (may_block(node, block)) list.push_back({1, block});
  return list;
}

double LayoutCosts::convolution(const Node& node, const Layout& out) const {
  const TensorType &x = type(node.inputs[0]), &w = type(node.inputs[1]), &y = type(node.output);
  double lanes = target_.lanes(4), taps = product(w.shape, 2);
  bool transposed = std::holds_alternative<op::ConvTranspose>(node.attrs);
  // Points, times products for each point and output channel. A transposed convolution scatters
  // every input point.
  double points = nominal(y.shape[0]) * product(transposed ? x.shape : y.shape, 2);
  double products = taps * nominal(x.shape[1]) / static_cast<double>(group_of(node));
  WorkEstimate work;
  double m = nominal(y.shape[1]);
  if (out.plain()) {
    double width = nominal(y.shape.back()), rows = width / lanes,
           used = std::max(1.0, std::ceil(rows)) / std::max(rows, 1e-9);
    work.vector_ops = points * products * m / lanes * used;
    const auto* conv = std::get_if<op::Conv>(&node.attrs);
    work.efficiency = conv && conv->strides.back() > 1 ? kPlainStrided : kPlain;
  } else {
    // Cores with one unit of 512 bits have two for narrower vectors.
    const bool pairs = target_.vector_bits >= 512 && vector_products(target_) < 1.5 &&
                       static_cast<double>(out.block) < lanes;
    const double vectors = blocks(channels(y), out.block),
                 whole = static_cast<double>(out.block) / lanes * vectors;
    work.vector_ops = points * products * vectors * (pairs ? 0.5 : 1);
    work.efficiency = (spreads_channels(graph_, node) ? kDepthwise
                       : whole >= 2                   ? kWide
                                                      : kNarrow) *
                      (pairs ? kPair : 1);
    if (const auto merged = merged_groups(graph_, node, target_, out.block))
      work.vector_ops *= static_cast<double>(merged->first) / static_cast<double>(merged->second);
  }
  work.bytes = 4 * (product(y.shape) * padding(y, out) + product(w.shape));
  return seconds(work);
}

double LayoutCosts::node(const Node& node, const Layout& out) const {
  if (const std::optional<double> known = kernels_ ? kernels_->kernel(graph_, node, out)
                                                   : std::nullopt)
    return *known;
  if (is_convolution(node)) return convolution(node, out);
  const TensorType& y = type(node.output);
  double elements = product(y.shape) * padding(y, out);
  if (const auto* pool = std::get_if<op::Pool>(&node.attrs)) {
    double taps = 1;
    for (int64_t k : pool->kernel) taps *= static_cast<double>(k);
    double lanes = out.plain() ? target_.lanes(4) : static_cast<double>(out.block);
    return seconds({elements * taps / lanes, out.plain() ? kPlain : kDepthwise, 4 * elements, 0});
  }
  // Element-wise operators join the kernel that makes their operands; the others are kernels of
  // their own.
  if (is_elementwise(node) || !moves_points(node)) return 0;
  bool by_block = !out.plain() || std::holds_alternative<op::Concat>(node.attrs) ||
                  std::holds_alternative<op::Slice>(node.attrs);
  return seconds({0, 1, 8 * elements, by_block ? 0 : elements});
}

bool LayoutCosts::must_match(const Node& node, size_t i, const Layout& out) const {
  if (i != 0) return false;
  return std::holds_alternative<op::Pool>(node.attrs) ||
         (is_depthwise(graph_, node) && !out.plain());
}

double LayoutCosts::cast(ValueId v) const {
  double elements = product(type(v).shape);
  return seconds({0, 1, 8 * elements, elements});
}

double LayoutCosts::direct(const Node& node, size_t i, const Layout& in, const Layout& out) const {
  const TensorType& x = type(node.inputs[i]);
  double elements = product(x.shape);
  if (must_match(node, i, out)) return in == out ? 0 : kNever;
  if (std::holds_alternative<op::MatMul>(node.attrs) ||
      std::holds_alternative<op::MatMulNBits>(node.attrs) || has_several_outputs(node.attrs))
    return in.plain() ? 0 : kNever;
  if (is_convolution(node)) {  // the sums run over the padding of a blocked input
    if (i == 0 && in.plain() && merged_groups(graph_, node, target_, out.block)) return kNever;
    if (i != 0 || in.plain()) return 0;
    return seconds({0, 1, 4 * elements * (padding(x, in) - 1), 0}) +
           (padding(x, in) - 1) * convolution(node, out);
  }
  double scattered = seconds({0, 1, 0, elements});
  if (moves_points(node)) {
    bool same_points = !is_elementwise(node) || equal(x.shape, type(node.output).shape);
    if (in == out || (!same_points && in.plain())) return 0;
    // It is a kernel of its own, which cannot follow another one.
    return scattered + (is_elementwise(node) ? seconds({0, 1, 8 * elements, 0}) : 0);
  }
  // A transpose copies no whole rows, whatever the layout of the input
  if (std::holds_alternative<op::Transpose>(node.attrs)) return 0;
  if (const auto* reduce = std::get_if<op::Reduce>(&node.attrs))
    if (std::find(reduce->axes.begin(), reduce->axes.end(), 1) == reduce->axes.end()) return 0;
  return in.plain() ? 0 : scattered;
}

LayoutCosts::Reading LayoutCosts::reading(const Node& node, size_t i, const Layout& in,
                                          const Layout& out) const {
  Reading best{direct(node, i, in, out), in};
  for (const Layout& other : {Layout{}, out}) {
    if (other == in) continue;
    double after = cast(node.inputs[i]) + direct(node, i, other, out);
    if (costs_less(after, best.seconds)) best = {after, other};
  }
  return best;
}

}  // namespace tw
