// before: %s = add(dequantize(%a, %as, %az), dequantize(%b, %bs, %bz))  %y = quantize(%s, %ys, %yz)
// after:  %t = cast(%b) * const [bs / ys] + const [-(as * az + bs * bz) / ys]
//         %y = cast(round(cast(%a) * const [as / ys] + %t) + yz) to=i8 saturate=true
// Fuses sums, products and averages of dequantized values with a quantize, which rounds before it
// adds its zero point. Part of fuse-quantization. Also part of zero-points-first, where the zero
// point is added first.
#include <algorithm>
#include <cmath>

#include "ir/storage_types.h"
#include "passes/quantization/integer_form.h"

namespace tw {
namespace {

bool is_byte(const Dequantized& x) { return x.by.axis < 0 && is_byte(x.by.type); }

class ArithmeticFuser {
 public:
  ArithmeticFuser(Rewriter& rewriter, NodeId id, const Quantization& to, ZeroPoint zero)
      : rewriter_(rewriter),
        graph_(rewriter.graph()),
        form_(rewriter, id),
        to_(to),
        zero_first_(zero == ZeroPoint::before_rounding) {}

  bool run() {
    const ValueId value = graph_.node(form_.at()).inputs[0];
    const Node* maker = graph_.def(value);
    if (!maker || rewriter_.uses(value) != 1 || !all_plain(graph_, *maker)) return false;
    if (is_binary(maker, BinaryOp::add)) return fuse_pair(*maker, &ArithmeticFuser::add);
    if (is_binary(maker, BinaryOp::mul)) return fuse_pair(*maker, &ArithmeticFuser::multiply);
    if (zero_first_) return false;
    if (const auto* pool = get_if<op::Pool>(maker)) return average(maker->inputs[0], *pool);
    if (const auto* reduce = get_if<op::Reduce>(maker)) return average(maker->inputs[0], *reduce);
    return false;
  }

 private:
  // --- Sums and products of two values

  bool fuse_pair(const Node& node,
                 void (ArithmeticFuser::*write)(const Dequantized&, const Dequantized&)) {
    const std::optional<Dequantized> a = dequantized(graph_, node.inputs[0]),
                                     b = dequantized(graph_, node.inputs[1]);
    if (!a || !b || !is_byte(*a) || !is_byte(*b)) return false;
    // An operand that repeats one element along the innermost axis is added first
    const bool swapped = repeats(*a, node.output) && !repeats(*b, node.output);
    (this->*write)(swapped ? *b : *a, swapped ? *a : *b);
    return true;
  }

  bool repeats(const Dequantized& x, ValueId result) const {
    const Shape &own = rewriter_.type(x.x).shape, &all = rewriter_.type(result).shape;
    for (size_t back = 1; back <= all.size(); ++back)
      if (!is_const(all[all.size() - back], 1))
        return back > own.size() || is_const(own[own.size() - back], 1);
    return false;
  }

  // `real` contains the zero point if that comes first.
  void finish(ValueId real) {
    if (zero_first_) {
      const ValueId one = form_.number(1, DType::f32, "one");
      return rewriter_.update(form_.at(), op::Quantize{to_.type, 0}, {real, one});
    }
    form_.finish(form_.add(op::Unary{UnaryOp::round}, {real}, "rounded"),
                 {to_.type, to_.zero[0], lowest_of(to_.type), highest_of(to_.type)});
  }

  // f32(a * ra + f32(b * rb + rest)). On a processor with fused products, each product and its sum
  // are rounded once.
  void add(const Dequantized& a, const Dequantized& b) {
    const float ra = a.by.scale[0] / to_.scale[0], rb = b.by.scale[0] / to_.scale[0];
    const float zeros = std::fma(ra, static_cast<float>(a.by.zero[0]),
                                 rb * static_cast<float>(b.by.zero[0]));
    const float rest = zero_before() - zeros;
    ValueId term = scaled(b, rb);
    if (rest != 0) term = form_.with(BinaryOp::add, term, rest, "term");
    finish(form_.add(op::Binary{BinaryOp::add}, {scaled(a, ra), term}, "sum"));
  }
  ValueId scaled(const Dequantized& x, float ratio) {
    const ValueId wide = form_.cast(DType::i32, x.x, "wide");
    return form_.with(BinaryOp::mul, form_.cast(DType::f32, wide, "real"), ratio, "scaled");
  }

  float zero_before() const { return zero_first_ ? static_cast<float>(to_.zero[0]) : 0; }

  // f32(product * ratio)
  void multiply(const Dequantized& a, const Dequantized& b) {
    const auto centered = [&](const Dequantized& x) {
      const ValueId wide = form_.cast(DType::i32, x.x, "wide");
      const auto zero = static_cast<double>(x.by.zero[0]);
      return zero == 0 ? wide : form_.with(BinaryOp::sub, wide, zero, "centered");
    };
    const ValueId left = centered(a);
    const ValueId right = a.x == b.x && a.by == b.by ? left : centered(b);
    const ValueId product = form_.add(op::Binary{BinaryOp::mul}, {left, right}, "product");
    const float ratio = a.by.scale[0] * b.by.scale[0] / to_.scale[0];
    ValueId y = form_.with(BinaryOp::mul, form_.cast(DType::f32, product, "real"), ratio, "scaled");
    if (zero_first_) y = form_.with(BinaryOp::add, y, zero_before(), "sum");
    finish(y);
  }

  // --- Averages: f32(sum - points * x_zero) * f32(x_scale / (y_scale * divisor))

  static constexpr double kMostPoints = 1 << 23;  // sums then fit 32 bits

  bool average(ValueId operand, const op::Pool& pool) {
    const std::optional<Dequantized> x = dequantized(graph_, operand);
    if (pool.kind != PoolKind::average || !x || !is_byte(*x)) return false;
    const Shape& shape = rewriter_.type(x->x).shape;
    std::vector<int64_t> plane = {1, 1};
    for (size_t i = 2; i < shape.size(); ++i) {
      const std::optional<int64_t> extent = as_const(shape[i]);
      if (!extent) return false;
      plane.push_back(*extent);
    }
    double most_points = 1;
    for (const int64_t k : pool.kernel) most_points *= static_cast<double>(k);
    if (most_points > kMostPoints) return false;
    op::Pool sums = pool;
    sums.kind = PoolKind::sum, sums.count_include_pad = false;
    const Tensor ones = from_doubles(
        DType::f32, plane, std::vector<double>(static_cast<size_t>(element_count(plane)), 1.0));
    const Tensor points = pooled(sums, ones), shares = pooled(pool, ones);
    std::vector<double> divisors;
    for (int64_t i = 0; i < points.size(); ++i)  // 0: a window with only padding
      divisors.push_back(shares.at(i) == 0 ? 1 : std::round(points.at(i) / shares.at(i)));
    write_average(*x, form_.add(sums, {x->x}, "sums"), points.shape, to_doubles(points), divisors);
    return true;
  }

  static Tensor pooled(const op::Pool& pool, const Tensor& x) {
    Expected<Tensor> y = evaluate_op(pool, {&x});
    if (!y) TW_UNREACHABLE("a pool of ones: {0}", error_text(y.takeError()));
    return std::move(*y);
  }

  bool average(ValueId operand, op::Reduce reduce) {
    const std::optional<Dequantized> x = dequantized(graph_, operand);
    if (reduce.kind != ReduceKind::mean || !x || !is_byte(*x)) return false;
    double points = 1;
    for (const int64_t axis : reduce.axes) {
      const std::optional<int64_t> extent = as_const(
          rewriter_.type(x->x).shape[static_cast<size_t>(axis)]);
      if (!extent) return false;
      points *= static_cast<double>(*extent);
    }
    if (points < 1 || points > kMostPoints) return false;
    const ValueId wide = form_.cast(DType::i32, x->x, "wide");
    reduce.kind = ReduceKind::sum;
    write_average(*x, form_.add(reduce, {wide}, "sums"), {}, {points}, {points});
    return true;
  }

  void write_average(const Dequantized& x, ValueId sums, std::vector<int64_t> shape,
                     std::vector<double> points, const std::vector<double>& divisors) {
    std::vector<double> scales;
    for (const double divisor : divisors)
      scales.push_back(x.by.scale[0] / (to_.scale[0] * static_cast<float>(divisor)));
    for (double& p : points) p *= static_cast<double>(x.by.zero[0]);
    const auto same = [](const std::vector<double>& list) {
      return std::ranges::all_of(list, [&](double v) { return v == list[0]; });
    };
    const auto numbers = [&](DType t, const std::vector<double>& list, const char* suffix) {
      return same(list) ? form_.number(list[0], t, suffix)
                        : form_.constant(from_doubles(t, shape, list), suffix);
    };
    if (x.by.zero[0] != 0)
      sums = form_.add(op::Binary{BinaryOp::sub}, {sums, numbers(DType::i32, points, "zeros")},
                       "centered");
    const ValueId scaled = form_.add(
        op::Binary{BinaryOp::mul},
        {form_.cast(DType::f32, sums, "real"), numbers(DType::f32, scales, "scale")}, "scaled");
    finish(scaled);
  }

  Rewriter& rewriter_;
  Graph& graph_;
  IntegerForm form_;
  const Quantization& to_;
  bool zero_first_;
};

}  // namespace

bool fuse_arithmetic(Rewriter& rewriter, NodeId id, const Quantization& to, ZeroPoint zero) {
  return ArithmeticFuser(rewriter, id, to, zero).run();
}

}  // namespace tw
