// Products with a matrix of small integers, which stays as it is in memory: bytes in panels
// [N/P][bytes of a row][P], with a scale and an offset a block of depth steps beside them
// ([N/P][blocks][P]); the kernel takes the numbers out of the bytes, P columns at a time. Stages:
// w, ws, wo (run-time packing only), acc [row][column, padded to whole panels], y. The depth is
// three loops: kb over blocks, kc over a block's bytes, kr over a byte's numbers.
#include "kernels/common/group_builder.h"
#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"

namespace tw {
namespace {

// [N/P][own axes behind the first][P] of v, whose first axis are the columns; anything behind the
// last column.
BufferId column_panels(GroupBuilder& b, ValueId v, const std::string& name, const Expr& panels,
                       int64_t panel) {
  const Shape& shape = b.type(v).shape;
  std::vector<Axis> axes = {{name + "j", panels}};
  for (size_t i = 1; i < shape.size(); ++i)
    axes.push_back({name + "k" + std::to_string(i), shape[i]});
  axes.push_back({name + "l", Expr(panel)});
  return b.packed(v, name, axes, [&](const auto& read) {
    const Index at = variables(axes);
    Index from(at.begin(), at.end() - 1);
    from[0] = min(at.front() * Expr(panel) + at.back(), shape[0] - Expr(1));
    return read(from);
  });
}

}  // namespace

Expected<Lowered<MatMulStages>> lower_matmul_nbits(GroupBuilder& b, const Node& node) {
  const auto& a = std::get<op::MatMulNBits>(node.attrs);
  const ValueId left = node.inputs[0];
  const Shape& xs = b.type(left).shape;
  const TensorType& y = b.type(node.output);
  const DType acc_type = accumulator_type(y.dtype);
  const auto widen = [&](const Expr& e) { return e.type() == acc_type ? e : cast(acc_type, e); };
  const int64_t in_byte = 8 / a.bits, lanes = std::max(1, b.target.lanes(dtype_bytes(acc_type)));
  const Expr depth = xs.back(), columns = y.shape.back(), blocks = b.type(node.inputs[1]).shape[1];
  const Expr rows = simplify(element_count(Shape(xs.begin(), xs.end() - 1)));
  const auto row_bytes = as_const(depth)
                             ? std::optional<int64_t>(*as_const(depth) * dtype_bytes(acc_type))
                             : std::nullopt;
  const RegisterTile tile = product_tile(b.target, lanes, as_const(rows), as_const(columns),
                                         row_bytes);
  const int64_t panel = tile.vectors * lanes;
  const Expr panels = simplify(ceil_div(columns, panel));
  const BufferId w = column_panels(b, node.inputs[1], "w", panels, panel);
  const BufferId scales = column_panels(b, node.inputs[2], "ws", panels, panel),
                 offsets = column_panels(b, node.inputs[3], "wo", panels, panel);

  // A free number of rows is summed in whole register tiles: rows behind the last one repeat it.
  const Expr padded_rows = as_const(rows) ? rows
                                          : simplify(ceil_div(rows, tile.rows) * Expr(tile.rows)),
             width = simplify(panels * Expr(panel));
  std::vector<Axis> axes = {{"ai", padded_rows}, {"aj", width}};
  const Index acc_at = variables(axes);
  axes.insert(axes.end(), {{"kb", blocks, AxisRole::reduce},
                           {"kc", Expr(a.block / in_byte), AxisRole::reduce},
                           {"kr", Expr(in_byte), AxisRole::reduce}});
  b.declare(axes);
  const Expr j = var("aj"), k = var("kb") * Expr(a.block) + var("kc") * Expr(in_byte) + var("kr");
  const Expr i = as_const(rows) ? var("ai") : min(var("ai"), rows - Expr(1));
  const Index row = {b.simplified(floor_div(j, Expr(panel)))},
              lane = {b.simplified(floor_mod(j, Expr(panel)))};
  const DType part = b.type(node.inputs[2]).dtype;
  const Expr byte = cast(DType::i32, load(w, DType::u8, {row[0], var("kb"), var("kc"), lane[0]}));
  const Expr shift = cast(DType::i32, b.simplified(var("kr") * Expr(a.bits)));
  const Expr code = a.bits == 8 ? byte
                                : binary(BinaryOp::bit_and, binary(BinaryOp::shr, byte, shift),
                                         int_imm((1 << a.bits) - 1, DType::i32));
  const auto block_value = [&](BufferId buffer) {
    return widen(load(buffer, part, {row[0], var("kb"), lane[0]}));
  };
  const bool whole = as_const(depth) && *as_const(depth) % a.block == 0;
  Expr x;
  if (b.graph.is_constant(left)) {
    Index at = unflatten_index(Shape(xs.begin(), xs.end() - 1), i);
    at.push_back(k);
    for (Expr& e : at) e = b.simplified(e);
    x = b.parameter_element(left, at);
  } else {
    x = load(b.input(left, {rows, depth}), b.type(left).dtype, {i, k});
  }
  const BufferId acc = b.temp("acc", acc_type, {padded_rows, width});
  MatMulStages m;
  m.copies = {b.stage_of(w), b.stage_of(scales), b.stage_of(offsets)};
  m.weights = b.name_of(w);
  m.panel = panel;
  m.acc = b.stage("acc", axes, acc, acc_at,
                  widen(x) * (cast(acc_type, code) * block_value(scales) + block_value(offsets)),
                  Combiner::add, imm(0, acc_type), whole ? Expr() : lt(k, depth));
  const Loops all = loops(axes);
  m.acc_row = all[0], m.acc_column = all[1];
  m.depth = {all.begin() + 2, all.end()};
  m.y = write_product(b, node, true, [&](const Index& at) { return load(acc, acc_type, at); });
  return b.finish(std::move(m));
}

}  // namespace tw
