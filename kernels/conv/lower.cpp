// Convolution over any number of spatial axes.
//
// Stages: pad (the padded input, if padding is too wide to be skipped tap by tap), acc (the sums),
// y (bias and followers). Before a pool, the last are stage conv, and y is the pool.
//
// Blocked output (NCHWc): weights are packed later (arrange.cpp), unless an instruction takes
// several input channels at once, which are then innermost: [oc/(V*B)][ic/D][kernel...][V*B][D].
// Depthwise weights are [c/B][kernel...][B].
//
// Plain output: weights stay as they are, and vectors run along the last spatial axis.
#include <numeric>

#include "kernels/common/integer_product.h"
#include "kernels/common/row_tile.h"
#include "kernels/common/target_builder.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/group.h"
#include "kernels/conv/merged_groups.h"

namespace tw {
namespace {

class ConvLowering : ConvGroup {
 public:
  ConvLowering(TargetBuilder& builder, const Node& conv, ConvShape shape)
      : ConvGroup(builder, conv, std::move(shape)) {
    depthwise_ = s_.group > 1 && s_.cg == 1 && s_.mg == 1 &&
                 (!b_.laid_out || (blocked_ && x_type_.layout == y_type_.layout));
    if (!b_.laid_out) return;
    if (blocked_ && !depthwise_) merge_groups(conv);
    depth_ = x_type_.layout.block;
    // A block that is only partly full is read in smaller, full parts.
    if (const int64_t part = std::gcd(s_.cg, depth_); part >= kFewestDepth) depth_ = part;
    product_ = product_of(conv);
    if (product_.defined() && !x_type_.layout.plain()) depth_ = std::max(depth_, product_.depth);
    if (product_.rows > 1) fill_row();
    if (product_.defined()) counted_from_ = product_.left.zero;
    else if (multiplies_words(conv)) counted_from_ = least_byte(x_type_.dtype);
    if (!blocked_ || as_const(s_.out.back())) return;
    free_ = depthwise_ ? RegisterTile{free_row_pixels(b_.target, 1, rank() > 1), 1}
                       : free_row_tile(b_.target, blocks_of_group(), rank() > 1);
    row_ = simplify(ceil_div(s_.out.back(), free_.rows) * Expr(free_.rows));
  }

  // True: the schedule can bring the blocks of the tensors to the same convolution without them.
  bool has_definition() const { return true; }

  Lowered<ConvStages> lower() {
    declare_inputs();
    read_input();
    accumulate();
    if (b_.laid_out && surplus() != 0) correct();
    stages_.out = write_output([this](const Index& at) {
      const Expr sum = load(acc_, acc_type_, at);
      return correction_.valid() ? sum - load(correction_, acc_type_, corrected_at(at)) : sum;
    });
    for (const BufferId copied : {padded_, packed_, bias_})
      if (copied.valid()) stages_.copies.push_back(b_.stage_of(copied));
    stages_.input = b_.name_of(b_.input(node_.inputs[0]));
    if (packed_.valid()) stages_.weights = b_.name_of(packed_);
    else if (stages_.panel_blocks > 0 && b_.graph.is_constant(node_.inputs[1]))
      stages_.weights = b_.name_of(b_.input(node_.inputs[1]));
    stages_.depthwise = depthwise_;
    if (!b_.laid_out) describe_definition();
    return b_.finish(std::move(stages_));
  }

 private:
  void describe_definition() {
    stages_.groups = s_.group, stages_.group_in = s_.cg, stages_.group_out = s_.mg;
    stages_.in_block = b_.type(node_.inputs[0]).layout.block;
    stages_.out_block = b_.type(b_.output_value()).layout.block;
    stages_.strides = s_.strides, stages_.dilations = s_.dilations;
    stages_.pads_begin = s_.pads_begin;
    stages_.left_type = x_type_.dtype, stages_.right_type = b_.type(node_.inputs[1]).dtype;
    stages_.left_zero = zero_;
    if (b_.graph.is_constant(node_.inputs[1]))
      stages_.weights = b_.name_of(b_.input(node_.inputs[1]));
    stages_.bias = bias_parameter();
  }

  // All lanes of an output block read one group, so smaller groups are merged into one. No
  // instruction reads input blocks that belong to several groups, so groups are also merged where
  // that is profitable.
  void merge_groups(const Node& conv) {
    // A plain layout has block 0
    const int64_t in_block = std::max<int64_t>(1, x_type_.layout.block);
    const int64_t whole = groups_that_fill(s_.group, s_.cg, in_block, s_.mg, block_);
    const DType right = b_.type(conv.inputs[1]).dtype;
    if (s_.mg % block_ != 0) merged_ = whole == 0 ? s_.group : whole;
    else if (whole > 1 && is_byte(x_type_.dtype) &&
             whole <= most_merged_groups(b_.target, {x_type_.dtype, zero_}, right, block_))
      merged_ = whole;
    s_.group /= merged_, s_.cg *= merged_, s_.mg *= merged_;
  }

  // Fills the row up to whole tiles of the pixels that the instruction takes together.
  void fill_row() {
    const int64_t row = *as_const(s_.out.back());
    free_ = product_.tiles
                ? RegisterTile{rows_of_tiles(product_, row), blocks_of_group() % 2 == 0 ? 2 : 1}
                : filled_row_tile(b_.target, row, blocks_of_group(), product_.rows);
    row_ = Expr((row + free_.rows - 1) / free_.rows * free_.rows);
  }

  // Sets in_: in_(n, channel, spatial...) is the input's element at a position of the padded input.
  void read_input() {
    ValueId x = node_.inputs[0];
    if (product_.defined() && !reads_in_place()) return read_copied(x);
    if (!copies_input()) {
      BufferId buffer = b_.input(x);
      in_ = [this, buffer](const Expr& n, const Expr& channel, const Index& at) {
        Index from = at;
        // Pixels that only fill a tile up repeat the last one.
        if (row_.defined())
          from.back() = min(from.back(),
                            simplify((s_.out.back() - Expr(1)) * Expr(s_.strides.back())));
        for (size_t i = 0; i < rank(); ++i) from[i] = b_.simplified(at[i] - Expr(s_.pads_begin[i]));
        return load(buffer, x_type_.dtype, physical(n, channel, from));
      };
      return;
    }
    padded_ = b_.padded(x, padded_extents(), s_.pads_begin, zero_);
    in_ = [this](const Expr& n, const Expr& channel, const Index& at) {
      return load(padded_, x_type_.dtype, physical(n, channel, at));
    };
  }

  IntegerProduct product_of(const Node& conv) const {
    // A first layer has few channels; they are innermost in the copy and filled up.
    const bool few = x_type_.layout.plain();
    const bool suits = few ? s_.group == 1 && s_.cg > 1 && s_.cg <= kFewestDepth : whole_blocks();
    bool known = blocked_ && suits && as_const(s_.n) &&
                 dtype_bytes(x_type_.dtype) < dtype_bytes(acc_type_);
    for (size_t i = 0; i < rank(); ++i) known = known && as_const(s_.in[i]) && as_const(s_.out[i]);
    if (!known) return {};
    const auto choose = b_.graph.is_constant(conv.inputs[1]) ? integer_product_from_anywhere
                                                             : integer_product;
    const LeftNumbers left{x_type_.dtype, zero_};
    const DType right = b_.type(conv.inputs[1]).dtype;
    const auto of = [&](int64_t depth, int64_t rows) {
      ProductExtents extents{block_, depth, rows};
      if (s_.group == 1 && !few && !pool_) extents.tiles = {s_.m, s_.cg};
      const IntegerProduct found = choose(b_.target, left, right, extents);
      if (!found.tiles || found.columns == block_) return found;
      extents.tiles.reset();  // a tile's columns must be a block of channels
      return choose(b_.target, left, right, extents);
    };
    if (few) return of(0, 1);
    // Steps behind a block's end belong to the next block in the copy.
    const int64_t pixels = pool_ ? 1 : *as_const(s_.out.back());
    const IntegerProduct wide = of(s_.cg, pixels), narrow = of(depth_, pixels);
    return wide.rows > 1 ? wide : narrow;
  }

  // True: every block of channels belongs to one group.
  bool whole_blocks() const {
    return s_.group == 1 || (s_.cg % x_type_.layout.block == 0 && s_.mg % block_ == 0);
  }

  // True: unsigned bytes can be one of the two words that the target multiplies and adds at once,
  // beside a 0. The excess from their zero point is subtracted later.
  bool multiplies_words(const Node& conv) const {
    if (!is_byte(x_type_.dtype) || !b_.graph.is_constant(conv.inputs[1]) ||
        !b_.target.driver.empty())
      return false;
    return zero_ == least_byte(x_type_.dtype) || pairs_words(b_.target);
  }

  // Positions of the padded input that some tap reads, along each axis
  Shape padded_extents() const {
    Shape spatial;
    const Shape out = sums();
    for (size_t i = 0; i < rank(); ++i)
      spatial.push_back(simplify((out[i] - Expr(1)) * Expr(s_.strides[i]) +
                                 Expr((s_.kernel[i] - 1) * s_.dilations[i] + 1)));
    return spatial;
  }

  // Extents of the points with sums. A row of free extent is filled up to whole tiles.
  Shape sums() const {
    Shape extents = s_.out;
    if (row_.defined()) extents.back() = row_;
    return extents;
  }

  std::vector<Axis> sum_axes() const {
    std::vector<Axis> axes = output_axes("a");
    if (row_.defined()) axes[1 + rank()].extent = row_;
    return axes;
  }

  int64_t blocks_of_group() const {
    return s_.group == 1 ? (s_.m + block_ - 1) / block_ : s_.mg % block_ == 0 ? s_.mg / block_ : 1;
  }

  // Copies the numbers in the form that the instruction takes; the padding holds the zero point.
  // The channels lie in blocks of a layout, or innermost if they are few.
  void read_copied(ValueId x) {
    const DType type = product_.type;
    const bool few = x_type_.layout.plain();
    const int64_t block = few ? 0 : std::max(x_type_.layout.block, depth_);
    const Shape shape = copied_shape(block);
    std::vector<Axis> axes;
    for (const Expr& extent : shape) axes.push_back({"pad" + std::to_string(axes.size()), extent});
    b_.declare(axes);
    const Index at = variables(axes);
    const size_t first = few ? 1 : 2;
    Index padded(at.begin() + static_cast<std::ptrdiff_t>(first),
                 at.begin() + static_cast<std::ptrdiff_t>(first + rank()));
    if (phases() > 1) padded.back() = at[first + rank()] * Expr(phases()) + padded.back();
    const Expr channel = few ? at.back() : b_.simplified(at[1] * Expr(block) + at.back());
    Index from = padded;
    for (size_t i = 0; i < rank(); ++i) from[i] = b_.simplified(padded[i] - Expr(s_.pads_begin[i]));
    Expr there = inside(padded);
    if (few || block > x_type_.layout.block)
      there = logical_and(there, lt(channel, Expr(few ? s_.cg : s_.c)));
    there = b_.simplified(there);
    const Expr value = product_.copied(
        load(b_.input(x), x_type_.dtype, physical(at[0], channel, from)));
    const BufferId copy = padded_ = b_.temp("xp", type, shape);
    b_.stage("pad", axes, copy, at,
             there.defined() && !is_const(there, 1)
                 ? select(there, value, imm(static_cast<double>(surplus()), type))
                 : value);
    in_ = [this, copy, type, block](const Expr& n, const Expr& channel, const Index& at) {
      Index place = {n};
      if (block > 0) place.push_back(b_.simplified(floor_div(channel, Expr(block))));
      place.insert(place.end(), at.begin(), at.end());
      if (phases() > 1) {
        place.back() = b_.simplified(floor_mod(at.back(), Expr(phases())));
        place.push_back(b_.simplified(floor_div(at.back(), Expr(phases()))));
      }
      place.push_back(block > 0 ? b_.simplified(floor_mod(channel, Expr(block))) : channel);
      return load(copy, type, place);
    };
  }

  // Parts of a copied row, one for each remainder by the stride. The pixels that one tap reads are
  // then adjacent, as an instruction for several pixels needs them.
  int64_t phases() const { return product_.rows > 1 ? s_.strides.back() : 1; }

  Shape copied_shape(int64_t block) const {
    Shape shape = {s_.n}, spatial = padded_extents();
    if (block > 0) shape.push_back(simplify(ceil_div(Expr(s_.c), block)));
    if (phases() > 1) {
      spatial.push_back(simplify(ceil_div(spatial.back(), phases())));
      spatial[rank() - 1] = Expr(phases());
    }
    shape.insert(shape.end(), spatial.begin(), spatial.end());
    shape.push_back(block > 0
                        ? Expr(block)
                        : Expr((s_.cg + product_.depth - 1) / product_.depth * product_.depth));
    return shape;
  }

  // The excess of the multiplied numbers over those of the convolution
  int64_t surplus() const { return zero_ - counted_from_; }

  // Makes the correction for each channel. On an axis whose taps are left out in the padding, it
  // has an entry for each point at the ends.
  void correct() {
    Shape shape = {Expr((s_.m + block_ - 1) / block_)};
    Expr taps;
    for (size_t i = 0; i < rank(); ++i) {
      if (!misses_taps(i)) continue;
      const Edges edges = edges_of(i);
      const bool alike = edges.points() == 1;  // may be the only point, which misses taps too
      const Expr point = alike ? Expr(0) : edges.point_of(var("c" + std::to_string(shape.size())));
      const Expr from = point * Expr(s_.strides[i]) +
                        var("r" + std::to_string(i + 2)) * Expr(s_.dilations[i]) -
                        Expr(s_.pads_begin[i]);
      taps = logical_and(taps, logical_and(le(Expr(0), from), lt(from, s_.in[i])));
      if (!alike) shape.push_back(Expr(edges.points()));
    }
    Expr channel = var("c0");
    if (blocked_) {
      channel = min(channel * Expr(block_) + var("c" + std::to_string(shape.size())),
                    Expr(s_.m - 1));
      shape.push_back(Expr(block_));
    }
    correction_ = surplus_of_sums(b_, node_.inputs[1], acc_type_, surplus(), {channel}, shape,
                                  taps);
  }

  // Index of the correction that is subtracted at a point of the output
  Index corrected_at(const Index& out) const {
    Index at = {out[1]};
    for (size_t i = 0; i < rank(); ++i)
      if (const Edges edges = edges_of(i); edges.points() > 1)
        at.push_back(b_.simplified(edges.number_of(out[i + 2])));
    if (blocked_) at.push_back(out.back());
    return at;
  }

  // The points at the two ends of an output axis that some taps are left out of. The points between
  // them are alike and count as one, behind the first ones.
  struct Edges {
    int64_t extent = 1, before = 0, after = 0;
    int64_t points() const { return before + 1 + after; }
    Expr number_of(const Expr& point) const {
      const Expr number = min(point, Expr(before));
      return after == 0 ? number : number + max(Expr(0), point - Expr(extent - after - 1));
    }
    Expr point_of(const Expr& number) const {
      const Expr behind = number + Expr(extent - after - before - 1);
      return after == 0 ? number : select(le(number, Expr(before)), number, behind);
    }
  };

  bool misses_taps(size_t i) const { return !copies_input() && padded_along(i); }
  Edges edges_of(size_t i) const {
    if (!misses_taps(i)) return {};
    const int64_t extent = *as_const(s_.out[i]), stride = s_.strides[i];
    const int64_t reach = (s_.kernel[i] - 1) * s_.dilations[i];
    const auto up = [&](int64_t pixels) {
      return std::max<int64_t>(0, pixels + stride - 1) / stride;
    };
    Edges edges{extent, up(s_.pads_begin[i]), 0};
    edges.after = std::max<int64_t>(0, extent - up(*as_const(s_.in[i]) + s_.pads_begin[i] - reach));
    if (edges.before + edges.after >= extent) edges.before = extent - 1, edges.after = 0;
    return edges;
  }

  bool padded_along(size_t i) const {
    const Ints& pads = std::get<op::Conv>(node_.attrs).pads;
    return !s_.pointwise && (pads[i] != 0 || pads[i + rank()] != 0);
  }

  // Loops over the steps of the depth that the instruction takes at once. They advance `channel`.
  std::vector<Axis> steps_of_instruction(Expr& channel) const {
    std::vector<Axis> steps;
    if (product_.tiles) {
      steps.push_back({"rq", Expr(product_.depth / product_.neighbours), AxisRole::reduce});
      channel = channel + var("rq") * Expr(product_.neighbours);
    }
    if (product_.depth > 1) {
      steps.push_back({"rp", Expr(product_.neighbours), AxisRole::reduce});
      channel = channel + var("rp");
    }
    return steps;
  }

  void accumulate() {
    std::vector<Axis> axes = sum_axes();
    Index out = variables(axes);
    Expr channel = blocked_ ? out[1] * Expr(block_) + out.back() : out[1];
    std::vector<Axis> reduce;
    bool in_blocked = !x_type_.layout.plain();
    bool block_axes = in_blocked && !depthwise_ &&
                      (s_.group == 1 || s_.cg % x_type_.layout.block == 0);
    Expr rc(0);
    if (!depthwise_) {
      if (block_axes) {
        reduce.push_back({"rc", Expr((s_.cg + depth_ - 1) / depth_), AxisRole::reduce});
        rc = var("rc") * Expr(depth_) + var("rl") * Expr(product_.depth);
      } else {
        reduce.push_back(
            {"rc", Expr((s_.cg + product_.depth - 1) / product_.depth), AxisRole::reduce});
        rc = var("rc") * Expr(product_.depth);
      }
    }
    Index at, taps;
    for (size_t i = 0; i < rank(); ++i) {
      if (s_.kernel[i] > 1) reduce.push_back({axis("k", i), Expr(s_.kernel[i]), AxisRole::reduce});
      taps.push_back(s_.kernel[i] > 1 ? var(axis("k", i)) : Expr(0));
      at.push_back(out[i + 2] * Expr(s_.strides[i]) + taps[i] * Expr(s_.dilations[i]));
    }
    if (block_axes) reduce.push_back({"rl", Expr(depth_ / product_.depth), AxisRole::reduce});
    const std::vector<Axis> together = steps_of_instruction(rc);
    axes.insert(axes.end(), reduce.begin(), reduce.end());
    axes.insert(axes.end(), together.begin(), together.end());
    b_.declare(axes);
    Expr group_base = s_.group == 1 ? Expr(0)
                      : depthwise_  ? channel
                                    : floor_div(channel, Expr(s_.mg)) * Expr(s_.cg);
    for (Expr& e : at) e = b_.simplified(e);
    // All lanes of a block belong to one group (or the block is a channel of its own), so they read
    // the same input channel.
    const Expr value = in_(out[0], depthwise_ ? channel : b_.simplified(group_base + rc), at);
    const Expr weight = number(!blocked_    ? plain_weight(out, rc, taps)
                               : depthwise_ ? depthwise_weight(out, taps)
                                            : packed_weight(out, rc, taps, block_axes));
    const Expr sum = left_number(value) * weight;
    acc_ = b_.temp("acc", acc_type_, extents(sum_axes()));
    stages_.acc = b_.stage("acc", axes, acc_, out, sum, Combiner::add, imm(0, acc_type_),
                           copies_input() ? Expr() : inside(at));
    stages_.sums = conv_loops(loops(sum_axes()), blocked_);
    if (!depthwise_) stages_.channels = reduce.front().loop();
    if (block_axes) stages_.channel_lanes = reduce.back().loop();
    if (product_.defined())
      stages_.instruction = product_.sums(together.empty() ? Loop() : together.back().loop());
    auto tap = reduce.begin() + (depthwise_ ? 0 : 1);
    for (size_t i = 0; i < rank(); ++i)
      stages_.taps.push_back(s_.kernel[i] > 1 ? (tap++)->loop() : Loop());
  }

  // True: a copy of the input contains the padding. Otherwise taps in the padding are skipped. A
  // copy is worthwhile only if the edges are too wide for separate tiles at a row's ends
  // (kernels/conv/schedule.cpp), if it is unknown which tiles those are, for an instruction, or if
  // one correction must fit all points of a row.
  bool copies_input() const {
    if (!b_.laid_out) return false;
    if (product_.defined()) return !reads_in_place();
    if (row_.defined() && (s_.kernel.back() > 1 || s_.padded)) return true;
    if (surplus() != 0 && s_.padded && (!blocked_ || free_edges())) return true;
    return s_.padded && s_.pads_begin.back() > kWidestEdge * s_.strides.back();
  }

  // True: it is unknown which points miss taps.
  bool free_edges() const {
    for (size_t i = 0; i < rank(); ++i)
      if (padded_along(i) && (!as_const(s_.in[i]) || !as_const(s_.out[i]))) return true;
    return false;
  }

  // True: the instruction reads the numbers in the input's layout. No tap may meet the padding.
  bool reads_in_place() const {
    return product_.left.type == product_.type && !s_.padded && !x_type_.layout.plain() &&
           depth_ <= x_type_.layout.block && product_.rows == 1;
  }

  // An operand's element in the form in which it is multiplied
  Expr number(const Expr& e) const {
    return multiplies_tf32(b_) ? unary(UnaryOp::tf32, e) : widen(e);
  }

  // The left operand's element, minus the zero point if no instruction handles that
  Expr left_number(const Expr& e) const {
    if (!b_.laid_out) return less_zero(number(e), zero_);
    return product_.defined() || is_float(acc_type_)
               ? number(e)
               : widened_number(b_.target, e, acc_type_, counted_from_);
  }

  Expr inside(const Index& padded_position) const {
    Expr all;
    for (size_t i = 0; i < rank(); ++i) {
      if (row_.defined() && !copies_input() && i + 1 == rank()) continue;  // always inside
      Expr from = padded_position[i] - Expr(s_.pads_begin[i]);
      all = logical_and(all, logical_and(le(Expr(0), from), lt(from, s_.in[i])));
    }
    return all;
  }

  Expr depthwise_weight(const Index& out, const Index& taps) {
    std::vector<Axis> axes = {{"wc", Expr((s_.m + block_ - 1) / block_)}};
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.push_back({"wl", Expr(block_)});
    packed_ = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      Expr m = var("wc") * Expr(block_) + var("wl");
      Index at = {m, Expr(0)};
      for (size_t i = 0; i < rank(); ++i) at.push_back(var(axis("wk", i)));
      pad_rank(at);
      return select(lt(m, Expr(s_.m)), read(at), imm(0, b_.type(node_.inputs[1]).dtype));
    });
    Index at = {out[1]};
    at.insert(at.end(), taps.begin(), taps.end());
    at.push_back(out.back());
    return load(packed_, b_.type(node_.inputs[1]).dtype, at);
  }

  // The weight as it is defined
  Expr defined_weight(const Index& out, const Expr& rc, const Index& taps) {
    const ValueId weights = node_.inputs[1];
    stages_.panel_blocks = blocks_of_group();
    stages_.vectors = row_.defined() ? free_.vectors : 0;
    return weight_between(rc, out[1] * Expr(block_) + out.back(), taps, [&](const Index& at) {
      if (!b_.graph.is_constant(weights)) return b_.element(weights, at);
      return load(b_.input(weights, {}, "weights"), b_.type(weights).dtype, at);
    });
  }

  // The weight from panels that have the channels of an instruction innermost
  Expr packed_weight(const Index& out, const Expr& rc, const Index& taps, bool block_axes) {
    if (!product_.defined()) return defined_weight(out, rc, taps);
    const int64_t blocks = (s_.m + block_ - 1) / block_, of_group = blocks_of_group();
    const int64_t rl = block_axes ? depth_ : 1, together = product_.depth;
    const DType dtype = b_.type(node_.inputs[1]).dtype;
    const int64_t vectors = row_.defined()
                                ? free_.vectors
                                : row_tile(
                                      b_.target, as_const(s_.out.back()), of_group, 1,
                                      pool_ ? std::get<op::Pool>(pool_->attrs).kernel.back() : 1)
                                      .vectors;
    stages_.vectors = vectors;
    if (product_.tiles) return tiled_weight(out, rc, taps, vectors);
    const int64_t row = block_axes ? rl : together, rows = (s_.cg + row - 1) / row;
    // Axes in the order in which the schedule's loops read the weights
    std::vector<Axis> axes = {{"wc", Expr(blocks / vectors)}};
    if (block_axes) axes.push_back({"wr", Expr(rows)});
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.push_back(block_axes ? Axis{"wi", Expr(rl / together)} : Axis{"wr", Expr(rows)});
    axes.push_back({"wl", Expr(vectors * block_)});
    if (together > 1) axes.push_back({"wp", Expr(together)});
    packed_ = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      const Expr step = block_axes ? var("wi") : var("wr"),
                 in = together > 1 ? step * Expr(together) + var("wp") : step;
      return weight_between(block_axes ? var("wr") * Expr(rl) + in : in,
                            var("wc") * Expr(vectors * block_) + var("wl"), packed_taps(), read);
    });
    const Expr& c = out[1];
    Index at = {b_.simplified(floor_div(c, Expr(vectors)))};
    if (block_axes) at.push_back(b_.simplified(floor_div(rc, Expr(rl))));
    at.insert(at.end(), taps.begin(), taps.end());
    Expr in = block_axes ? b_.simplified(floor_mod(rc, Expr(rl))) : rc;
    at.push_back(together > 1 ? b_.simplified(floor_div(in, Expr(together))) : in);
    at.push_back(b_.simplified(floor_mod(c, Expr(vectors)) * Expr(block_) + out.back()));
    if (together > 1) at.push_back(b_.simplified(floor_mod(in, Expr(together))));
    return load(packed_, dtype, at);
  }

  Index packed_taps() const {
    Index taps;
    for (size_t i = 0; i < rank(); ++i) taps.push_back(var(axis("wk", i)));
    return taps;
  }

  // The weight, packed as [panel][channels // depth][taps][block of the panel][depth //
  // neighbours][output channel, neighbours]. The last two form a tile.
  Expr tiled_weight(const Index& out, const Expr& rc, const Index& taps, int64_t vectors) {
    const Expr depth(product_.depth), side_by_side(product_.neighbours), block(block_);
    const DType dtype = b_.type(node_.inputs[1]).dtype;
    std::vector<Axis> axes = {{"wc", Expr((s_.m + block_ - 1) / block_ / vectors)},
                              {"wr", simplify(ceil_div(Expr(s_.cg), product_.depth))}};
    for (size_t i = 0; i < rank(); ++i) axes.push_back({axis("wk", i), Expr(s_.kernel[i])});
    axes.insert(axes.end(), {{"wt", Expr(vectors)},
                             {"wq", Expr(product_.depth / product_.neighbours)},
                             {"wl", Expr(block_ * product_.neighbours)}});
    packed_ = b_.packed(node_.inputs[1], "w", axes, [&](const auto& read) {
      const Expr m = (var("wc") * Expr(vectors) + var("wt")) * block +
                     floor_div(var("wl"), side_by_side),
                 c = var("wr") * depth + var("wq") * side_by_side +
                     floor_mod(var("wl"), side_by_side);
      return weight_between(c, m, packed_taps(), read);
    });
    const Expr within = b_.simplified(floor_mod(rc, depth));
    Index at = {b_.simplified(floor_div(out[1], Expr(vectors))),
                b_.simplified(floor_div(rc, depth))};
    at.insert(at.end(), taps.begin(), taps.end());
    at.insert(at.end(),
              {b_.simplified(floor_mod(out[1], Expr(vectors))),
               b_.simplified(floor_div(within, side_by_side)),
               b_.simplified(out.back() * side_by_side + floor_mod(within, side_by_side))});
    return load(packed_, dtype, at);
  }

  // The weight of a tap from channel `in` to channel `out`; 0 if there is none
  Expr weight_between(const Expr& in, const Expr& out, const Index& taps,
                      const std::function<Expr(const Index&)>& read) const {
    Expr there = logical_and(lt(out, Expr(s_.m)), lt(in, Expr(s_.cg)));
    Index at = {out, in};
    if (merged_ > 1) {
      const int64_t ins = s_.cg / merged_, outs = s_.mg / merged_;
      at[1] = floor_mod(in, ins);
      there = logical_and(there, eq(floor_div(in, ins), floor_mod(floor_div(out, outs), merged_)));
    }
    at.insert(at.end(), taps.begin(), taps.end());
    pad_rank(at);
    return select(there, read(at), imm(0, b_.type(node_.inputs[1]).dtype));
  }

  Expr plain_weight(const Index& out, const Expr& rc, const Index& taps) {
    Index at = {out[1], rc};
    at.insert(at.end(), taps.begin(), taps.end());
    pad_rank(at);
    return b_.parameter_element(node_.inputs[1], at);
  }

  const int64_t zero_ = std::get<op::Conv>(node_.attrs).x_zero;
  int64_t counted_from_ = zero_;  // the number that is multiplied as 0
  bool depthwise_ = false;
  int64_t merged_ = 1;  // groups that count as one
  RegisterTile free_;   // set if the row's extent is free, or an instruction takes several pixels
  Expr row_;            // the row's extent in whole tiles; else undefined
  int64_t depth_ = 1;   // input channels of a blocked layout in the innermost reduction
  std::function<Expr(const Expr&, const Expr&, const Index&)> in_;
  IntegerProduct product_;
  BufferId acc_, packed_, padded_, correction_;
  ConvStages stages_;
};

}  // namespace

int64_t most_merged_groups(const Target& target, const LeftNumbers& left, DType right,
                           int64_t block) {
  return integer_product_from_anywhere(target, left, right, {block}).depth;
}

Expected<Lowered<ConvStages>> lower_conv(TargetBuilder& b, const Node& node) {
  TW_ASSIGN(const ConvShape shape, conv_shape(b, node));
  return lower_as_defined<ConvLowering>(b, node, shape);
}

}  // namespace tw
