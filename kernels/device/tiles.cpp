#include "kernels/device/tiles.h"

#include <algorithm>

#include "kernels/common/group_builder.h"
#include "kernels/conv/group.h"
#include "kernels/device/device.h"
#include "kernels/matmul/matmul.h"

namespace tw {
namespace {

Expr whole(const Expr& extent, int64_t tile) {
  return simplify(ceil_div(extent, tile) * Expr(tile));
}

}  // namespace

TiledSums add_tiled_sums(GroupBuilder& b, const TiledProduct& p) {
  const auto axes_of = [&](const char* prefix, std::vector<Axis> own) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < p.batch.size(); ++i)
      axes.push_back({std::string(prefix) + "b" + std::to_string(i), p.batch[i]});
    axes.insert(axes.end(), own.begin(), own.end());
    b.declare(axes);
    return axes;
  };
  const Expr rows = whole(p.rows, p.tile.rows), depth = whole(Expr(p.depth), p.tile.depth);
  const int64_t panels = (p.columns + p.tile.columns - 1) / p.tile.columns;

  const std::vector<Axis> x_axes = axes_of("x", {{"xi", rows}, {"xk", depth}});
  const Index at = variables(x_axes), batch(at.begin(), at.end() - 2);
  const Expr inside = b.simplified(
      logical_and(lt(var("xi"), p.rows), lt(var("xk"), Expr(p.depth))));
  const Expr element = p.left(batch, var("xi"), var("xk"));
  const BufferId left = b.temp("xt", p.left_type, extents(x_axes));
  TileStages m;
  m.left = b.stage("xt", x_axes, left, at,
                   is_const(inside, 1) ? element : select(inside, element, imm(0, p.left_type)));

  const Shape& right_shape = b.type(p.right).shape;
  const DType right_type = b.type(p.right).dtype;
  std::vector<Axis> w_axes;
  Index own;
  std::vector<size_t> from;  // the batches that the right operand has, of the product's
  const size_t w_batches = right_shape.size() >= p.batch.size() + 2
                               ? p.batch.size()
                               : right_shape.size() - std::min<size_t>(right_shape.size(), 2);
  if (!p.batch.empty())
    for (size_t i = 0; i + 2 < right_shape.size(); ++i) {
      const bool one = is_const(right_shape[i], 1);
      own.push_back(one ? Expr(0) : var("wb" + std::to_string(i)));
      if (one) continue;
      w_axes.push_back({"wb" + std::to_string(i), right_shape[i]});
      from.push_back(p.batch.size() - w_batches + i);
    }
  w_axes.insert(w_axes.end(), {{"wj", Expr(panels)}, {"wk", depth}, {"wl", Expr(p.tile.columns)}});
  const BufferId right = b.packed(p.right, "w", w_axes, [&](const auto& read) {
    const Expr column = var("wj") * Expr(p.tile.columns) + var("wl");
    Index index = own;
    for (const Expr& e : p.right_index(var("wk"), column)) index.push_back(e);
    return select(logical_and(lt(column, Expr(p.columns)), lt(var("wk"), Expr(p.depth))),
                  read(index), imm(0, right_type));
  });

  std::vector<Axis> axes = axes_of("a", {{"ai", rows}, {"aj", Expr(panels * p.tile.columns)}});
  const BufferId acc = b.temp("acc", p.acc_type, extents(axes));
  const Index sum = variables(axes);
  axes.push_back({"k", depth, AxisRole::reduce});
  b.declare(axes);
  const auto widen = [&](const Expr& e) {
    return e.type() == p.acc_type ? e : cast(p.acc_type, e);
  };
  Index x_at(sum.begin(), sum.end() - 1), w_at;
  x_at.push_back(var("k"));
  for (const size_t i : from) w_at.push_back(sum[i]);
  w_at.insert(w_at.end(), {b.simplified(floor_div(var("aj"), Expr(p.tile.columns))), var("k"),
                           b.simplified(floor_mod(var("aj"), Expr(p.tile.columns)))});
  m.right = b.stage_of(right);
  m.weights = b.name_of(right);
  m.acc = b.stage("acc", axes, acc, sum,
                  widen(load(left, p.left_type, x_at)) * widen(load(right, right_type, w_at)),
                  Combiner::add, imm(0, p.acc_type));
  const Loops all = loops(axes);
  m.acc_row = all[all.size() - 3], m.acc_column = all[all.size() - 2], m.depth = all.back();
  return {m, acc};
}

static Lowered<TileStages> finish_tiles(GroupBuilder& b, const TiledSums& sums,
                                        const ProductOutput& y) {
  TileStages m = sums.stages;
  m.y = y.stage, m.batches = y.batches, m.row = y.row, m.column = y.column;
  return b.finish(std::move(m));
}

std::optional<Lowered<TileStages>> lower_matmul_in_tiles(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMul>(node.attrs);
  const ValueId left = node.inputs[0];
  const Shape &xs = b.type(left).shape, &ws = b.type(node.inputs[1]).shape;
  const TensorType& y = b.type(node.output);
  const Shape batch(y.shape.begin(), y.shape.end() - 2);
  bool joined = !a.trans_a;  // one right matrix for all batches
  for (size_t i = 0; i + 2 < ws.size(); ++i) joined &= is_const(ws[i], 1);
  const Expr rows = joined ? simplify(element_count(batch) * y.shape[y.shape.size() - 2])
                           : y.shape[y.shape.size() - 2];
  const auto columns = as_const(y.shape.back()),
             depth = as_const(a.trans_a ? xs[xs.size() - 2] : xs.back());
  const bool same = b.type(left).dtype == b.type(node.inputs[1]).dtype;
  if (!columns || !depth || !same || xs.size() < 2 || ws.size() < 2) return std::nullopt;
  const auto tile = block_tile(b.target, b.type(left).dtype, as_const(rows), *columns, *depth);
  if (!tile) return std::nullopt;
  TiledProduct p{
      *tile, joined ? Shape{} : batch, rows,           *columns, *depth, accumulator_type(y.dtype),
      {},    b.type(left).dtype,       node.inputs[1], {}};
  p.left = [&](const Index& of, const Expr& row, const Expr& k) {
    if (joined && !(left == node.inputs[1]) && !b.graph.is_constant(left))
      return load(b.input(left, {rows, Expr(*depth)}), b.type(left).dtype, {row, k});
    Index at;
    if (joined) {
      at = unflatten_index(Shape(xs.begin(), xs.end() - 1), row);
      for (Expr& e : at) e = b.simplified(e);
      at.push_back(k);
    } else {
      for (size_t i = 0; i + 2 < xs.size(); ++i)
        at.push_back(is_const(xs[i], 1) ? Expr(0) : of[of.size() - (xs.size() - 2) + i]);
      at.push_back(a.trans_a ? k : row);
      at.push_back(a.trans_a ? row : k);
    }
    return b.parameter_element(left, at);
  };
  p.right_index = [&](const Expr& k, const Expr& column) {
    Index at;
    if (joined) at.assign(ws.size() - 2, Expr(0));
    at.push_back(a.trans_b ? column : k);
    at.push_back(a.trans_b ? k : column);
    return at;
  };
  const TiledSums sums = add_tiled_sums(b, p);
  return finish_tiles(b, sums, write_product(b, node, joined, [&](const Index& at) {
                        return load(sums.acc, p.acc_type, at);
                      }));
}

namespace {

// Rows are output pixels of all images, the depth runs over taps and, fastest, channels.
class TiledConv : ConvGroup {
 public:
  TiledConv(GroupBuilder& builder, const Node& conv, ConvShape shape)
      : ConvGroup(builder, conv, std::move(shape)) {}

  std::optional<Lowered<TileStages>> lower() {
    if (s_.group != 1 || pool_ || x_type_.dtype != b_.type(node_.inputs[1]).dtype)
      return std::nullopt;
    int64_t taps = 1;
    for (const int64_t k : s_.kernel) taps *= k;
    const Expr rows = simplify(s_.n * element_count(s_.out));
    const auto tile = block_tile(b_.target, x_type_.dtype, as_const(rows), s_.m, taps * s_.c);
    if (!tile) return std::nullopt;
    declare_inputs();
    TiledProduct p{*tile,           {}, rows, s_.m, taps * s_.c, acc_type_, {}, x_type_.dtype,
                   node_.inputs[1], {}};
    p.left = [&](const Index&, const Expr& row, const Expr& k) { return window_element(row, k); };
    p.right_index = [&](const Expr& k, const Expr& column) {
      Index at = {column, b_.simplified(floor_mod(k, Expr(s_.c)))};
      for (const Expr& tap : taps_of(k)) at.push_back(tap);
      pad_rank(at);
      return at;
    };
    const TiledSums sums = add_tiled_sums(b_, p);
    return finish_tiles(b_, sums, write_rows(rows, [&](const Expr& row, const Expr& channel) {
                          return load(sums.acc, acc_type_, {row, channel});
                        }));
  }

 private:
  Index taps_of(const Expr& k) const {
    Index taps = unflatten_index(Shape(s_.kernel.begin(), s_.kernel.end()),
                                 b_.simplified(floor_div(k, Expr(s_.c))));
    for (Expr& e : taps) e = b_.simplified(e);
    return taps;
  }

  Expr window_element(const Expr& row, const Expr& k) {
    Shape all = {s_.n};
    all.insert(all.end(), s_.out.begin(), s_.out.end());
    const Index out = unflatten_index(all, row), taps = taps_of(k);
    Index at;
    Expr inside;
    for (size_t i = 0; i < rank(); ++i) {
      at.push_back(b_.simplified(out[i + 1] * Expr(s_.strides[i]) +
                                 taps[i] * Expr(s_.dilations[i]) - Expr(s_.pads_begin[i])));
      inside = logical_and(inside, logical_and(le(Expr(0), at[i]), lt(at[i], s_.in[i])));
    }
    const Expr element = load(
        b_.input(node_.inputs[0]), x_type_.dtype,
        physical(b_.simplified(out[0]), b_.simplified(floor_mod(k, Expr(s_.c))), at));
    return s_.padded ? select(inside, element, imm(0, x_type_.dtype)) : element;
  }
};

}  // namespace

Expected<std::optional<Lowered<TileStages>>> lower_conv_in_tiles(GroupBuilder& b,
                                                                 const Node& node) {
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  return TiledConv(b, node, std::move(shape)).lower();
}

}  // namespace tw
