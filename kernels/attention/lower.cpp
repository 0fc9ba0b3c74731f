// Attention as one kernel.
//
// For each head, the keys and values are packed in panels: kp [batch][keys/P][depth][P], vp
// [batch][columns/P][keys][P]. Few values that already lie densely in whole panels are read in
// place. Then follow, for a block of query rows:
// * s: products with the keys, scaled and masked;
// * top, e = exp(s - top), and sum;
// * o: products with the values, and y = o / sum.
//
// Rows of s are padded to whole panels with minus infinity, which e turns into 0. A free number of
// queries is computed in whole blocks. Rows behind the last one repeat it, and only y's stores ask
// whether a row exists. From the scores to y all is f32, for f16 and bf16 too.
//
// Where an instruction of the target multiplies short floats, the operands are copied to its
// format: qp has rows of queries; kn and vn have the numbers of the panels, with neighbours in
// depth adjacent; e has the short type.
//
// Stages: kp, kn, vp, vn, qp, acc, s, top_part, top, e, sum_part, sum, inv, o, y. All from qp on
// run block by block (kernels/attention/schedule.cpp).
#include <limits>
#include <numbers>

#include "ir/graph/queries.h"
#include "ir/graph/short_floats.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/causal.h"
#include "kernels/attention/parts.h"
#include "kernels/common/integer_product.h"
#include "kernels/common/register_tile.h"
#include "kernels/common/target_builder.h"
#include "kernels/common/top_number.h"

namespace tw {
namespace {

constexpr int64_t kUsualKeys = 512;   // assumed for a free number of keys
constexpr int64_t kTilesOfPanel = 2;  // tiles of columns in a panel, for products in tile registers

class AttentionLowering {
 public:
  AttentionLowering(TargetBuilder& b, const Node& product) : b_(b), product_(product) {
    parts_ = attention_parts(b, product);
    softmax_ = parts_.softmax, scores_ = parts_.scores, outer_ = parts_.outer;
    rows_ = parts_.rows, keys_ = parts_.keys, depth_ = parts_.depth, columns_ = parts_.columns;
    lanes_ = std::max(1, b.target.lanes(4));
    choose_instructions();
    block_ = as_const(rows_) ? 1 : kFreeRows;
    if (key_product_.tiles) block_ = m_.block_rows = rows_of_tiles(key_product_, as_const(rows_));
    take_mask();
    padded_rows_ = block_ == 1 ? rows_ : simplify(ceil_div(rows_, block_) * Expr(block_));
  }

  Lowered<AttentionStages> run() {
    const int64_t keys = as_const(keys_).value_or(kUsualKeys);
    int64_t key_panel = panel_of(keys, *as_const(depth_), key_product_),
            column_panel = panel_of(*as_const(columns_), keys, value_product_);
    bool transposed = get_if<op::MatMul>(scores_)->trans_b,
         value_transposed = get_if<op::MatMul>(&product_)->trans_b;
    padded_ = simplify(ceil_div(keys_, key_panel) * Expr(key_panel));
    const Expr depth = simplify(ceil_div(depth_, key_product_.depth) * Expr(key_product_.depth));
    BufferId kp = panels("kp", scores_->inputs[1], transposed, keys_, depth_, depth, key_panel);
    if (key_product_.defined()) kp = numbers_of("kn", kp, key_product_, m_.keys);
    m_.values.columns = column_panel;
    // With a mask, products go panel by panel, including the padded keys. An instruction takes
    // several keys at once.
    const Expr together(value_product_.depth);
    summed_ = mask_ ? padded_ : simplify(ceil_div(keys_, value_product_.depth) * together);
    const bool as_rows = value_product_.defined() && !value_transposed;
    if (!as_rows && (value_product_.defined() || value_transposed || !equal(summed_, keys_) ||
                     !is_dense(product_.inputs[1], column_panel)))
      vp_ = panels("vp", product_.inputs[1], value_transposed, columns_, keys_, summed_,
                   column_panel);
    if (as_rows) vp_ = value_numbers(column_panel);
    else if (value_product_.defined()) vp_ = numbers_of("vn", *vp_, value_product_, m_.values);
    key_panel_ = key_panel;
    if (key_product_.defined()) queries(depth);
    scores(kp, key_panel);
    exponentials();
    if (value_product_.tiles) weights();
    products(column_panel);
    return b_.finish(std::move(m_));
  }

 private:
  // Chooses tile registers for both products or for neither.
  void choose_instructions() {
    const auto choose = [this](bool in_tiles) {
      key_product_ = instruction_for(*scores_, depth_, in_tiles);
      value_product_ = instruction_for(product_, keys_, in_tiles);
      return key_product_.tiles && value_product_.tiles &&
             kTilesOfPanel * key_product_.columns % value_product_.depth == 0;
    };
    if (!choose(true)) choose(false);
  }
  // Requires two operands of one short float type, known sizes, and enough rows.
  IntegerProduct instruction_for(const Node& node, const Expr& depth, bool in_tiles) const {
    const Node product = with_short_operands(b_, node);
    const DType left = b_.type(product.inputs[0]).dtype, right = b_.type(product.inputs[1]).dtype;
    const Shape& sums = b_.type(node.output).shape;
    const bool known = as_const(keys_) && std::ranges::all_of(sums, [](const Expr& extent) {
                         return as_const(extent).has_value();
                       });
    if (!known || *as_const(rows_) < kFewestShortRows || left != right || !is_short_float(left))
      return {};
    ProductExtents extents{lanes_, 0, in_tiles ? *as_const(rows_) : 1};
    if (in_tiles) extents.tiles = {*as_const(sums.back()), *as_const(depth)};
    return integer_product(b_.target, {left}, right, extents);
  }
  // The elements of a causal mask follow from their places. Rows come in whole tiles, and each tile
  // skips the panels of keys that none of its rows sees.
  void take_mask() {
    mask_ = causal_mask(b_.graph, b_.group, *softmax_);
    if (!mask_) return;
    m_.causal = true;
    define_by_places(b_, *mask_);
    if (key_product_.tiles) return;
    const int64_t keys = as_const(keys_).value_or(kUsualKeys),
                  vectors = panel_of(keys, *as_const(depth_), key_product_) / lanes_;
    block_ = m_.block_rows = tile_rows(b_.target, vectors, as_const(rows_));
  }
  // True: some row of the tile sees some key of the panel with `key`. Undefined: always.
  Expr seen(const Expr& row, const Expr& key) const {
    if (!mask_) return {};
    const auto first_of = [](const Expr& at, int64_t part) {
      return floor_div(at, Expr(part)) * Expr(part);
    };
    return b_.simplified(
        le(first_of(key, key_panel_), first_of(row, block_) + Expr(block_ - 1 + mask_->offset)));
  }
  // The panel's columns. It is narrower if the first-level cache could not hold the panel for all
  // tiles of a block.
  int64_t panel_of(int64_t columns, int64_t depth, const IntegerProduct& product) const {
    if (product.tiles) return kTilesOfPanel * product.columns;
    int64_t vectors = panel_vectors(b_.target, false);
    while (vectors > 2 && 2 * depth * vectors * lanes_ * 4 > b_.target.l1_bytes) vectors /= 2;
    int64_t whole = lanes_ * vectors;
    return columns >= whole ? whole : (columns + lanes_ - 1) / lanes_ * lanes_;
  }
  // Axes NAME_b0.., NAME_i over the queries, including padded rows
  std::vector<Axis> row_axes(const std::string& name) const {
    std::vector<Axis> axes;
    for (size_t i = 0; i < outer_.size(); ++i)
      axes.push_back({name + "_b" + std::to_string(i), outer_[i]});
    axes.push_back({name + "_i", padded_rows_});
    return axes;
  }
  Expr query_of(const Expr& row) const {
    return equal(padded_rows_, rows_) ? row : min(row, rows_ - Expr(1));
  }
  Shape rows_of(const Expr& last) const {
    Shape shape = outer_;
    shape.push_back(padded_rows_);
    if (last.defined()) shape.push_back(last);
    return shape;
  }
  static Index with(const Index& index, const Expr& last) { return joined(index, {last}); }
  // True: the values' rows lie in f32 without gaps and in whole panels, and the values of a batch
  // stay in the first-level cache.
  bool is_dense(ValueId v, int64_t panel) const {
    const int64_t columns = *as_const(columns_);
    if (b_.type(v).dtype != DType::f32 || columns % panel != 0 || !as_const(keys_) ||
        2 * *as_const(keys_) * columns * 4 > b_.target.l1_bytes)
      return false;
    Index at;
    for (size_t i = 0; i < b_.type(v).shape.size(); ++i) at.push_back(var("d" + std::to_string(i)));
    const Expr e = b_.element(v, at);
    const auto* read = as<expr::Load>(e);
    if (!read || read->indices.size() < 2) return false;
    const size_t n = read->indices.size();
    return equal(read->indices[n - 1], at[at.size() - 1]) &&
           equal(read->indices[n - 2], at[at.size() - 2]) &&
           equal(b_.shape_of(read->buffer).back(), columns_);
  }

  // Packs a right operand as [own batch axes][columns/panel][padded depth][panel], with zeros
  // behind its last column and row.
  BufferId panels(const std::string& name, ValueId v, bool transposed, const Expr& columns,
                  const Expr& depth, const Expr& padded_depth, int64_t panel) {
    const Shape& shape = b_.type(v).shape;
    std::vector<Axis> axes;
    for (size_t i = 0; i + 2 < shape.size(); ++i)
      axes.push_back({name + "_b" + std::to_string(i), shape[i]});
    axes.insert(axes.end(), {{name + "_j", simplify(ceil_div(columns, panel))},
                             {name + "_k", padded_depth},
                             {name + "_l", Expr(panel)}});
    b_.declare(axes);
    Index at = variables(axes);
    Expr column = b_.simplified(at[at.size() - 3] * Expr(panel) + at.back()), k = at[at.size() - 2];
    Index element(at.begin(), at.end() - 3);
    // A view may divide by the extents. Its form for places inside the operand suffices, since no
    // place outside is read.
    const std::string inside_column = name + "_column", inside_depth = name + "_depth";
    element.push_back(var(transposed ? inside_column : inside_depth));
    element.push_back(var(transposed ? inside_depth : inside_column));
    Ranges ranges = b_.ranges();
    ranges[inside_column] = Range{Expr(0), columns - Expr(1)};
    ranges[inside_depth] = Range{Expr(0), depth - Expr(1)};
    Expr value = simplify(in_f32(b_.element(v, element)), ranges);
    value = substitute(substitute(value, inside_column, column), inside_depth, k);
    BufferId buffer = b_.temp(name, DType::f32, extents(axes));
    const Expr stored = b_.simplified(select(
        b_.simplified(logical_and(lt(column, columns), lt(k, depth))), value, imm(0, DType::f32)));
    const Stage stage = b_.stage(name, axes, buffer, at, stored);
    const Axis &depth_axis = axes[axes.size() - 2], &lane_axis = axes.back();
    const auto* guarded = as<expr::Select>(stored);
    const auto* copied = as<expr::Load>(guarded ? guarded->then : stored);
    const bool transposes = copied && uses_var(copied->indices.back(), depth_axis.name);
    (name == "kp" ? m_.keys : m_.values) = {
        stage, depth_axis.loop(), lane_axis.loop(), panel, transposes, {}, {}, {}, {}, 1};
    return buffer;
  }
  // Packs a right operand for the instruction: [own batch axes][columns/panel][padded
  // depth/steps][panel][steps], or in tiles [..][tile of columns][part of the steps][column and
  // step]. made: the number for batch axes and panel, place in the depth, and place in the panel.
  BufferId numbers(const std::string& name, const Shape& shape, const Expr& depth, int64_t panel,
                   const IntegerProduct& product, AttentionStages::Panels& p,
                   const std::function<Expr(const Index&, const Expr&, const Expr&)>& made) {
    std::vector<Axis> axes;
    for (const Expr& extent : shape) axes.push_back({name + std::to_string(axes.size()), extent});
    const Index outer = variables(axes);
    const Axis step{name + "_k", simplify(floor_div(depth, Expr(product.depth)))};
    const Expr together(product.neighbours);
    Expr k = var(step.name) * Expr(product.depth), column;
    std::vector<Axis> within = {step};
    if (product.tiles) {
      const Axis tile{name + "_t", Expr(panel / product.columns)},
          part{name + "_q", Expr(product.depth / product.neighbours)},
          lane{name + "_l", Expr(product.columns * product.neighbours)};
      within.insert(within.end(), {tile, part, lane});
      k = k + var(part.name) * together + floor_mod(var(lane.name), together);
      column = var(tile.name) * Expr(product.columns) + floor_div(var(lane.name), together);
      p.steps_of_lane = product.neighbours;
    } else {
      const Axis lane{name + "_l", Expr(panel)}, neighbour{name + "_n", together};
      within.insert(within.end(), {lane, neighbour});
      k = k + var(neighbour.name), column = var(lane.name);
      p.together = neighbour.loop();
    }
    axes.insert(axes.end(), within.begin(), within.end());
    b_.declare(axes);
    const BufferId buffer = b_.temp(name, product.type, extents(axes));
    p.numbers = b_.stage(name, axes, buffer, variables(axes), made(outer, k, column));
    p.within = loops(within), p.numbers_lane = within[product.tiles ? 3 : 1].loop();
    p.columns = panel;
    return buffer;
  }
  // Packs numbers from f32 panels.
  BufferId numbers_of(const std::string& name, BufferId panels, const IntegerProduct& product,
                      AttentionStages::Panels& p) {
    Shape shape = b_.shape_of(panels);
    const Expr depth = shape[shape.size() - 2];
    const int64_t panel = *as_const(shape.back());
    shape.resize(shape.size() - 2);
    return numbers(name, shape, depth, panel, product, p,
                   [&](Index from, const Expr& k, const Expr& lane) {
                     from.insert(from.end(), {k, lane});
                     return cast(product.type, load(panels, DType::f32, from));
                   });
  }
  // Packs values whose rows run along the columns, with zeros behind the last key and column.
  BufferId value_numbers(int64_t panel) {
    const ValueId v = with_short_operands(b_, product_).inputs[1];
    Shape shape = b_.type(v).shape;
    shape.pop_back();
    shape.back() = simplify(ceil_div(columns_, panel));
    const DType type = value_product_.type;
    return numbers(
        "vn", shape, summed_, panel, value_product_, m_.values,
        [&](Index from, const Expr& k, const Expr& lane) {
          const Expr column = b_.simplified(from.back() * Expr(panel) + lane);
          from.back() = k;
          from.push_back(column);
          const Expr there = b_.simplified(logical_and(lt(column, columns_), lt(k, keys_)));
          return b_.simplified(select(there, b_.element(v, from), imm(0, type)));
        });
  }
  // The depth of a product: a loop over steps, then loops over the parts of one step that an
  // instruction takes at once. The last part's numbers are adjacent in the right operand.
  struct Depth {
    Axis step;
    std::vector<Axis> parts;
    // Place in the left operand's row
    Expr at() const {
      Expr at = var(step.name);
      for (const Axis& part : parts) at = at * part.extent + var(part.name);
      return at;
    }
    Expr side_by_side() const { return parts.empty() ? Expr(0) : var(parts.back().name); }
  };
  static Depth depth_of(const std::string& name, const Expr& depth, const IntegerProduct& product) {
    Depth d{{name + "_k", simplify(floor_div(depth, Expr(product.depth))), AxisRole::reduce}, {}};
    if (product.tiles)
      d.parts.push_back({name + "_q", Expr(product.depth / product.neighbours), AxisRole::reduce});
    if (product.depth > 1)
      d.parts.push_back({name + "_n", Expr(product.neighbours), AxisRole::reduce});
    return d;
  }
  // An element of a right operand in panels, in f32
  Expr panel_element(BufferId panels, const IntegerProduct& product, const Shape& shape,
                     const Index& row, const Expr& column, const Depth& depth,
                     int64_t panel) const {
    Index at = batch_index(shape, row);
    const Expr lane = b_.simplified(floor_mod(column, Expr(panel)));
    at.insert(at.end(), {b_.simplified(floor_div(column, Expr(panel))), var(depth.step.name)});
    if (!product.defined()) return load(panels, DType::f32, joined(at, {lane}));
    if (!product.tiles)
      return cast(DType::f32, load(panels, product.type, joined(at, {lane, depth.side_by_side()})));
    const Expr columns(product.columns);
    at.insert(at.end(), {b_.simplified(floor_div(lane, columns)), var(depth.parts[0].name),
                         b_.simplified(floor_mod(column, columns)) * Expr(product.neighbours) +
                             depth.side_by_side()});
    return cast(DType::f32, load(panels, product.type, at));
  }

  // axes: .., row, column, then those of the depth
  static AttentionStages::Product product_of(const Stage& stage, const std::vector<Axis>& axes,
                                             const Depth& depth, const IntegerProduct& product) {
    const size_t n = axes.size() - depth.parts.size() - 1;
    AttentionStages::Product made{stage,          axes[n - 2].loop(), axes[n - 1].loop(),
                                  axes[n].loop(), product.depth,      {}};
    if (product.defined())
      made.instruction = product.sums(depth.parts.empty() ? Loop() : axes.back().loop());
    return made;
  }
  static void add(const Depth& depth, std::vector<Axis>& axes) {
    axes.push_back(depth.step);
    axes.insert(axes.end(), depth.parts.begin(), depth.parts.end());
  }

  // Copies rows of a left operand for the instruction; in tiles as [batch axes][tile of rows][tile
  // of the depth][row][step]. made: the number for batch axes and row, and place in the depth.
  // of_keys: the depth runs over keys, and panels that a block does not see are skipped.
  Stage left_numbers(const std::string& name, const Expr& depth, const IntegerProduct& product,
                     BufferId& buffer, const std::function<Expr(const Index&, const Expr&)>& made,
                     bool of_keys) {
    std::vector<Axis> axes = row_axes(name);
    Axis rows = axes.back(), steps{name + "_k", depth};
    Index row = variables(axes);
    Expr k = var(steps.name);
    if (product.tiles) {
      axes.pop_back();
      rows.extent = Expr(product.rows), steps.extent = Expr(product.depth);
      const Axis row_tile{name + "_t", simplify(floor_div(padded_rows_, rows.extent))},
          step_tile{name + "_s", simplify(floor_div(depth, steps.extent))};
      row.back() = var(row_tile.name) * rows.extent + row.back();
      k = var(step_tile.name) * steps.extent + k;
      axes.insert(axes.end(), {row_tile, step_tile, rows});
    }
    axes.push_back(steps);
    b_.declare(axes);
    buffer = b_.temp(name, product.type, extents(axes));
    const Expr where = of_keys ? seen(row.back(), k) : Expr();
    return b_.stage(name, axes, buffer, variables(axes), made(row, k), Combiner::none, {}, where);
  }
  Expr left_number(BufferId buffer, const IntegerProduct& product, Index row, const Expr& k) const {
    if (product.tiles) {
      const Expr i = row.back(), rows(product.rows), steps(product.depth);
      row.pop_back();
      row.insert(row.end(), {b_.simplified(floor_div(i, rows)), b_.simplified(floor_div(k, steps)),
                             b_.simplified(floor_mod(i, rows))});
      return cast(DType::f32,
                  load(buffer, product.type, with(row, b_.simplified(floor_mod(k, steps)))));
    }
    return cast(DType::f32, load(buffer, product.type, with(row, k)));
  }

  // Copies rows of queries, with zeros behind the depth.
  void queries(const Expr& padded_depth) {
    const ValueId v = with_short_operands(b_, *scores_).inputs[0];
    m_.queries = left_numbers(
        "qp", padded_depth, key_product_, qp_,
        [&](const Index& row, const Expr& k) {
          Index query = batch_index(b_.type(v).shape, row);
          query.insert(query.end(), {b_.simplified(query_of(row.back())), k});
          const Expr number = cast(key_product_.type, b_.element(v, query)),
                     there = b_.simplified(lt(k, depth_));
          return is_const(there, 1) ? number : select(there, number, imm(0, key_product_.type));
        },
        false);
  }
  Expr query_element(const Index& row, const Expr& k) {
    if (key_product_.defined()) return left_number(qp_, key_product_, row, k);
    Index query = batch_index(b_.type(scores_->inputs[0]).shape, row);
    query.push_back(query_of(row.back()));
    query.push_back(k);
    return in_f32(b_.element(scores_->inputs[0], query));
  }

  void scores(BufferId kp, int64_t panel) {
    std::vector<Axis> axes = row_axes("acc");
    Index row = variables(axes);
    axes.push_back({"acc_j", padded_});
    BufferId acc = b_.temp("acc", DType::f32, rows_of(padded_));
    Index at = variables(axes);
    const Expr padded_depth = simplify(ceil_div(depth_, key_product_.depth) *
                                       Expr(key_product_.depth));
    const Depth depth = depth_of("acc", padded_depth, key_product_);
    add(depth, axes);
    b_.declare(axes);
    const Stage stage = b_.stage(
        "acc", axes, acc, at,
        query_element(row, depth.at()) * panel_element(kp, key_product_,
                                                       b_.type(scores_->inputs[1]).shape, row,
                                                       at.back(), depth, panel),
        Combiner::add, imm(0, DType::f32), seen(row.back(), at.back()));
    m_.key_products = product_of(stage, axes, depth, key_product_);
    axes = row_axes("s");
    axes.push_back({"s_j", padded_});
    b_.declare(axes);
    at = variables(axes);
    b_.define(scores_->output, [acc, at, dtype = b_.type(scores_->output).dtype](const Index&) {
      return rounded_to(dtype, load(acc, DType::f32, at));
    });
    Index logical = at;
    logical[at.size() - 2] = query_of(at[at.size() - 2]);
    s_ = b_.temp("s", DType::f32, rows_of(padded_));
    Expr masked = imm(-std::numeric_limits<double>::infinity(), DType::f32);
    Expr score = in_f32(b_.element(softmax_->inputs[0], logical));
    if (!mask_) score = select(b_.simplified(lt(at.back(), keys_)), score, masked);
    m_.scores = b_.stage("s", axes, s_, at, score, Combiner::none, {},
                         seen(at[at.size() - 2], at.back()));
    m_.scores_row = axes[axes.size() - 2].loop(), m_.scores_column = axes.back().loop();
  }

  // Combines the padded keys of a row: first in lanes, panel by panel (stage NAME_part), then into
  // one number (stage NAME).
  BufferId fold(const std::string& name, BufferId from, Combiner combiner, const Expr& identity) {
    std::vector<Axis> axes = row_axes(name + "_o");
    Index row = variables(axes);
    AttentionStages::Fold& f = name == "top" ? m_.top : m_.sum;
    f.part_row = axes.back().loop();
    const Axis lanes{name + "_l", Expr(lanes_)},
        panels{name + "_p", simplify(floor_div(padded_, Expr(key_panel_))), AxisRole::reduce},
        steps{name + "_k", Expr(key_panel_ / lanes_), AxisRole::reduce};
    axes.insert(axes.end(), {lanes, panels, steps});
    b_.declare(axes);
    BufferId part = b_.temp(name + "_part", DType::f32, rows_of(Expr(lanes_)));
    const Expr lane = var(lanes.name),
               key = (var(panels.name) * Expr(key_panel_ / lanes_) + var(steps.name)) *
                         Expr(lanes_) +
                     lane;
    const auto taken = [&](const Expr& x) {
      return combiner == Combiner::max ? top_candidate(x) : x;
    };
    f.part = b_.stage(name + "_part", axes, part, with(row, lane),
                      taken(in_f32(load(from, b_.dtype_of(from), with(row, b_.simplified(key))))),
                      combiner, identity, seen(row.back(), b_.simplified(key)));
    f.part_lane = lanes.loop(), f.part_panels = panels.loop(), f.part_steps = steps.loop();
    axes = row_axes(name);
    row = variables(axes);
    axes.push_back({name + "_f", Expr(lanes_), AxisRole::reduce});
    BufferId total = b_.temp(name, DType::f32, rows_of({}));
    f.total = b_.stage(name, axes, total, row,
                       taken(load(part, DType::f32, with(row, var(name + "_f")))), combiner,
                       identity);
    f.row = axes[axes.size() - 2].loop(), f.lane = axes.back().loop();
    return total;
  }

  void exponentials() {
    BufferId top = fold("top", s_, Combiner::max,
                        imm(-std::numeric_limits<double>::infinity(), DType::f32));
    std::vector<Axis> axes = row_axes("e");
    Index row = variables(axes);
    axes.push_back({"e_j", padded_});
    const bool is_short = value_product_.defined() && !value_product_.tiles;
    e_ = b_.temp("e", is_short ? value_product_.type : DType::f32, rows_of(padded_));
    Index at = variables(axes);
    const bool masked = get_if<op::Softmax>(softmax_)->masked;
    Expr highest = load(top, DType::f32, row);
    // A finite number, so that e is 0 where everything is masked.
    if (masked) highest = max(imm(std::numeric_limits<float>::lowest(), DType::f32), highest);
    m_.exponentials_column = axes.back().loop();
    const Expr power = unary(
        UnaryOp::exp2, (load(s_, DType::f32, at) - highest) * imm(std::numbers::log2e, DType::f32));
    m_.exponentials = b_.stage("e", axes, e_, at, rounded_to(b_.dtype_of(e_), power),
                               Combiner::none, {}, seen(row.back(), at.back()));
    BufferId sum = fold("sum", e_, Combiner::add, imm(0, DType::f32));
    axes = row_axes("inv");
    row = variables(axes);
    inverse_ = b_.temp("inv", DType::f32, rows_of({}));
    Expr total = load(sum, DType::f32, row);
    if (masked) total = select(eq(total, imm(0, DType::f32)), imm(1, DType::f32), total);
    m_.inverse_row = axes.back().loop();
    m_.inverse = b_.stage("inv", axes, inverse_, row,
                          binary(BinaryOp::div, imm(1, DType::f32), total));
  }

  // Copies the exponentials to tiles. They are 0 behind the last key.
  void weights() {
    m_.weights = left_numbers(
        "ep", summed_, value_product_, ep_,
        [&](const Index& row, const Expr& k) {
          return cast(value_product_.type, load(e_, DType::f32, with(row, k)));
        },
        true);
  }
  Expr weight(const Index& row, const Expr& k) const {
    if (value_product_.tiles) return left_number(ep_, value_product_, row, k);
    return in_f32(load(e_, b_.dtype_of(e_), with(row, k)));
  }
  Expr value_element(const Index& row, const Expr& column, const Depth& depth, int64_t panel) {
    const Shape& shape = b_.type(product_.inputs[1]).shape;
    if (vp_) return panel_element(*vp_, value_product_, shape, row, column, depth, panel);
    Index at = batch_index(shape, row);
    at.insert(at.end(), {var(depth.step.name), column});
    return b_.element(product_.inputs[1], at);
  }

  void products(int64_t panel) {
    std::vector<Axis> axes = row_axes("o");
    Index row = variables(axes);
    Expr width = simplify(ceil_div(columns_, panel) * Expr(panel));
    axes.push_back({"o_j", width});
    Index at = variables(axes);
    const Depth depth = depth_of("o", summed_, value_product_);
    add(depth, axes);
    b_.declare(axes);
    BufferId o = b_.temp("o", DType::f32, rows_of(width));
    const Stage stage = b_.stage(
        "o", axes, o, at, weight(row, depth.at()) * value_element(row, at.back(), depth, panel),
        Combiner::add, imm(0, DType::f32), seen(row.back(), depth.at()));
    m_.value_products = product_of(stage, axes, depth, value_product_);
    axes = row_axes("y");
    axes.back().extent = rows_;
    row = variables(axes);
    axes.push_back({"y_j", columns_});
    b_.declare(axes);
    const Index logical = variables(axes);
    const AttentionOutput y = attention_output(b_, parts_, logical);
    m_.y = b_.stage("y", axes, y.buffer, y.at,
                    rounded_to(b_.type(product_.output).dtype,
                               load(o, DType::f32, logical) * load(inverse_, DType::f32, row)));
    m_.batches = loops(axes);
    m_.column = m_.batches.back(), m_.batches.pop_back();
    m_.row = m_.batches.back(), m_.batches.pop_back();
  }

  TargetBuilder& b_;
  const Node& product_;
  AttentionParts parts_;
  const Node *softmax_ = nullptr, *scores_ = nullptr;
  Shape outer_;
  Expr rows_, keys_, depth_, columns_, padded_, padded_rows_, summed_;
  // block_: rows of a block; the rows are padded to a multiple of it
  int64_t lanes_ = 1, key_panel_ = 1, block_ = 1;
  std::optional<CausalMask> mask_;
  AttentionStages m_;
  IntegerProduct key_product_, value_product_;
  BufferId qp_{}, s_{}, e_{}, ep_{}, inverse_{};
  std::optional<BufferId> vp_;
};

}  // namespace

Expected<Lowered<AttentionStages>> lower_attention(TargetBuilder& b, const Node& product) {
  return AttentionLowering(b, product).run();
}

}  // namespace tw
