#include "passes/quantization/integer_sums.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "ir/storage_types.h"

namespace tw {
namespace {

struct SumRange {
  double low = 0, high = 0;
  double magnitude() const { return std::max(-low, high); }
};

SumRange centered_range(const Quantization& by) {
  const auto [least, most] = std::ranges::minmax(by.zero);
  return {static_cast<double>(lowest_of(by.type) - most),
          static_cast<double>(highest_of(by.type) - least)};
}

// The elements of the right operand that each output sums.
struct SummedWeights {
  int64_t outputs = 1, depth = 1;
  std::function<int64_t(int64_t)> output_of;  // from an element's index
};

int64_t extents_from(const std::vector<int64_t>& shape, size_t axis) {
  int64_t count = 1;
  for (; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

SummedWeights right_operand(const Node& node, const std::vector<int64_t>& w) {
  const int64_t inner = extents_from(w, 2);
  if (const auto* transposed = get_if<op::ConvTranspose>(&node)) {
    const int64_t per_group = w[0] / transposed->group, channels = w[1];
    return {transposed->group * channels, per_group * inner, [=](int64_t i) {
              return i / (inner * channels) / per_group * channels + i / inner % channels;
            }};
  }
  if (const auto* matmul = get_if<op::MatMul>(&node)) {
    const int64_t rows = w[w.size() - 2], columns = w.back();
    const int64_t batch = extents_from(w, 0) / (rows * columns);
    if (matmul->trans_b) return {batch * rows, columns, [=](int64_t i) { return i / columns; }};
    return {batch * columns, rows,
            [=](int64_t i) { return i / (rows * columns) * columns + i % columns; }};
  }
  const int64_t depth = w[1] * inner;
  return {w[0], depth, [=](int64_t i) { return i / depth; }};
}

bool fits_i32(const SumRange& sum) {
  return sum.low >= std::numeric_limits<int32_t>::min() &&
         sum.high <= std::numeric_limits<int32_t>::max();
}

std::vector<SumRange> sums_of(const SummedWeights& weights, const Tensor& w, const Quantization& by,
                              const SumRange& x) {
  const int64_t inner = by.axis < 0 ? w.size()
                                    : extents_from(w.shape, static_cast<size_t>(by.axis) + 1);
  const int64_t count = by.axis < 0 ? 1 : w.shape[static_cast<size_t>(by.axis)];
  std::vector<SumRange> sums(static_cast<size_t>(weights.outputs));
  for (int64_t i = 0; i < w.size(); ++i) {
    const auto weight = static_cast<double>(w.int_at(i) -
                                            by.zero_at(static_cast<size_t>(i / inner % count)));
    SumRange& sum = sums[static_cast<size_t>(weights.output_of(i))];
    sum.low += std::min(weight * x.low, weight * x.high);
    sum.high += std::max(weight * x.low, weight * x.high);
  }
  return sums;
}

// The limit of sums whose number of products only the run knows.
constexpr double kOpenSum = 1 << 30;

double largest_product(const Dequantized& x, const Dequantized& w) {
  return centered_range(x.by).magnitude() * centered_range(w.by).magnitude();
}

const Expr& depth_of(const Graph& graph, const op::MatMul& matmul, const Dequantized& w) {
  const Shape& shape = graph.value(w.x).type.shape;
  return shape[shape.size() - (matmul.trans_b ? 1 : 2)];
}

}  // namespace

bool sums_fit(const Graph& graph, const Node& node, const Dequantized& x, const Dequantized& w,
              ValueId bias) {
  const std::vector<double> biases = bias.valid() ? to_doubles(graph.constant_tensor(bias))
                                                  : std::vector<double>{0};
  const auto [least, most] = std::ranges::minmax(biases);
  const auto fits = [&, least = least, most = most](double products) {
    return fits_i32({least - products, most + products});
  };
  const std::optional<std::vector<int64_t>> shape = static_shape(graph.value(w.x).type.shape);
  if (!shape) {
    const auto depth = as_const(depth_of(graph, std::get<op::MatMul>(node.attrs), w));
    return fits(depth ? static_cast<double>(*depth) * largest_product(x, w) : kOpenSum);
  }
  const SummedWeights right = right_operand(node, *shape);
  if (fits(static_cast<double>(right.depth) * largest_product(x, w))) return true;
  if (!graph.is_constant(w.x)) return false;
  const std::vector<SumRange> sums = sums_of(right, graph.constant_tensor(w.x), w.by,
                                             centered_range(x.by));
  for (size_t i = 0; i < sums.size(); ++i) {
    const double offset = biases[i % biases.size()];
    if (!fits_i32({sums[i].low + offset, sums[i].high + offset})) return false;
  }
  return true;
}

int64_t most_products(const Graph& graph, const op::MatMul& matmul, const Dequantized& x,
                      const Dequantized& w) {
  if (as_const(depth_of(graph, matmul, w))) return 0;
  return static_cast<int64_t>(kOpenSum / largest_product(x, w));
}

}  // namespace tw
