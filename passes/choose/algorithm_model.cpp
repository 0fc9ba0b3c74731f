// Estimates of the time, weights and error of each algorithm, from shapes and the target's numbers.
// docs/internals/algorithms.md explains the constants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/core_rates.h"
#include "ir/graph/short_floats.h"
#include "ir/group.h"
#include "kernels/algorithms/winograd_transform.h"
#include "kernels/common/short_operands.h"
#include "kernels/device/tile_model.h"
#include "kernels/device/tiles.h"
#include "kernels/lower.h"
#include "kernels/winograd/winograd.h"
#include "passes/choose/analytic_cost.h"
#include "passes/choose/choose_algorithms.h"

namespace tw {
namespace {

// Largest error of many sums, relative to their range, per square root of a sum's length
constexpr double kRoundings = 0.6;
constexpr double kEpsilon = 0x1p-24;
constexpr double kEfficiency = 0.93;  // share of the peak that the products' loops reach
// Cycles for a vector of Strassen's sums, and more if they leave the cache
constexpr double kStrassenCycles = 9, kStrassenSpillCycles = 6;
// Factor of time for tiles one vector wide; factor of the error
constexpr double kStrassenNarrow = 1.15, kStrassenKappa = 1.4;
// Cycles for a vector and point of Winograd's transforms
constexpr double kInputCycles = 5.5, kOutputCycles = 3.6;
constexpr double kShortCycles = 10;  // more for a vector of input that is rounded to bf16

// The speed of sums relative to the core on which the cycles of sums and transforms were counted.
double sums_speed(const Target& target) { return core_rates(target).sums * 8 / target.lanes(4); }

// One matrix product; columns are output channels
struct Product {
  double rows = 0, depth = 0, columns = 0;
};

double padded(double n, double to) { return std::ceil(n / to) * to; }

// `speed` is relative to f32.
double multiply_cycles(const Product& p, const Target& target, double speed = 1) {
  const double lanes = target.lanes(4), a_cycle = vector_products(target);
  // Products in flight: as many rows as registers allow, and the fewest that hide the latency
  const double rows = std::min<double>(p.rows, target.vector_registers / 2 - 2),
               fewest = 4 * a_cycle;
  const double hidden = std::min(1.0, 2 * rows / fewest);  // tiles are two vectors wide
  return p.rows * p.depth * padded(p.columns, lanes) / (lanes * a_cycle) / kEfficiency / hidden /
         speed;
}

// The products a cycle of one instruction relative to those of another.
double relative_speed(const IntegerProduct& product, const IntegerProduct& other,
                      const Target& target) {
  const auto a_cycle = [&](const IntegerProduct& p) -> double {
    const Intrinsic* intrinsic = p.defined() ? target.find_intrinsic(p.intrinsic) : nullptr;
    const auto form = intrinsic ? product_form(*intrinsic) : std::nullopt;
    return form ? form->products_a_cycle() : 0;
  };
  const double own = a_cycle(product), others = a_cycle(other);
  return own > 0 && others > 0 ? own / others : 1;
}

DType left_type(const Graph& graph, const Node& node) {
  return graph.value(node.inputs[0]).type.dtype;
}

// The speed of direct products of the node's operands, relative to f32.
double direct_speed(const Graph& graph, const Node& node, const Target& target) {
  const CoreRates rates = core_rates(target);
  return rates.multiply_adds(left_type(graph, node)) / rates.f32;
}

// The speed of Winograd's products, relative to f32. Their instruction may differ: direct sums may
// take rows together.
double winograd_speed(const Graph& graph, const Node& node, const Target& target) {
  const IntegerProduct own = winograd_product(graph, node, target);
  if (!own.defined()) return direct_speed(graph, node, target);
  const TensorType &x = graph.value(node.inputs[0]).type, &y = graph.value(node.output).type;
  const auto known = [](const Expr& e) { return *as_const(e); };
  const IntegerProduct direct = integer_product(
      target, own.left, own.type,
      {y.layout.block, x.layout.block, known(y.shape.back()),
       ProductExtents::Whole{known(y.shape[1]), known(x.shape[1])}});
  return direct_speed(graph, node, target) * relative_speed(own, direct, target);
}

// The variance of the error of each of a tile's outputs along an axis, relative to that of the
// output, for inputs and weights without correlation: sums over the points of AT^2 |BT row|^2 |G
// row|^2.
std::vector<double> winograd_variances(int tile, int stride) {
  const WinogradTransform t = winograd_transform(tile, stride);
  const auto square = [](const std::vector<double>& row) {
    return std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  };
  std::vector<double> variances;
  for (const auto& row : t.at) {
    double sum = 0;
    for (size_t a = 0; a < row.size(); ++a)
      sum += row[a] * row[a] * square(t.bt[a]) * square(t.g[a]);
    variances.push_back(sum / 3);
  }
  return variances;
}

// Direct sums in bf16 round both operands once. Winograd's algorithm also rounds what it makes of
// them. The largest error is that of the tile's worst output, whose variance is larger by kappa.
// The budget is `growth` times the error that direct sums of all layers have.
double short_error(int tile, int stride, const Target& target) {
  constexpr double kUsualAccuracy = 1e-4, kPassedOn = 2;
  const double growth = 1 + target.accuracy / kUsualAccuracy;
  const double kappa = std::ranges::max(winograd_variances(tile, stride));
  return target.accuracy / kPassedOn * kappa / std::sqrt(growth * growth - 1);
}

// Weights are read once and cold. The greater time counts in full, and 0.4 of the lesser.
double with_weights(double cycles, double bytes, const Target& target, double model_bytes) {
  const CoreRates rates = core_rates(target);
  const double a_cycle = model_bytes <= static_cast<double>(target.l2_bytes)   ? rates.l2_bytes
                         : model_bytes <= static_cast<double>(target.l3_bytes) ? rates.l3_bytes
                                                                               : rates.memory_bytes;
  const double reading = bytes / a_cycle;
  return std::max(cycles, reading) + 0.4 * std::min(cycles, reading);
}

int64_t extent(const Expr& e) { return as_const(e).value_or(1); }

double elements_of(const Shape& shape) {
  double count = 1;
  for (const Expr& e : shape) count *= static_cast<double>(extent(e));
  return count;
}

// The node as a matrix product; the rows of a convolution are output pixels.
Product product_of(const Graph& graph, const Node& node) {
  const TensorType &w = graph.value(node.inputs[1]).type, &y = graph.value(node.output).type;
  const double outputs = elements_of(y.shape);
  Product p;
  if (const auto* matmul = std::get_if<op::MatMul>(&node.attrs)) {
    const size_t rank = w.shape.size();
    p.depth = static_cast<double>(extent(w.shape[matmul->trans_b ? rank - 1 : rank - 2]));
    p.columns = static_cast<double>(extent(y.shape.back()));
  } else {
    p.columns = static_cast<double>(extent(w.shape[0]));
    p.depth = 1;
    for (size_t i = 1; i < w.shape.size(); ++i) p.depth *= static_cast<double>(extent(w.shape[i]));
  }
  p.rows = outputs / p.columns;
  return p;
}

AlgorithmEstimate winograd(const Graph& graph, const Node& node, int tile, const Target& target,
                           double model_bytes) {
  const TensorType &x = graph.value(node.inputs[0]).type, &y = graph.value(node.output).type;
  const int stride = static_cast<int>(std::get<op::Conv>(node.attrs).strides[0]),
            axis_points = winograd_transform(tile, stride).points;
  const double lanes = target.lanes(4), points = axis_points * axis_points;
  const double in = padded(static_cast<double>(extent(x.shape[1])), lanes),
               out = padded(static_cast<double>(extent(y.shape[1])), lanes);
  const double tiles = static_cast<double>(extent(y.shape[0])) *
                       std::ceil(static_cast<double>(extent(y.shape[2])) / tile) *
                       std::ceil(static_cast<double>(extent(y.shape[3])) / tile);
  const double in_cycles = kInputCycles + (x.dtype == DType::f32 ? 0 : kShortCycles);
  const double transforms = tiles * points / lanes * (in * in_cycles + out * kOutputCycles) /
                            sums_speed(target);
  AlgorithmEstimate e;
  e.short_floats = x.dtype != DType::f32;
  e.weight_bytes = points * in * out * static_cast<double>(dtype_bytes(x.dtype));
  const double speed = winograd_speed(graph, node, target),
               products = points * multiply_cycles({tiles, in, out}, target, speed);
  e.cycles = with_weights(products + transforms, e.weight_bytes, target, model_bytes);
  e.error = e.short_floats ? short_error(tile, stride, target)
                           : rounding_error(winograd_kappa(tile, stride), in);
  return e;
}

int64_t bytes_of(const Graph& graph, ValueId v) {
  return static_cast<int64_t>(elements_of(graph.value(v).type.shape)) * 4;
}

// An estimate for a device, over all its multiprocessors: three launches. nullopt if it has no
// tiles for the products.
std::optional<AlgorithmEstimate> winograd_in_tiles(const Graph& graph, const Node& node, int tile,
                                                   const Target& target) {
  const auto problem = winograd_tile_problem(graph, node, tile);
  const auto usual = problem ? block_tile(target, *problem) : std::nullopt;
  if (!usual) return std::nullopt;
  const auto stride = static_cast<int>(std::get<op::Conv>(node.attrs).strides[0]);
  const int64_t a = winograd_transform(tile, stride).points, tiles = *problem->rows,
                depth = problem->depth, columns = problem->columns;
  // Multiply-adds of the transforms, over both axes
  const int64_t in_terms = 2 * a * a * a, out_terms = tile * a * a + tile * tile * a;
  const int64_t in_bytes = bytes_of(graph, node.inputs[0]) + 4 * a * a * tiles * depth,
                out_bytes = bytes_of(graph, node.output) +
                            4 * a * a * tiles * columns * usual->parts;
  AlgorithmEstimate e;
  e.cycles = static_cast<double>(product_cycles(*usual, *problem, target) +
                                 launch_cycles(target, in_bytes, in_terms * tiles * depth) +
                                 launch_cycles(target, out_bytes, out_terms * tiles * columns));
  e.weight_bytes = static_cast<double>(4 * a * a) *
                   padded(static_cast<double>(columns), static_cast<double>(usual->columns)) *
                   padded(static_cast<double>(depth),
                          static_cast<double>(usual->depth * usual->parts));
  e.error = rounding_error(winograd_kappa(tile, stride), static_cast<double>(depth));
  return e;
}

// An estimate for a device whose blocks of threads share memory. A node without tiles has one
// algorithm, so its cycles are compared with none.
std::optional<AlgorithmEstimate> estimate_on_device(const Graph& graph, const Node& node,
                                                    Algorithm algorithm, const Target& target) {
  if (algorithm != Algorithm::direct) {
    const int tile = winograd_tile(algorithm);
    return tile != 0 && winograd_applies(graph, node, target)
               ? winograd_in_tiles(graph, node, tile, target)
               : std::nullopt;
  }
  const Product p = product_of(graph, node);
  const auto problem = tile_problem_of(graph, node, false);
  const auto usual = problem ? block_tile(target, *problem) : std::nullopt;
  AlgorithmEstimate e;
  if (usual) e.cycles = static_cast<double>(product_cycles(*usual, *problem, target));
  e.weight_bytes = p.depth * p.columns * 4;
  e.error = rounding_error(1, p.depth);
  return e;
}

AlgorithmEstimate strassen(const Graph& graph, const Node& node, const Target& target,
                           double model_bytes) {
  const Product p = product_of(graph, node);
  const double lanes = target.lanes(4), rows = std::ceil(p.rows / 2);
  // Sums that do not fit the second-level cache go to the next level and back, unless they are made
  // block by block.
  const double left_bytes = rows * p.depth * 2 * 4, held = static_cast<double>(target.l2_bytes);
  const bool blocks = 2 * 7 * p.depth * p.columns <= held;
  const double in_cycles = kStrassenCycles +
                           (!blocks && 1.75 * left_bytes > held ? kStrassenSpillCycles : 0);
  const double sums = (rows * p.depth * 2 / lanes * in_cycles +
                       rows * p.columns * 2 / lanes * kStrassenCycles) /
                      sums_speed(target);
  const int64_t half_rows = static_cast<int64_t>(rows),
                vectors = strassen_vectors(half_rows, static_cast<int64_t>(p.columns / 2 / lanes),
                                           target);
  const double computed = padded(rows,
                                 static_cast<double>(strassen_rows(half_rows, vectors, target))) *
                          (vectors == 1 ? kStrassenNarrow : 1);
  AlgorithmEstimate e;
  e.weight_bytes = 7 * p.depth * p.columns;  // 7/4 of the elements, 4 bytes each
  e.cycles = with_weights(
      7 * multiply_cycles({computed, p.depth / 2, p.columns / 2}, target) + sums, e.weight_bytes,
      target, model_bytes);
  e.error = rounding_error(kStrassenKappa, p.depth);
  return e;
}

}  // namespace

double rounding_error(double kappa, double length) {
  return kRoundings * kEpsilon * kappa * std::sqrt(length);
}

// Averages over the tile's outputs.
double winograd_kappa(int tile, int stride) {
  const std::vector<double> variances = winograd_variances(tile, stride);
  // The mean variance of one axis; its square is that of both axes, and the root of that is the
  // amplitude
  return std::accumulate(variances.begin(), variances.end(), 0.0) / tile;
}

std::optional<AlgorithmEstimate> estimate_algorithm(const Graph& graph, const Group& group,
                                                    Algorithm algorithm, const Target& target,
                                                    double model_bytes) {
  const Node node = with_short_operands(graph, group);
  if (!target.axes.empty()) return estimate_on_device(graph, node, algorithm, target);
  // Other devices compute only direct sums
  if (!target.driver.empty() && algorithm != Algorithm::direct) return std::nullopt;
  switch (algorithm) {
    case Algorithm::direct: {
      const Product p = product_of(graph, node);
      AlgorithmEstimate e;
      e.short_floats = is_short_float(left_type(graph, node));
      e.weight_bytes = p.depth * padded(p.columns, target.lanes(4)) * (e.short_floats ? 2 : 4);
      e.cycles = with_weights(multiply_cycles(p, target, direct_speed(graph, node, target)),
                              e.weight_bytes, target, model_bytes);
      if (!e.short_floats) e.error = rounding_error(1, p.depth);
      return e;
    }
    case Algorithm::winograd_f2:
    case Algorithm::winograd_f4:
    case Algorithm::winograd_f6:
      if (!winograd_applies(graph, node, target)) return std::nullopt;
      return winograd(graph, node, winograd_tile(algorithm), target, model_bytes);
    case Algorithm::strassen:
      if (!strassen_applies(graph, node, target)) return std::nullopt;
      return strassen(graph, node, target, model_bytes);
  }
  TW_UNREACHABLE("bad algorithm");
}

}  // namespace tw
