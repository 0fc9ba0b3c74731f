// Arranges attention for processors.
//
// Keys and values lie in panels: kp [batch][keys/P][depth][P], vp [batch][columns/P][keys][P]. Few
// values that already lie densely in whole panels are read in place. Keys are filled up to whole
// panels: a score there is minus infinity and its exponential 0. A free number of queries is
// computed in whole blocks. Rows behind the last one repeat it, and only y's stores ask whether a
// row exists. With a causal mask, a block of rows skips the panels that none of its rows sees.
//
// Where an instruction of the target multiplies short floats, the operands are copied to its
// format: qp has rows of queries; kn and vn have the numbers of the panels, with neighbours in
// depth adjacent; ep has the exponentials in tiles.
//
// The keys of a row are combined in the lanes of a vector, panel by panel.
#include <algorithm>

#include "ir/graph/short_floats.h"
#include "kernels/attention/attention.h"
#include "kernels/common/register_tile.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

constexpr int64_t kUsualKeys = 512;   // assumed for a free number of keys
constexpr int64_t kTilesOfPanel = 2;  // tiles of columns in a panel, for products in tile registers

using Product = AttentionStages::Product;
using Panels = AttentionStages::Panels;

class AttentionArrangement {
 public:
  AttentionArrangement(ScheduleBuilder& s, AttentionStages& m)
      : s_(s),
        m_(m),
        lanes_(std::max(1, s.target().lanes(4))),
        rows_(s.extent(m.key_products.row)),
        keys_(s.extent(m.key_products.column)) {}

  void run() {
    choose_instructions();
    const int64_t keys = keys_.value_or(kUsualKeys);
    m_.keys.columns = panel_of(keys, extent(m_.key_products.depth), by_keys_);
    m_.values.columns = panel_of(extent(m_.value_products.column), keys, by_values_);
    const int64_t block = block_rows();
    pack_panels(m_.key_products, "k", by_keys_, by_keys_.depth, m_.keys);
    if (!reads_values_in_place()) pack_values();
    s_.pad(m_.value_products.column, m_.values.columns);
    if (!by_values_.defined()) widen_numbers(m_.exponentials);
    if (m_.causal) skip_unseen(block);
    pad_keys();
    if (block > 1) pad_rows(block);
    if (by_keys_.defined()) m_.queries = pack_rows(m_.key_products, "qp", by_keys_);
    if (by_values_.tiles) m_.weights = pack_rows(m_.value_products, "ep", by_values_);
    use(by_keys_, m_.key_products);
    use(by_values_, m_.value_products);
    cut_in_lanes(m_.top);
    cut_in_lanes(m_.sum);
  }

 private:
  int64_t extent(const Loop& loop) const { return s_.extent(loop).value_or(1); }

  // Chooses tile registers for both products or for neither.
  void choose_instructions() {
    const auto choose = [this](bool in_tiles) {
      by_keys_ = instruction_for(m_.key_products, in_tiles);
      by_values_ = instruction_for(m_.value_products, in_tiles);
      return by_keys_.tiles && by_values_.tiles &&
             kTilesOfPanel * by_keys_.columns % by_values_.depth == 0;
    };
    if (!choose(true)) choose(false);
  }
  // Requires two operands of one short float type, known sizes, enough rows, and several columns.
  IntegerProduct instruction_for(const Product& p, bool in_tiles) const {
    const std::optional<int64_t> depth = s_.extent(p.depth), columns = s_.extent(p.column);
    const Loops loops = s_.loops_of(p.stage);
    const bool known = std::ranges::all_of(
        loops, [&](const Loop& loop) { return s_.extent(loop).has_value(); });
    if (!known || *rows_ < kFewestShortRows || *columns == 1 || p.left_type != p.right_type ||
        !is_short_float(p.left_type))
      return {};
    ProductExtents extents{lanes_, 0, in_tiles ? *rows_ : 1};
    if (in_tiles) extents.tiles = {*columns, *depth};
    return integer_product(s_.target(), {p.left_type}, p.right_type, extents);
  }

  // The panel's columns. It is narrower if the first-level cache could not hold the panel for all
  // tiles of a block.
  int64_t panel_of(int64_t columns, int64_t depth, const IntegerProduct& product) const {
    if (product.tiles) return kTilesOfPanel * product.columns;
    int64_t vectors = panel_vectors(s_.target(), false);
    while (vectors > 2 && 2 * depth * vectors * lanes_ * 4 > s_.target().l1_bytes) vectors /= 2;
    const int64_t whole = lanes_ * vectors;
    return columns >= whole ? whole : (columns + lanes_ - 1) / lanes_ * lanes_;
  }

  // Rows of a block, to which rows are filled up
  int64_t block_rows() {
    if (by_keys_.tiles) return m_.block_rows = rows_of_tiles(by_keys_, rows_);
    if (m_.causal) return m_.block_rows = tile_rows(s_.target(), m_.keys.columns / lanes_, rows_);
    return rows_ ? 1 : kFreeRows;
  }

  // Copies the right operand in panels, and these to the instruction's format.
  void pack_panels(const Product& p, const std::string& name, const IntegerProduct& by,
                   int64_t depth_part, Panels& made) {
    std::vector<ScheduleBuilder::PackedDim> dims = batch_dims(s_, p.stage, Factor::right,
                                                              name + "p", p.row, p.column);
    const auto panel = panel_dims(name + "p", variable(p.column), variable(p.depth), made.columns,
                                  1);
    dims.insert(dims.end(), panel.begin(), panel.end());
    dims[dims.size() - 2].index = filled_up(variable(p.depth), depth_part);
    const auto packed = s_.pack(p.stage, Factor::right, name + "p", "global", dims);
    made.stage = packed.stage;
    made.depth = packed.loops[packed.loops.size() - 2], made.lane = packed.loops.back();
    made.transposes = transposes(made);
    if (by.defined()) pack_numbers(p, name, by, depth_part, made);
    widen_numbers(made.stage);
  }
  // Short floats are widened once, instead of each time they are read.
  void widen_numbers(const Stage& stage) {
    if (s_.buffer(stage.buffer()).dtype != DType::f32) s_.retype(stage.buffer(), DType::f32);
  }
  void pack_numbers(const Product& p, const std::string& name, const IntegerProduct& by,
                    int64_t depth_part, Panels& made) {
    const std::string numbers = name + "n";
    std::vector<ScheduleBuilder::PackedDim> dims = batch_dims(s_, p.stage, Factor::right, numbers,
                                                              p.row, p.column);
    const size_t batches = dims.size();
    const auto panel = panel_dims(numbers, variable(p.column), variable(p.depth), made.columns,
                                  by.depth, by);
    dims.insert(dims.end(), panel.begin(), panel.end());
    Expr& steps = dims[batches + 1].index;
    steps = filled_up(steps, depth_part / by.depth);
    const auto packed = s_.pack(p.stage, Factor::right, numbers, "global", dims);
    made.numbers = packed.stage;
    made.within.assign(packed.loops.begin() + static_cast<std::ptrdiff_t>(batches) + 1,
                       packed.loops.end());
    made.numbers_lane = by.tiles ? made.within.back() : made.within[1];
    if (by.tiles) made.steps_of_lane = by.neighbours;
    else made.together = made.within.back();
  }
  // True: the copy's depth runs along the rows of what it reads.
  bool transposes(const Panels& made) const {
    Expr copied = s_.store_of(made.stage)->value;
    if (const auto* guarded = as<expr::Select>(copied)) copied = guarded->then;
    while (const auto* rounded = as<expr::Cast>(copied)) copied = rounded->a;
    const auto* read = as<expr::Load>(copied);
    return read && uses_var(read->indices.back(), made.depth.name());
  }

  // Values whose rows run along the columns are copied for an instruction at once.
  void pack_values() {
    const Product& p = m_.value_products;
    const auto* read = as<expr::Load>(right_number());
    const bool as_rows = read && uses_var(read->indices.back(), p.column.name());
    const int64_t depth_part = m_.causal ? m_.keys.columns : by_values_.depth;
    if (by_values_.defined() && as_rows)
      return pack_numbers(p, "v", by_values_, depth_part, m_.values);
    pack_panels(p, "v", by_values_, depth_part, m_.values);
  }
  Expr right_number() const {
    Expr number = s_.factor_of(m_.value_products.stage, Factor::right);
    while (const auto* widened = as<expr::Cast>(number)) number = widened->a;
    return number;
  }
  // True: the values' rows lie in f32 without gaps and in whole panels, and the values of a batch
  // stay in the first-level cache. With a mask, products go panel by panel, so the keys must be
  // whole panels.
  bool reads_values_in_place() const {
    const Product& p = m_.value_products;
    const int64_t columns = extent(p.column);
    const auto* read = as<expr::Load>(s_.factor_of(p.stage, Factor::right));
    if (!read || read->indices.size() < 2 || by_values_.defined() || !keys_ ||
        columns % m_.values.columns != 0 || (m_.causal && *keys_ % m_.keys.columns != 0) ||
        2 * *keys_ * columns * 4 > s_.target().l1_bytes)
      return false;
    const size_t n = read->indices.size();
    return read->indices[n - 1].type() == DType::i64 &&
           is_var(read->indices[n - 1], p.column.name()) &&
           is_var(read->indices[n - 2], p.depth.name()) &&
           is_const(s_.kernel().buffer(read->buffer).shape.back(), columns);
  }

  // Lets all stages run in whole tiles of rows and keys. A tile of which no row sees a key is
  // skipped.
  void skip_unseen(int64_t block) {
    const auto widen = [&](const Stage& stage, const Loop& row, const Loop& key,
                           Combiner combiner = Combiner::add) {
      s_.widen(stage, {{row, block}, {key, m_.keys.columns}}, combiner);
    };
    widen(m_.key_products.stage, m_.key_products.row, m_.key_products.column);
    widen(m_.scores, m_.scores_row, m_.scores_column, Combiner::max);
    widen(m_.exponentials, m_.exponentials_row, m_.exponentials_column);
    for (const AttentionStages::Fold* fold : {&m_.top, &m_.sum})
      widen(fold->total, fold->row, fold->keys);
    widen(m_.value_products.stage, m_.value_products.row, m_.value_products.depth);
  }

  // Fills keys up to whole panels.
  void pad_keys() {
    s_.pad(m_.key_products.column, m_.keys.columns);
    s_.pad_for(Combiner::max, m_.scores_column, m_.keys.columns);
    s_.pad_zeros(m_.exponentials_column, m_.keys.columns);
    s_.pad_zeros(m_.top.keys, m_.keys.columns);
    s_.pad_zeros(m_.sum.keys, m_.keys.columns);
    if (m_.causal) s_.pad_zeros(m_.value_products.depth, m_.keys.columns);
  }
  void pad_rows(int64_t block) {
    for (const Loop& row : {m_.key_products.row, m_.scores_row, m_.top.row, m_.exponentials_row,
                            m_.sum.row, m_.inverse_row, m_.value_products.row})
      s_.pad(row, block);
  }

  Stage pack_rows(const Product& p, const std::string& name, const IntegerProduct& by) {
    std::vector<ScheduleBuilder::PackedDim> dims = batch_dims(s_, p.stage, Factor::left, name,
                                                              p.row, p.column);
    const auto rows = row_dims(name, variable(p.row), variable(p.depth), by);
    dims.insert(dims.end(), rows.begin(), rows.end());
    return s_.pack(p.stage, Factor::left, name, "global", dims).stage;
  }

  void use(const IntegerProduct& by, Product& p) {
    if (!by.defined()) return;
    p.steps = by.depth;
    Loop innermost;
    if (by.depth > 1) {
      const Steps steps = split_steps(s_, p.depth, p.stage.label() + "_", by);
      p.depth = steps.depth, innermost = steps.innermost;
    }
    p.instruction = by.sums(innermost);
  }

  void cut_in_lanes(AttentionStages::Fold& f) {
    const std::string& name = f.total.label();
    const auto panels = s_.split(f.keys, m_.keys.columns, Tail::guard, name + "_p", name + "_r");
    const auto lanes = s_.split(panels.inner, lanes_, Tail::guard, name + "_k", name + "_l");
    f.part = s_.rfactor(f.total, lanes.inner, name + "_part");
    f.part_row = f.row, f.part_panels = panels.outer, f.part_steps = lanes.outer;
    f.part_lane = lanes.inner;
    f.row = s_.cached(f.total, {f.row})[0], f.lane = s_.cached(f.total, {lanes.inner})[0];
  }

  ScheduleBuilder& s_;
  AttentionStages& m_;
  int64_t lanes_;
  std::optional<int64_t> rows_, keys_;
  IntegerProduct by_keys_, by_values_;
};

}  // namespace

void arrange_attention(ScheduleBuilder& s, AttentionStages& m) {
  if (s.extent(m.key_products.column) != 1) AttentionArrangement(s, m).run();
}

}  // namespace tw
