// Arranges the operands of a product.
//
// The right operand lies in panels [batch][panel][depth][column of the panel]. A panel is a few
// vectors wide, by the target's registers, and the last one is filled up with zeros. Pairs of depth
// steps are innermost if the target sums so. A free number of rows becomes whole register tiles,
// which need no checks: only the output's stores ask where the rows end.
//
// An instruction of the target may sum products of some depth steps. These are innermost in the
// panels. The left operand counts from the zero that the instruction wants, and is copied in its
// form unless it has that already. In tiles the panels are [batch][panel][steps][tile of columns]
// [part of the steps][column and step].
#include <algorithm>
#include <bit>

#include "kernels/common/integer_product.h"
#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

class MatMulArrangement {
 public:
  MatMulArrangement(ScheduleBuilder& s, MatMulStages& m)
      : s_(s),
        m_(m),
        sums_(s.buffer(m.acc.buffer()).dtype),
        lanes_(std::max(1, s.target().lanes(dtype_bytes(sums_)))),
        rows_(s.extent(m.acc_row)),
        columns_(s.extent(m.acc_column)),
        depth_(s.extent(m.depth[0])),
        product_(instruction()),
        pairs_(sums_pairs()),
        tile_(tile()) {}

  void run() {
    m_.panel = panel_columns();
    if (product_.defined()) count_left();
    else narrow_left();
    pack_right();
    s_.pad(m_.acc_column, m_.panel);
    // Rows that an instruction takes together are filled up before they are copied.
    const bool several = product_.rows > 1;
    const bool whole = rows_ && (!several || *rows_ % tile_.rows == 0);
    if (several && !whole) s_.pad(m_.acc_row, tile_.rows);
    if (product_.defined() && !reads_left_in_place()) pack_left();
    if (copies_rows()) copy_rows();
    Loop innermost;
    if (product_.depth > 1) {
      const Steps steps = split_steps(s_, m_.depth[0], "k", product_);
      m_.depth[0] = steps.depth, innermost = steps.innermost;
    }
    if (product_.defined()) m_.instruction = product_.sums(innermost);
    if (!several && !whole) s_.pad(m_.acc_row, tile_.rows);
    if (pairs_) m_.paired = m_.depth[0];
  }

 private:
  // No instruction serves operands as wide as their sums, a single column, a single step of the
  // depth, or a depth that only a run knows.
  IntegerProduct instruction() const {
    if (dtype_bytes(m_.right_type) >= dtype_bytes(sums_) || depth_.value_or(0) < 2 || columns_ == 1)
      return {};
    const bool known = m_.weights.defined() && m_.right_is_matrix;
    const auto choose = known ? integer_product_from_anywhere : integer_product;
    ProductExtents extents{lanes_, 0, rows_};
    if (columns_) extents.tiles = {*columns_, *depth_};
    return chosen_instruction(s_, [&](const std::vector<std::string>& without) {
      extents.without = without;
      return choose(s_.target(), {m_.left_type, m_.left_zero}, m_.right_type, extents);
    });
  }

  // True: the left operand is copied so that the rows of a tile lie together. This pays where its
  // rows share a few sets of the cache.
  bool copies_rows() const {
    const bool suits = !product_.defined() && !pairs_ && rows_ && *rows_ > 1 && tile_.rows > 1 &&
                       depth_ && s_.reads_buffers(m_.acc, Factor::left);
    return suits && s_.choose_switch("copy_left", false);
  }

  void copy_rows() {
    const Expr i = variable(m_.acc_row), rows(tile_.rows);
    std::vector<ScheduleBuilder::PackedDim> dims = left_batches();
    dims.insert(
        dims.end(),
        {{floor_div(i, rows), "xt"}, {variable(m_.depth[0]), "xk"}, {floor_mod(i, rows), "xi"}});
    m_.copies.insert(m_.copies.begin(), s_.pack(m_.acc, Factor::left, "xp", "global", dims).stage);
    m_.copied_rows = true;
  }

  std::vector<ScheduleBuilder::PackedDim> left_batches() const {
    return batch_dims(s_, m_.acc, Factor::left, "x", m_.acc_row, {});
  }

  bool sums_pairs() const {
    return !product_.defined() && pairs_depth(s_.target()) && sums_ == DType::f32 &&
           !m_.narrow_result && m_.depth_is_last && rows_ != 1 && m_.weights.defined() && depth_ &&
           *depth_ % 2 == 0;
  }

  // The tile of sums that registers hold at once. Its width is that of a panel.
  RegisterTile tile() const {
    RegisterTile tile = usual_tile();
    if (pairs_ || product_.tiles) return tile;
    const auto whole = columns_ ? (*columns_ + lanes_ - 1) / lanes_ : kWidestPanel;
    std::vector<int64_t> others;
    for (int64_t vectors = 1; s_.open() && vectors <= std::min(kWidestPanel, whole); ++vectors)
      if (most_tile_rows(s_.target(), vectors) >= product_.rows) others.push_back(vectors);
    const int64_t vectors = s_.choose("panel", tile.vectors, others);
    if (vectors == tile.vectors) return tile;
    return {tile_rows(s_.target(), vectors, rows_, row_bytes(), product_.rows), vectors};
  }

  // Fewer columns than a vector has lanes take a shorter one, so that little of a panel is empty.
  int64_t panel_columns() const {
    const int64_t columns = tile_.vectors * lanes_ / (pairs_ ? 2 : 1);
    const bool few = !pairs_ && !product_.defined() && columns_ && *columns_ < lanes_;
    return few ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(*columns_))) : columns;
  }

  // Distance of the left operand's rows in memory
  std::optional<int64_t> row_bytes() const {
    return depth_ ? std::optional(*depth_ * dtype_bytes(sums_)) : std::nullopt;
  }

  RegisterTile usual_tile() const {
    const Target& target = s_.target();
    if (pairs_) return {paired_rows(target, rows_), kPairedVectors};
    if (product_.tiles) {
      const int64_t wide = *columns_ > product_.columns ? 2 : 1;
      return {rows_of_tiles(product_, rows_), wide * product_.columns / lanes_};
    }
    RegisterTile tile = product_tile(target, lanes_, rows_, columns_, row_bytes());
    if (product_.rows > 1) tile.rows = tile_rows(target, tile.vectors, rows_, {}, product_.rows);
    return tile;
  }

  // Lets the left operand count from the instruction's zero, in its type.
  void count_left() {
    const int64_t zero = product_.left.zero;
    if (zero != m_.left_zero) s_.recount(m_.acc, Factor::left, zero, "corr");
    if (is_int(sums_) && (zero != 0 || m_.left_type != product_.type))
      s_.narrow(m_.acc, Factor::left, product_.type);
  }

  void narrow_left() {
    const LeftNumbers left{m_.left_type, m_.left_zero};
    if (const auto type = narrow_type(s_.target(), left, sums_))
      s_.narrow(m_.acc, Factor::left, *type);
  }

  // The right operand's place in the product. Products of i64 are simplified as indices are, which
  // may swap the operands or expand them; nullopt: they are expanded, and stay where they are.
  std::optional<Factor> right_factor() const {
    const auto* product = as_binary(s_.store_of(m_.acc)->value, BinaryOp::mul);
    if (!product) return std::nullopt;
    const auto uses = [](const Expr& factor, const Loop& loop) {
      return uses_var(factor, loop.name());
    };
    const bool a = uses(product->a, m_.acc_column), b = uses(product->b, m_.acc_column);
    const bool row_a = uses(product->a, m_.acc_row), row_b = uses(product->b, m_.acc_row);
    if ((a && row_a) || (b && row_b)) return std::nullopt;
    const bool swapped = a || row_b || (!b && !row_a && reads_weights(product->a));
    return swapped ? Factor::left : Factor::right;
  }

  bool reads_weights(const Expr& factor) const {
    return m_.weights.defined() && s_.reads(factor, m_.weights);
  }

  void pack_right() {
    std::vector<ScheduleBuilder::PackedDim> dims;
    for (const auto& [dim, loop] : m_.right_batches)
      dims.push_back({variable(loop), "wb" + std::to_string(dim)});
    const auto panels = panel_dims("w", variable(m_.acc_column), variable(m_.depth[0]), m_.panel,
                                   pairs_ ? 2 : product_.depth, product_);
    dims.insert(dims.end(), panels.begin(), panels.end());
    const std::optional<Factor> right = right_factor();
    if (!right) return;
    const bool constant = m_.weights.defined();
    const Stage packed =
        s_.pack(m_.acc, *right, "w", constant ? kConstantScope : "global", dims).stage;
    if (!constant) m_.copies.push_back(packed);
    m_.weights = packed.buffer();
  }

  Expr left_factor() const { return s_.factor_of(m_.acc, Factor::left); }

  // True: the left operand's elements are the instruction's, with whole groups of depth steps
  // adjacent.
  bool reads_left_in_place() const {
    Expr factor = left_factor();
    while (const auto* widened = as<expr::Cast>(factor)) factor = widened->a;
    const auto* read = as<expr::Load>(factor);
    const std::string& step = m_.depth[0].name();
    return read && factor.type() == product_.type && product_.rows == 1 &&
           *depth_ % product_.depth == 0 && is_var(read->indices.back(), step) &&
           std::none_of(read->indices.begin(), read->indices.end() - 1,
                        [&](const Expr& index) { return uses_var(index, step); });
  }

  void pack_left() {
    std::vector<ScheduleBuilder::PackedDim> dims = left_batches();
    const auto rows = row_dims("x", variable(m_.acc_row), variable(m_.depth[0]), product_);
    dims.insert(dims.end(), rows.begin(), rows.end());
    const Stage copy = s_.pack(m_.acc, Factor::left, "xp", "global", dims).stage;
    m_.copies.insert(m_.copies.begin(), copy);
  }

  ScheduleBuilder& s_;
  MatMulStages& m_;
  DType sums_;
  int64_t lanes_;
  std::optional<int64_t> rows_, columns_, depth_;
  IntegerProduct product_;
  bool pairs_;
  RegisterTile tile_;
};

}  // namespace

void arrange_matmul(ScheduleBuilder& s, MatMulStages& m) { MatMulArrangement(s, m).run(); }

}  // namespace tw
