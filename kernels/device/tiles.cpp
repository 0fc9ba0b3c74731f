#include "kernels/device/tiles.h"

#include <algorithm>

#include "ir/graph/queries.h"
#include "kernels/common/integer_product.h"
#include "kernels/common/target_builder.h"
#include "kernels/conv/group.h"
#include "kernels/device/device.h"
#include "kernels/matmul/matmul.h"

namespace tw {
namespace {

Expr whole(const Expr& extent, int64_t tile) {
  return simplify(ceil_div(extent, tile) * Expr(tile));
}

// Axes PREFIXb0, PREFIXb1, ...
std::vector<Axis> batch_axes(const TiledProduct& p, const char* prefix) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < p.batch.size(); ++i)
    axes.push_back({std::string(prefix) + "b" + std::to_string(i), p.batch[i]});
  return axes;
}

// Adds stage "part": it stores the sums, or parts of them, in the tiles' order to memory.
void store_parts(TargetBuilder& b, const TiledProduct& p, TiledSums& sums) {
  std::vector<Axis> axes = batch_axes(p, "p");
  if (p.tile.parts > 1) axes.insert(axes.begin(), {"pp", Expr(p.tile.parts)});
  axes.insert(axes.end(), {{"pi", p.rows}, {"pj", Expr(p.columns)}});
  b.declare(axes);
  const BufferId parts = b.temp("part", p.acc_type, extents(axes));
  const Index at = variables(axes);
  TileStages& m = sums.stages;
  m.y = b.stage("part", axes, parts, at, load(sums.sums, p.acc_type, at));
  m.batches = loops(axes);
  m.column = m.batches.back(), m.batches.pop_back();
  m.row = m.batches.back(), m.batches.pop_back();
  sums.sums = parts;
}

// The axes of the batches, then `own`
std::vector<Axis> axes_of(TargetBuilder& b, const TiledProduct& p, const char* prefix,
                          const std::vector<Axis>& own) {
  std::vector<Axis> axes = batch_axes(p, prefix);
  axes.insert(axes.end(), own.begin(), own.end());
  b.declare(axes);
  return axes;
}

// Stage xt copies the left operand, with zeros beyond its rows and depth.
BufferId copy_left(TargetBuilder& b, const TiledProduct& p, const Expr& rows, const Expr& depth) {
  const std::vector<Axis> axes = axes_of(b, p, "x", {{"xi", rows}, {"xk", depth}});
  const Index at = variables(axes), batch(at.begin(), at.end() - 2);
  const Expr inside = b.simplified(
      logical_and(lt(var("xi"), p.rows), lt(var("xk"), Expr(p.depth))));
  const Expr element = p.left(batch, var("xi"), var("xk"));
  const BufferId left = b.temp("xt", p.left_type, extents(axes));
  b.stage("xt", axes, left, at,
          is_const(inside, 1) ? element : select(inside, element, imm(0, p.left_type)));
  return left;
}

struct Panels {
  BufferId buffer;              // [batch.., panel, depth, column]
  std::vector<size_t> batches;  // the product's batches that the right operand has
};

// The index of an operand's batches, for an operand that memory has in the form in which it is
// multiplied. Adds its axes and the numbers of its batches.
Index own_batches(const TiledProduct& p, const Shape& shape, std::vector<Axis>& axes,
                  std::vector<size_t>& batches) {
  Index own;
  const size_t count = shape.size() >= p.batch.size() + 2
                           ? p.batch.size()
                           : shape.size() - std::min<size_t>(shape.size(), 2);
  if (!p.batch.empty())
    for (size_t i = 0; i + 2 < shape.size(); ++i) {
      const bool one = is_const(shape[i], 1);
      own.push_back(one ? Expr(0) : var("wb" + std::to_string(i)));
      if (one) continue;
      axes.push_back({"wb" + std::to_string(i), shape[i]});
      batches.push_back(p.batch.size() - count + i);
    }
  return own;
}

// Buffer w has the right operand in panels of a tile's columns, with zeros beyond its columns and
// depth.
Panels pack_right(TargetBuilder& b, const TiledProduct& p, const Expr& depth, int64_t panels) {
  Panels out;
  std::vector<Axis> axes;
  Index own;
  if (p.right_made) {
    axes = batch_axes(p, "w");
    own = variables(axes);
    for (size_t i = 0; i < axes.size(); ++i) out.batches.push_back(i);
  } else {
    own = own_batches(p, b.type(p.right).shape, axes, out.batches);
  }
  axes.insert(axes.end(), {{"wj", Expr(panels)}, {"wk", depth}, {"wl", Expr(p.tile.columns)}});
  const auto value = [&](const auto& read) {
    const Expr column = var("wj") * Expr(p.tile.columns) + var("wl");
    Index index = own;
    if (!p.right_made)
      for (const Expr& e : p.right_index(var("wk"), column)) index.push_back(e);
    return select(logical_and(lt(column, Expr(p.columns)), lt(var("wk"), Expr(p.depth))),
                  p.right_made ? p.right_made(read, own, var("wk"), column) : read(index),
                  imm(0, b.type(p.right).dtype));
  };
  Schedule schedule;
  if (p.made_together) {
    step::Reorder order{{"wj", "wk", "wl"}};
    for (size_t i = 0; i < p.batch.size(); ++i) order.loops.push_back("wb" + std::to_string(i));
    schedule.steps.push_back(std::move(order));
    for (size_t i = 0; i < p.batch.size(); ++i)
      schedule.steps.push_back(step::Unroll{"wb" + std::to_string(i)});
  }
  out.buffer = b.packed(p.right, "w", axes, value, schedule);
  return out;
}

// The amount to subtract from the sums of a column, for the left operand's zero point; undefined:
// nothing. The weights are constant, and `axis` is their axis of columns.
std::function<Expr(const Expr& column)> surplus_of(TargetBuilder& b, const TiledSums& sums,
                                                   ValueId weights, int64_t zero, size_t axis,
                                                   int64_t columns) {
  if (zero == 0) return {};
  Index at(axis);
  at.push_back(var("c0"));
  const BufferId surplus = surplus_of_sums(b, weights, sums.type, zero, at, {Expr(columns)});
  return [type = sums.type, surplus](const Expr& column) { return load(surplus, type, {column}); };
}

}  // namespace

TiledSums add_tiled_sums(TargetBuilder& b, const TiledProduct& p) {
  const Expr rows = whole(p.rows, p.tile.rows),
             depth = whole(Expr(p.depth), p.tile.depth * p.tile.parts);
  const int64_t panels = (p.columns + p.tile.columns - 1) / p.tile.columns;

  const BufferId left = copy_left(b, p, rows, depth);
  TileStages m;
  m.left = b.stage_of(left);

  const DType right_type = b.type(p.right).dtype;
  const Panels right_panels = pack_right(b, p, depth, panels);
  const BufferId right = right_panels.buffer;

  std::vector<Axis> axes = axes_of(b, p, "a",
                                   {{"ai", rows}, {"aj", Expr(panels * p.tile.columns)}});
  const Index sum = variables(axes);
  if (p.tile.parts > 1) axes.insert(axes.begin(), {"ap", Expr(p.tile.parts)});
  const BufferId acc = b.temp("acc", p.acc_type, extents(axes));
  const Index at_part = variables(axes);
  const Expr steps = simplify(floor_div(depth, Expr(p.tile.parts)));
  axes.push_back({"k", steps, AxisRole::reduce});
  b.declare(axes);
  const Expr k = p.tile.parts > 1 ? var("ap") * steps + var("k") : var("k");
  const auto number = [&](const Expr& e) {
    if (p.tf32) return unary(UnaryOp::tf32, e);
    return e.type() == p.acc_type ? e : cast(p.acc_type, e);
  };
  Index x_at(sum.begin(), sum.end() - 1), w_at;
  x_at.push_back(k);
  for (const size_t i : right_panels.batches) w_at.push_back(sum[i]);
  w_at.insert(w_at.end(), {b.simplified(floor_div(var("aj"), Expr(p.tile.columns))), k,
                           b.simplified(floor_mod(var("aj"), Expr(p.tile.columns)))});
  m.right = b.stage_of(right);
  m.weights = b.name_of(right);
  m.acc = b.stage("acc", axes, acc, at_part,
                  number(load(left, p.left_type, x_at)) * number(load(right, right_type, w_at)),
                  Combiner::add, imm(0, p.acc_type));
  const Loops all = loops(axes);
  m.acc_row = all[all.size() - 3], m.acc_column = all[all.size() - 2], m.depth = all.back();
  m.tile = p.tile;
  TiledSums sums{m, acc, p.tile.parts, p.acc_type};
  if (p.tile.parts > 1 || p.stored) store_parts(b, p, sums);
  return sums;
}

Expr TiledSums::element(const Index& at) const {
  if (parts == 1) return load(sums, type, at);
  Expr total;
  for (int64_t part = 0; part < parts; ++part) {
    Index of_part = {Expr(part)};
    of_part.insert(of_part.end(), at.begin(), at.end());
    const Expr next = load(sums, type, of_part);
    total = total.defined() ? total + next : next;
  }
  return total;
}

// True: one right matrix serves all batches, so their rows can be joined.
static bool joins_batches(const Graph& graph, const Node& node) {
  bool joined = !std::get<op::MatMul>(node.attrs).trans_a;
  const Shape& right = graph.value(node.inputs[1]).type.shape;
  for (size_t i = 0; i + 2 < right.size(); ++i) joined &= is_const(right[i], 1);
  return joined;
}

std::optional<TileProblem> tile_problem_of(const Graph& graph, const Node& node, bool tf32) {
  const auto* conv = get_if<op::Conv>(&node);
  const auto* product = get_if<op::MatMul>(&node);
  if (!conv && !product) return std::nullopt;
  const TensorType &left = graph.value(node.inputs[0]).type,
                   &right = graph.value(node.inputs[1]).type;
  const Shape& y = graph.value(node.output).type.shape;
  if (left.dtype != right.dtype || left.shape.size() < 2 || right.shape.size() < 2)
    return std::nullopt;
  Shape batches, rows(y.begin(), y.end() - 1);
  Expr columns = y.back(),
       depth = product && product->trans_a ? left.shape[left.shape.size() - 2] : left.shape.back();
  if (conv) {
    rows.assign(y.begin() + 2, y.end());
    rows.push_back(y[0]);
    columns = simplify(floor_div(right.shape[0], Expr(conv->group)));
    batches = {Expr(conv->group)};
    depth = element_count(Shape(right.shape.begin() + 1, right.shape.end()));
  } else if (!joins_batches(graph, node)) {
    batches.assign(rows.begin(), rows.end() - 1);
    rows = {rows.back()};
  }
  const auto count = [](const Shape& shape) { return as_const(simplify(element_count(shape))); };
  const auto fixed_columns = as_const(columns), fixed_depth = as_const(simplify(depth));
  if (!fixed_columns || !fixed_depth) return std::nullopt;
  return TileProblem{count(batches),
                     count(rows),
                     *fixed_columns,
                     *fixed_depth,
                     {left.dtype, tf32},
                     count(left.shape).value_or(0) * dtype_bytes(left.dtype),
                     count(right.shape).value_or(0) * dtype_bytes(right.dtype),
                     conv != nullptr};
}

static std::optional<BlockTile> tile_of_node(TargetBuilder& b, const Node& node) {
  const auto problem = tile_problem_of(b.graph, node, multiplies_tf32(b));
  return problem ? block_tile(b.target, *problem) : std::nullopt;
}

Lowered<TileStages> finish_tiles(TargetBuilder& b, const TiledSums& sums, const ProductOutput& y) {
  TileStages m = sums.stages;
  if (sums.parts > 1) m.total = y.stage;
  else m.y = y.stage, m.batches = y.batches, m.row = y.row, m.column = y.column;
  return b.finish(std::move(m));
}

std::optional<Lowered<TileStages>> lower_matmul_in_tiles(TargetBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMul>(node.attrs);
  const ValueId left = node.inputs[0];
  const Shape &xs = b.type(left).shape, &ws = b.type(node.inputs[1]).shape;
  const TensorType& y = b.type(node.output);
  const Shape all_rows(y.shape.begin(), y.shape.end() - 1);
  const bool joined = joins_batches(b.graph, node);
  const Expr rows = joined ? simplify(element_count(all_rows)) : all_rows.back();
  // The excess from a zero point is computed from constant weights.
  if (a.a_zero != 0 && (!b.graph.is_constant(node.inputs[1]) || ws.size() != 2))
    return std::nullopt;
  const auto tile = tile_of_node(b, node);
  if (!tile) return std::nullopt;
  const auto columns = as_const(y.shape.back()),
             depth = as_const(a.trans_a ? xs[xs.size() - 2] : xs.back());
  const Shape batches = joined ? Shape{} : Shape(all_rows.begin(), all_rows.end() - 1);
  TiledProduct p{*tile,
                 batches,
                 rows,
                 *columns,
                 *depth,
                 accumulator_type(y.dtype),
                 multiplies_tf32(b),
                 {},
                 b.type(left).dtype,
                 node.inputs[1],
                 {}};
  p.left = [&](const Index& of, const Expr& row, const Expr& k) {
    if (joined && !(left == node.inputs[1]) && !b.graph.is_constant(left) && !b.inside(left))
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
    return b.element(left, at);
  };
  p.right_index = [&](const Expr& k, const Expr& column) {
    Index at;
    if (joined) at.assign(ws.size() - 2, Expr(0));
    at.push_back(a.trans_b ? column : k);
    at.push_back(a.trans_b ? k : column);
    return at;
  };
  const TiledSums sums = add_tiled_sums(b, p);
  const auto surplus = surplus_of(b, sums, node.inputs[1], a.a_zero, a.trans_b ? 0 : 1, *columns);
  return finish_tiles(b, sums, write_product(b, node, joined, [&](const Index& at) {
                        const Expr sum = sums.element(at);
                        return surplus ? sum - surplus(at.back()) : sum;
                      }));
}

namespace {

// Rows are output pixels of all images, and columns the channels of a group. The depth runs over
// taps and, fastest, the group's input channels.
class TiledConv : ConvGroup {
 public:
  TiledConv(TargetBuilder& builder, const Node& conv, ConvShape shape)
      : ConvGroup(builder, conv, std::move(shape)) {}

  std::optional<Lowered<TileStages>> lower() {
    if (pool_) return std::nullopt;
    if (!has_rows()) return std::nullopt;
    if (zero_ != 0 && !b_.graph.is_constant(node_.inputs[1])) return std::nullopt;
    int64_t taps = 1;
    for (const int64_t k : s_.kernel) taps *= k;
    const Expr rows = simplify(element_count(row_shape({})));
    const auto tile = tile_of_node(b_, node_);
    if (!tile) return std::nullopt;
    declare_inputs();
    TiledProduct p{*tile,
                   groups() ? Shape{Expr(s_.group)} : Shape{},
                   rows,
                   s_.mg,
                   taps * s_.cg,
                   acc_type_,
                   multiplies_tf32(b_),
                   {},
                   x_type_.dtype,
                   node_.inputs[1],
                   {}};
    p.left = [&](const Index& group, const Expr& row, const Expr& k) {
      return window_element(group, row, k);
    };
    p.right_made = [&](const auto& read, const Index& group, const Expr& k, const Expr& column) {
      return read(tap_index(groups() ? b_.simplified(group[0] * Expr(s_.mg) + column) : column, k));
    };
    const TiledSums sums = add_tiled_sums(b_, p);
    const auto surplus = surplus_of(b_, sums, node_.inputs[1], zero_, 0, s_.m);
    return finish_tiles(b_, sums, write_rows({}, [&](const Index& at, const Expr& channel) {
                          const Expr sum = sums.element(at);
                          return surplus ? sum - surplus(channel) : sum;
                        }));
  }

 private:
  bool groups() const { return s_.group > 1; }

  Index tap_index(const Expr& channel, const Expr& k) const {
    Index at = {channel, b_.simplified(floor_mod(k, Expr(s_.cg)))};
    for (const Expr& tap : taps_of(k)) at.push_back(tap);
    pad_rank(at);
    return at;
  }

  Index taps_of(const Expr& k) const {
    Index taps = unflatten_index(Shape(s_.kernel.begin(), s_.kernel.end()),
                                 b_.simplified(floor_div(k, Expr(s_.cg))));
    for (Expr& e : taps) e = b_.simplified(e);
    return taps;
  }

  Expr window_element(const Index& group, const Expr& row, const Expr& k) {
    const Index out = unflatten_index(row_shape({}), row), taps = taps_of(k);
    Index at;
    Expr inside;
    for (size_t i = 0; i < rank(); ++i) {
      at.push_back(b_.simplified(out[i + 1] * Expr(s_.strides[i]) +
                                 taps[i] * Expr(s_.dilations[i]) - Expr(s_.pads_begin[i])));
      inside = logical_and(inside, logical_and(le(Expr(0), at[i]), lt(at[i], s_.in[i])));
    }
    const Expr in_group = floor_mod(k, Expr(s_.cg)),
               channel = groups() ? group[0] * Expr(s_.cg) + in_group : in_group;
    const Expr element = load(b_.input(node_.inputs[0]), x_type_.dtype,
                              physical(b_.simplified(out[0]), b_.simplified(channel), at));
    const Expr outside = is_float(x_type_.dtype) ? imm(0, x_type_.dtype)
                                                 : int_imm(zero_, x_type_.dtype);
    return s_.padded ? select(inside, element, outside) : element;
  }

  // The input's zero point. Its numbers are multiplied as they are, so the sums have an excess.
  const int64_t zero_ = std::get<op::Conv>(node_.attrs).x_zero;
};

}  // namespace

Expected<std::optional<Lowered<TileStages>>> lower_conv_in_tiles(TargetBuilder& b,
                                                                 const Node& node) {
  TW_ASSIGN(ConvShape shape, conv_shape(b, node));
  return TiledConv(b, node, std::move(shape)).lower();
}

}  // namespace tw
