// One level of Strassen's algorithm, as it is defined: seven products of half-size matrices instead
// of eight. It serves matrix products with a constant right operand, and 1x1 convolutions of stride
// 1, whose rows are pixels. Everything is f32, and depth and columns are whole pairs of vectors.
//
// Stages: s (seven sums of the left operand's quadrants [7][k/2][rows/2]), acc (the products
// [7][rows/2][columns/2]), y (sums of the products, bias, followers). The right operand's sums are
// made and packed at compile time (kernels/strassen/arrange.cpp).
#include <algorithm>

#include "kernels/algorithms/strassen.h"
#include "kernels/algorithms/winograd_transform.h"
#include "kernels/common/group_builder.h"
#include "kernels/matmul/matmul.h"
#include "kernels/ops/conv_group.h"

namespace tw {
namespace {

// Quadrants in the order 11, 12, 21, 22
const Matrix kLeft = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                      {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
const Matrix kRight = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                       {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
const Matrix kOut = {
    {1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}};

struct Operands {
  int64_t rows = 0, depth = 0, columns = 0;
  std::function<Expr(const Expr& row, const Expr& k)> left;
  std::function<Index(const Expr& k, const Expr& column)> right;  // index of the weights' element
};

// The seven sums of the right operand's quarters, in f64 and rounded once
std::vector<Expr> sums_of_quarters(const std::function<Expr(int64_t u, int64_t v)>& quarter) {
  std::vector<Expr> parts, sums;
  for (int64_t u = 0; u < 2; ++u)
    for (int64_t v = 0; v < 2; ++v) parts.push_back(cast(DType::f64, quarter(u, v)));
  for (const auto& row : kRight) {
    Expr sum;
    for (size_t i = 0; i < row.size(); ++i)
      if (row[i] != 0)
        sum = !sum.defined() ? (row[i] > 0 ? parts[i] : -parts[i])
              : row[i] > 0   ? sum + parts[i]
                             : sum - parts[i];
    sums.push_back(cast(DType::f32, sum));
  }
  return sums;
}

// Adds the stages s and acc to m. Returns a function for the product's elements.
std::function<Expr(const Expr& row, const Expr& column)> strassen(GroupBuilder& b,
                                                                  StrassenStages& m,
                                                                  ValueId weights,
                                                                  const Operands& p) {
  const int64_t half_rows = (p.rows + 1) / 2, depth = p.depth / 2, columns = p.columns / 2;
  std::vector<Axis> axes = {{"sk", Expr(depth)}, {"si", Expr(half_rows)}, {"sq", Expr(7)}};
  b.declare(axes);
  Index at = variables(axes);
  std::vector<Expr> quadrants;
  for (int64_t u = 0; u < 2; ++u)
    for (int64_t v = 0; v < 2; ++v) {
      Expr row = b.simplified(at[1] + Expr(u * half_rows)),
           element = p.left(row, b.simplified(at[0] + Expr(v * depth)));
      if (u == 1 && p.rows % 2)
        element = select(lt(row, Expr(p.rows)), element, imm(0, DType::f32));
      quadrants.push_back(element);
    }
  BufferId s = b.temp("s", DType::f32, {Expr(7), Expr(depth), Expr(half_rows)});
  m.left = b.stage("s", axes, s, {at[2], at[0], at[1]},
                   select_row(at[2], linear_rows(kLeft, quadrants)));
  m.left_block = axes[0].loop(), m.left_row = axes[1].loop(), m.left_product = axes[2].loop();

  axes = {{"aq", Expr(7)}, {"ai", Expr(half_rows)}, {"aj", Expr(columns)}};
  at = variables(axes);
  BufferId acc = b.temp("acc", DType::f32, extents(axes));
  axes.push_back({"k", Expr(depth), AxisRole::reduce});
  b.declare(axes);
  const BufferId w = b.input(weights, {}, "weights");
  const auto quarter = [&](int64_t u, int64_t v) {
    return load(w, DType::f32, p.right(var("k") + Expr(u * depth), at[2] + Expr(v * columns)));
  };
  const Expr left = load(s, DType::f32, {at[0], var("k"), at[1]}),
             right = select_row(at[0], sums_of_quarters(quarter));
  m.acc = b.stage("acc", axes, acc, at, left * right, Combiner::add, imm(0, DType::f32));
  const Loops l = loops(axes);
  m.acc_product = l[0], m.acc_row = l[1], m.acc_block = l[2], m.depth_block = l[3];

  return [&b, acc, half_rows, columns](const Expr& row, const Expr& column) {
    std::vector<Expr> products;
    for (int64_t q = 0; q < 7; ++q)
      products.push_back(load(acc, DType::f32,
                              {Expr(q), b.simplified(floor_mod(row, Expr(half_rows))),
                               b.simplified(floor_mod(column, Expr(columns)))}));
    const Expr quadrant = floor_div(row, Expr(half_rows)) * Expr(2) +
                          floor_div(column, Expr(columns));
    return select_row(b.simplified(quadrant), linear_rows(kOut, products));
  };
}

class StrassenConv : ConvGroup {
 public:
  using ConvGroup::ConvGroup;
  Lowered<StrassenStages> lower() {
    declare_inputs();
    Operands p{*as_const(pixels_), s_.c, s_.m, {}, {}};
    BufferId x = b_.input(node_.inputs[0]);
    p.left = [x](const Expr& row, const Expr& k) { return load(x, DType::f32, {Expr(0), k, row}); };
    p.right = [this](const Expr& k, const Expr& column) {
      Index at = {column, k};
      pad_rank(at);
      return at;
    };
    StrassenStages m;
    auto element = strassen(b_, m, node_.inputs[1], p);
    const ConvOutput out = write_output([&](const Index& at) { return element(at[2], at[1]); });
    m.y = out.y, m.image = out.loops.image, m.row = out.loops.row, m.block = out.loops.channel;
    return b_.finish(std::move(m));
  }
};

Lowered<StrassenStages> lower_product(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMul>(node.attrs);
  const Shape &x = b.type(node.inputs[0]).shape, &w = b.type(node.inputs[1]).shape;
  Operands p;
  p.depth = *as_const(x.back());
  p.rows = *as_const(simplify(element_count(Shape(x.begin(), x.end() - 1))));
  p.columns = *as_const(b.type(node.output).shape.back());
  BufferId left = b.input(node.inputs[0], {Expr(p.rows), Expr(p.depth)});
  p.left = [left](const Expr& row, const Expr& k) { return load(left, DType::f32, {row, k}); };
  p.right = [&](const Expr& k, const Expr& column) {
    Index at(w.size() - 2, Expr(0));
    at.push_back(a.trans_b ? column : k);
    at.push_back(a.trans_b ? k : column);
    return at;
  };
  StrassenStages m;
  auto element = strassen(b, m, node.inputs[1], p);
  const ProductOutput y = write_product(b, node, true,
                                        [&](const Index& at) { return element(at[0], at[1]); });
  m.y = y.stage, m.row = y.row, m.column = y.column;
  return b.finish(std::move(m));
}

}  // namespace

Expected<Lowered<StrassenStages>> define_strassen(GroupBuilder& b, const Node& node) {
  if (std::holds_alternative<op::MatMul>(node.attrs)) return lower_product(b, node);
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  return StrassenConv(b, node, std::move(shape)).lower();
}

}  // namespace tw
