// Transposed convolutions in tiles of a device (kernels/device/tiles.h), as the sub-pixel
// convolutions of kernels/conv/lower_transpose.cpp. Each phase of the output's pixels is a product
// of gathered windows and its own taps, and the phases are batches of one product. Rows are pixels
// of the input's grid, and columns are channels. The depth runs over taps and, fastest, the input's
// channels.
#include "kernels/conv/group.h"
#include "kernels/device/tiles.h"

namespace tw {
namespace {

class TransposedTiles : ConvGroup {
 public:
  TransposedTiles(TargetBuilder& builder, const Node& node, ConvShape shape)
      : ConvGroup(builder, node, std::move(shape)),
        a_(std::get<op::ConvTranspose>(node.attrs)),
        w_type_(b_.type(node.inputs[1])) {}

  std::optional<Lowered<TileStages>> lower() {
    if (pool_ || a_.x_zero != 0 || x_type_.dtype != w_type_.dtype || !has_phases(s_) || !has_rows())
      return std::nullopt;
    TiledProduct p;
    p.depth = s_.cg;
    for (size_t i = 0; i < rank(); ++i) {
      const int64_t taps = (s_.kernel[i] + s_.strides[i] - 1) / s_.strides[i];
      taps_.push_back(Expr(taps)), p.depth *= taps;
    }
    if (s_.group > 1) p.batch.push_back(Expr(s_.group));
    for (const int64_t stride : s_.strides) p.batch.push_back(Expr(stride));
    p.rows = simplify(element_count(row_shape(s_.strides))), p.columns = s_.mg;
    const std::optional<BlockTile> tile = block_tile(b_.target, problem(p));
    if (!tile) return std::nullopt;
    p.tile = *tile, p.acc_type = acc_type_, p.left_type = x_type_.dtype;
    p.right = node_.inputs[1];
    p.left = [this](const Index& batch, const Expr& row, const Expr& k) {
      return pixel(batch, row, k);
    };
    p.right_made = [this](const auto& read, const Index& batch, const Expr& k, const Expr& column) {
      return weight(read, batch, k, column);
    };
    const TiledSums sums = add_tiled_sums(b_, p);
    return finish_tiles(b_, sums, write_rows(s_.strides, [&](const Index& at, const Expr&) {
                          return sums.element(at);
                        }));
  }

 private:
  TileProblem problem(const TiledProduct& p) const {
    const auto bytes = [&](ValueId v) {
      return as_const(simplify(element_count(b_.type(v).shape))).value_or(0) *
             dtype_bytes(x_type_.dtype);
    };
    return {as_const(simplify(element_count(p.batch))),
            as_const(p.rows),
            p.columns,
            p.depth,
            {x_type_.dtype, false},
            bytes(node_.inputs[0]),
            bytes(node_.inputs[1]),
            true};
  }

  Expr phase(const Index& batch, size_t i) const { return batch[batch.size() - rank() + i]; }
  Expr in_channel(const Index& batch, const Expr& k) const {
    const Expr in_group = floor_mod(k, Expr(s_.cg));
    return b_.simplified(s_.group > 1 ? batch[0] * Expr(s_.cg) + in_group : in_group);
  }
  Index taps_of(const Expr& k) const {
    return unflatten_index(taps_, b_.simplified(floor_div(k, Expr(s_.cg))));
  }

  // A pixel of the input; 0 outside it
  Expr pixel(const Index& batch, const Expr& row, const Expr& k) const {
    const Index at = unflatten_index(row_shape(s_.strides), row), taps = taps_of(k);
    Index from;
    Expr inside;
    for (size_t i = 0; i < rank(); ++i) {
      const Expr first = phase(batch, i) + Expr(s_.pads_begin[i]);
      from.push_back(b_.simplified(at[i + 1] + floor_div(first, s_.strides[i]) - taps[i]));
      inside = logical_and(inside, logical_and(le(Expr(0), from[i]), lt(from[i], s_.in[i])));
    }
    const Expr element = load(b_.input(node_.inputs[0]), x_type_.dtype,
                              physical(b_.simplified(at[0]), in_channel(batch, k), from));
    return select(inside, element, imm(0, x_type_.dtype));
  }

  // A weight; 0 if the phase has no such tap
  Expr weight(const std::function<Expr(const Index&)>& read, const Index& batch, const Expr& k,
              const Expr& column) const {
    const Index taps = taps_of(k);
    Index at = {in_channel(batch, k), column};
    Expr inside;
    for (size_t i = 0; i < rank(); ++i) {
      const Expr first = phase(batch, i) + Expr(s_.pads_begin[i]);
      at.push_back(b_.simplified(taps[i] * Expr(s_.strides[i]) + floor_mod(first, s_.strides[i])));
      inside = logical_and(inside, lt(at.back(), Expr(s_.kernel[i])));
    }
    return select(inside, read(at), imm(0, w_type_.dtype));
  }

  const op::ConvTranspose& a_;
  const TensorType& w_type_;
  Shape taps_;  // taps of a phase
};

}  // namespace

Expected<std::optional<Lowered<TileStages>>> lower_conv_transpose_in_tiles(TargetBuilder& b,
                                                                           const Node& node) {
  if (b.target.axes.empty()) return std::nullopt;
  TW_ASSIGN(ConvShape shape, conv_transpose_shape(b, node));
  return TransposedTiles(b, node, std::move(shape)).lower();
}

}  // namespace tw
