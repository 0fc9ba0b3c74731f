// Matrix products of integers, and those that an instruction sums.
//
// The right operand is packed in panels [batch][N/P][K][P]. P is a few vectors, by the target's
// registers, and the last panel is padded with zeros. A constant operand is packed at compile time.
// Batches that share a constant right operand are joined to the rows: one [B*M, K] x [K, N].
//
// An instruction of the target may sum integer products over some steps of the depth. These steps
// are then innermost, and the left operand is read from a copy in the instruction's form, unless it
// has that form already.
//
// Stages: xp (that copy), w (packing at run time only), acc [batch][row][column, padded to whole
// panels], y.
#include "kernels/common/target_builder.h"
#include "kernels/matmul/matmul.h"

#include <algorithm>

#include "kernels/common/integer_product.h"
#include "kernels/common/register_tile.h"
#include "kernels/schedule/arranged.h"

namespace tw {
namespace {

struct Operand2d {  // access to element (batch index, row, column)
  ValueId value;
  bool transposed = false;
};

// An operand's element, by batches, row and step of the depth
using Element = std::function<Expr(const Index&, const Expr&, const Expr&)>;

// Stage xp copies the left operand in the instruction's form, with its depth filled up with zeros.
// The depth steps of rows that it takes together are adjacent. For tiles the loops are those of the
// lowered copy, from which tiles are then loaded.
Element copied_left(TargetBuilder& b, MatMulStages& m, const IntegerProduct& product,
                    const Shape& outer, const Shape& rows_and_depth, const Element& left) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < outer.size(); ++d) axes.push_back({"xb" + std::to_string(d), outer[d]});
  const Index batches = variables(axes);
  const Expr &rows = rows_and_depth[0], &depth = rows_and_depth[1],
             steps = ceil_div(depth, product.depth);
  const Shape blocked = {simplify(floor_div(rows, product.rows)), simplify(steps),
                         Expr(product.rows), Expr(product.depth)};
  Expr row = var("xi"), step = var("xk");
  if (product.tiles) {
    axes.insert(axes.end(),
                {{"xt", blocked[0]}, {"xs", blocked[1]}, {"xi", blocked[2]}, {"xk", blocked[3]}});
    row = var("xt") * blocked[2] + row, step = var("xs") * blocked[3] + step;
  } else {
    axes.insert(axes.end(), {{"xi", rows}, {"xk", simplify(steps * Expr(product.depth))}});
  }
  b.declare(axes);
  const DType type = product.type;
  const Expr value = product.copied(left(batches, row, step));
  Shape shape = extents(axes);
  if (product.rows > 1) {
    shape.resize(outer.size());
    shape.insert(shape.end(), blocked.begin(), blocked.end());
  }
  const BufferId copy = b.temp("xp", type, shape);
  const auto place = [&b, product](const Index& batches, const Expr& row, const Expr& step) {
    Index at = batches;
    if (product.rows == 1) at.insert(at.end(), {row, step});
    else
      at.insert(at.end(), {floor_div(row, product.rows), floor_div(step, product.depth),
                           floor_mod(row, product.rows), floor_mod(step, product.depth)});
    for (Expr& e : at) e = b.simplified(e);
    return at;
  };
  const Expr there = b.simplified(lt(step, depth));
  m.copies.push_back(b.stage("xp", axes, copy, place(batches, row, step),
                             is_const(there, 1) ? value : select(there, value, imm(0, type))));
  return [copy, type, place](const Index& batches, const Expr& row, const Expr& step) {
    return load(copy, type, place(batches, row, step));
  };
}

// No instruction serves operands as wide as their sums, a single column, or a depth that only a run
// knows.
IntegerProduct instruction_for(const TargetBuilder& b, const Node& node,
                               const Shape& rows_and_depth, int64_t lanes) {
  const TensorType &right = b.type(node.inputs[1]), &y = b.type(node.output);
  if (dtype_bytes(right.dtype) >= dtype_bytes(accumulator_type(y.dtype)) ||
      !as_const(rows_and_depth[1]) || is_const(y.shape.back(), 1))
    return {};
  const bool known = b.graph.is_constant(node.inputs[1]) && right.shape.size() == 2;
  const auto choose = known ? integer_product_from_anywhere : integer_product;
  ProductExtents extents{lanes, 0, as_const(rows_and_depth[0])};
  if (const auto columns = as_const(y.shape.back()))
    extents.tiles = {*columns, *as_const(rows_and_depth[1])};
  return choose(b.target, {b.type(node.inputs[0]).dtype, std::get<op::MatMul>(node.attrs).a_zero},
                right.dtype, extents);
}

// The tile of sums that registers hold at once
RegisterTile tiles_of(const IntegerProduct& product, std::optional<int64_t> rows, int64_t columns,
                      int64_t lanes) {
  const int64_t wide = columns > product.columns ? 2 : 1;
  return {rows_of_tiles(product, rows), wide * product.columns / lanes};
}

// The right operand's layout: [panel][steps][column of the panel], with several steps innermost and
// adjacent; in tiles [panel][steps][tile of columns][part of the steps][column and step].
struct Panels {
  const IntegerProduct& product;
  int64_t columns = 1, together = 1;  // columns of a panel; depth steps in one of its steps

  Expr tile_columns() const { return Expr(product.columns); }
  Expr side_by_side() const { return Expr(product.neighbours); }

  void add_axes(std::vector<Axis>& axes, const Expr& panels, const Expr& depth) const {
    axes.insert(axes.end(), {{"wj", panels}, {"wk", simplify(ceil_div(depth, together))}});
    if (product.tiles) {
      axes.insert(axes.end(), {{"wt", Expr(columns / product.columns)},
                               {"wq", Expr(product.depth / product.neighbours)},
                               {"wl", Expr(product.columns * product.neighbours)}});
    } else {
      axes.push_back({"wl", Expr(columns)});
      if (together > 1) axes.push_back({"wp", Expr(together)});
    }
  }
  Expr column() const {
    const Expr first = var("wj") * Expr(columns);
    if (!product.tiles) return first + var("wl");
    return first + var("wt") * tile_columns() + floor_div(var("wl"), side_by_side());
  }
  Expr step() const {
    const Expr first = together > 1 ? var("wk") * Expr(together) : var("wk");
    if (product.tiles)
      return first + var("wq") * side_by_side() + floor_mod(var("wl"), side_by_side());
    return together > 1 ? first + var("wp") : first;
  }
  // Appends the place of column j for the loops k, kq and kp of the sums.
  void add_place(const TargetBuilder& b, Index& at, const Expr& j, const Expr& k) const {
    const Expr within = b.simplified(floor_mod(j, Expr(columns)));
    at.insert(at.end(), {b.simplified(floor_div(j, Expr(columns))), k});
    if (!product.tiles) {
      at.push_back(within);
      if (together > 1) at.push_back(var("kp"));
      return;
    }
    at.insert(at.end(), {b.simplified(floor_div(within, tile_columns())), var("kq"),
                         b.simplified(floor_mod(j, tile_columns()) * side_by_side() + var("kp"))});
  }
};

// The left element, minus its zero point if no instruction handles that. widened: the element in
// the type of the sums.
Expr left_factor(const TargetBuilder& b, const IntegerProduct& product, const Expr& element,
                 const Expr& widened, int64_t zero) {
  return product.defined() || is_float(widened.type())
             ? widened
             : widened_number(b.target, element, widened.type(), zero);
}

}  // namespace

Expected<Lowered<MatMulStages>> lower_matmul(TargetBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMul>(node.attrs);
  Operand2d left{node.inputs[0], a.trans_a}, right{node.inputs[1], a.trans_b};
  const Shape& xs = b.type(left.value).shape;
  const Shape& ws = b.type(right.value).shape;
  const TensorType& y = b.type(node.output);
  DType acc_type = accumulator_type(y.dtype);
  auto widen = [&](const Expr& e) { return e.type() == acc_type ? e : cast(acc_type, e); };

  Expr rows = y.shape[y.shape.size() - 2], columns = y.shape.back();
  Expr depth = a.trans_a ? xs[xs.size() - 2] : xs.back();
  Shape batch(y.shape.begin(), y.shape.end() - 2);
  bool shared = !a.trans_a;  // true: one right matrix for all batches
  for (size_t i = 0; i + 2 < ws.size(); ++i) shared &= is_const(ws[i], 1);
  Shape outer = shared ? Shape{} : batch;
  Expr all_rows = shared ? simplify(element_count(batch) * rows) : rows;
  int64_t lanes = std::max(1, b.target.lanes(dtype_bytes(acc_type)));
  auto row_bytes = as_const(depth)
                       ? std::optional<int64_t>(*as_const(depth) * dtype_bytes(acc_type))
                       : std::nullopt;
  RegisterTile tile = product_tile(b.target, lanes, as_const(all_rows), as_const(columns),
                                   row_bytes);
  const DType x_type = b.type(left.value).dtype, w_type = b.type(right.value).dtype;
  const IntegerProduct product = instruction_for(b, node, {all_rows, depth}, lanes);
  if (!product.defined() && is_float(w_type))
    return arranged(define_matmul(b, node), b.target, arrange_matmul);
  if (product.tiles) tile = tiles_of(product, as_const(all_rows), *as_const(columns), lanes);
  const Expr steps = product.defined() ? ceil_div(depth, product.depth) : depth;
  int64_t panel = tile.vectors * lanes;
  Expr panels = simplify(floor_div(columns + Expr(panel - 1), Expr(panel)));

  // Panels of the right operand
  Shape right_batch;
  std::vector<Axis> pack_axes;
  for (size_t i = 0; i + 2 < ws.size(); ++i)
    if (!is_const(ws[i], 1)) {
      right_batch.push_back(ws[i]);
      pack_axes.push_back({"wb" + std::to_string(i), ws[i]});
    }
  const Panels layout{product, panel, product.depth};
  layout.add_axes(pack_axes, panels, depth);
  MatMulStages m;
  BufferId packed = b.packed(right.value, "w", pack_axes, [&](const auto& read) {
    Index own;
    for (size_t i = 0; i + 2 < ws.size(); ++i) own.push_back(var("wb" + std::to_string(i)));
    const Expr column = layout.column(), at = layout.step();
    return select(logical_and(lt(column, columns), product.defined() ? lt(at, depth) : Expr()),
                  read(matrix_index(ws, right.transposed, own, at, column)), imm(0, w_type));
  });

  // The sums
  std::vector<Axis> out_axes;
  Index batch_index;
  for (size_t i = 0; i < outer.size(); ++i) {
    out_axes.push_back({"ab" + std::to_string(i), outer[i]});
    batch_index.push_back(var(out_axes.back().name));
  }
  // A free number of rows, or a number that several rows an instruction do not divide, is summed in
  // whole register tiles. Rows behind the last one repeat it, and only the output's stores check
  // for them.
  const bool several = product.rows > 1;
  if (several && !product.tiles)
    tile.rows = tile_rows(b.target, tile.vectors, as_const(all_rows), {}, product.rows);
  const bool as_is = as_const(all_rows) && (!several || *as_const(all_rows) % tile.rows == 0);
  const Expr padded_rows = as_is ? all_rows
                                 : simplify(ceil_div(all_rows, tile.rows) * Expr(tile.rows));
  out_axes.insert(out_axes.end(), {{"ai", padded_rows}, {"aj", simplify(panels * Expr(panel))}});
  std::vector<Axis> axes = out_axes;
  axes.push_back({"k", simplify(steps), AxisRole::reduce});
  const bool neighbours = product.depth > 1;
  if (product.tiles)
    axes.push_back({"kq", Expr(product.depth / product.neighbours), AxisRole::reduce});
  if (neighbours) axes.push_back({"kp", Expr(product.neighbours), AxisRole::reduce});
  b.declare(axes);
  const auto row_of = [&](const Expr& row) {  // the left operand's row
    return as_is ? row : min(row, all_rows - Expr(1));
  };
  const Expr i = several ? var("ai") : row_of(var("ai")), j = var("aj"), k = var("k");
  const bool plain_left = shared && !(left.value == right.value) &&
                          !b.graph.is_constant(left.value) && !b.inside(left.value);
  Element left_element = [&](const Index& batches, const Expr& row, const Expr& depth_at) {
    if (plain_left) return load(b.input(left.value, {all_rows, depth}), x_type, {row, depth_at});
    if (!shared)
      return b.element(left.value, matrix_index(xs, left.transposed, batches, row, depth_at));
    Index at = unflatten_index(Shape(xs.begin(), xs.end() - 1), row);
    for (Expr& e : at) e = b.simplified(e);
    at.push_back(depth_at);
    return b.element(left.value, at);
  };
  if (product.defined() && !(plain_left && x_type == product.type && product.rows == 1 &&
                             *as_const(depth) % product.depth == 0))
    left_element = copied_left(
        b, m, product, outer, {several ? padded_rows : all_rows, depth},
        [left_element, row_of, several](const Index& batches, const Expr& row, const Expr& step) {
          return left_element(batches, several ? row_of(row) : row, step);
        });
  Index w_index;
  for (size_t d = 0; d + 2 < ws.size(); ++d)
    if (!is_const(ws[d], 1))
      w_index.push_back(batch_index[batch_index.size() - (ws.size() - 2) + d]);
  layout.add_place(b, w_index, j, k);
  Shape acc_shape = outer;
  acc_shape.insert(acc_shape.end(), {padded_rows, simplify(panels * Expr(panel))});
  BufferId acc = b.temp("acc", acc_type, acc_shape);
  Index acc_at = batch_index;
  acc_at.insert(acc_at.end(), {var("ai"), j});
  Expr depth_at = neighbours ? k * Expr(product.depth) + var("kp") : k;
  if (product.tiles) depth_at = depth_at + var("kq") * Expr(product.neighbours);
  const Expr factor = left_element(batch_index, i, depth_at);
  const Expr sum = left_factor(b, product, factor, widen(factor), a.a_zero) *
                   widen(load(packed, w_type, w_index));
  m.copies.push_back(b.stage_of(packed));
  m.weights = b.name_of(packed);
  m.panel = panel;
  m.acc = b.stage("acc", axes, acc, acc_at, sum, Combiner::add, imm(0, acc_type));
  m.acc_row = axes[outer.size()].loop(), m.acc_column = axes[outer.size() + 1].loop();
  m.depth = {axes[outer.size() + 2].loop()};
  if (product.defined()) m.instruction = product.sums(neighbours ? axes.back().loop() : Loop());

  const int64_t surplus = product.defined() ? a.a_zero - product.left.zero : 0;
  BufferId correction;
  if (surplus != 0)
    correction = surplus_of_sums(b, right.value, acc_type, surplus,
                                 right.transposed ? Index{var("c0")} : Index{Expr(), var("c0")},
                                 {columns});
  m.y = write_product(b, node, shared, [&](const Index& at) {
    const Expr sum = load(acc, acc_type, at);
    return surplus != 0 ? sum - load(correction, acc_type, {at.back()}) : sum;
  });
  return b.finish(std::move(m));
}

}  // namespace tw
