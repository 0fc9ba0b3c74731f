// Arranges convolutions: the blocks of their tensors, a copy of the input where its padding or an
// instruction wants one, and the weights. These lie in panels of V blocks of B channels:
// [oc/(V*B)][ic blocks][kernel...][ic of a block][V*B], or [oc/(V*B)][kernel...][ic][V*B] for an
// input whose channels are one loop. For transposed ones it is [oc/(V*B)][phases...][taps...][ic]
// [V*B]. The tile of a row chooses V. Pairs of input channels, or the steps of an instruction, are
// innermost if the target sums so.
#include <algorithm>
#include <numeric>

#include "kernels/common/integer_product.h"
#include "kernels/common/row_tile.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/merged_groups.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

// Most output pixels at a row's end whose taps reach into the padding, for an input that is not
// copied
constexpr int64_t kWidestEdge = 16;

bool multiplies_f32(const Expr& sum) {
  const auto* product = as_binary(sum, BinaryOp::mul);
  return product && product->a.type() == DType::f32 && !is<expr::Cast>(product->a) &&
         !is<expr::Cast>(product->b);
}

// The index of a channel of the input in its group: step `within` out of `steps`
Expr channel_of_group(const ConvStages& m, int64_t steps, const Expr& within) {
  if (m.groups == 1) return within;
  const Expr group = floor_div(variable(m.sums.channel), Expr(m.group_out));
  return steps == 1 ? group : group * Expr(steps) + within;
}

}  // namespace

Loop windows_loop(size_t axis) { return ScheduleBuilder::loop_of("xs" + std::to_string(axis)); }

namespace {

// The places of an axis that taps read, without those between them that all taps leave out. apart:
// those of a row with a stride lie apart, by their remainder.
void add_window(const ScheduleBuilder& s, const ConvStages& m, size_t axis, bool apart,
                std::vector<ScheduleBuilder::PackedDim>& dims) {
  const bool row = axis + 1 == m.taps.size();
  const Loop& points = row ? m.sums.row : m.sums.lines[axis];
  const std::string name = windows_loop(axis).name();
  const int64_t common = std::gcd(m.strides[axis], m.dilations[axis]);
  const Expr point = variable(points), tap = variable(m.taps[axis]);
  if (!m.taps[axis].defined()) {
    dims.push_back({point, name});
  } else if (s.extent(points) == 1) {
    dims.push_back({tap, name});
  } else {
    const int64_t step = m.strides[axis] / common;
    const Expr place = point * Expr(step) + tap * Expr(m.dilations[axis] / common);
    apart &= row && step > 1;
    if (apart) dims.push_back({floor_mod(place, Expr(step)), name + "p"});
    dims.push_back({apart ? floor_div(place, Expr(step)) : place, name});
  }
}

// Brings a definition the blocks of its tensors, and its operands the forms that the target's
// registers or an instruction for the sums want.
class ConvArrangement {
 public:
  ConvArrangement(ScheduleBuilder& s, ConvStages& m)
      : s_(s),
        m_(m),
        in_(m.in_block),
        out_(m.out_block),
        outputs_(m.groups * m.group_out),
        sums_(s.buffer(m.acc.buffer()).dtype) {
    depth_ = in_;
    // A block that is only partly full is read in smaller, full parts.
    if (const int64_t part = std::gcd(m.group_in, in_); part >= kFewestDepth) depth_ = part;
    if (m.transposed) return;
    product_ = instruction();
    if (product_.defined() && in_ > 0) depth_ = std::max(depth_, product_.depth);
    else if (in_ > 0 && m.group_in % depth_ != 0) depth_ = std::gcd(m.group_in, in_);
    row_tile_ = tile_of_row();
  }

  void run() {
    for (const Stage& copy : m_.copies)
      if (in_ > 0) s_.block(copy.buffer(), 1, in_);
    m_.transposed ? count_left() : arrange_input();
    if (out_ == 0 || !s_.sound()) return;
    if (const Stage copy = fill_bias(s_, m_.bias, m_.out, out_); copy.defined())
      m_.copies.push_back(copy);
    if (!product_.defined()) arrange_weights();
    if (excess_.defined()) s_.block(excess_, 0, out_);
    s_.block(m_.acc.buffer(), 1, out_);
    m_.sums.lane = s_.spatial_loops_of(m_.acc).back();
    block_output(s_, m_.out, out_);
    if (m_.panel_blocks > 0) s_.pad(m_.sums.channel, m_.vectors);
  }

 private:
  using PackedDims = std::vector<ScheduleBuilder::PackedDim>;

  bool guarded() const { return s_.store_of(m_.acc)->where.defined(); }
  // True: all taps meet the padding.
  bool sums_nothing() const { return guarded() && is_const(s_.store_of(m_.acc)->where, 0); }
  int64_t blocks() const { return (outputs_ + out_ - 1) / out_; }
  int64_t blocks_of_group() const {
    return m_.groups == 1 ? blocks() : m_.group_out % out_ == 0 ? m_.group_out / out_ : 1;
  }
  // True: every block of channels belongs to one group.
  bool whole_blocks() const {
    const bool blocks = in_ > 0 && out_ > 0;
    return m_.groups == 1 || (blocks && m_.group_in % in_ == 0 && m_.group_out % out_ == 0);
  }
  bool pools() const { return !m_.out.window.empty(); }

  // The loops over the output's points, from images to the row
  Loops points() const {
    Loops loops = {m_.sums.image};
    loops.insert(loops.end(), m_.sums.lines.begin(), m_.sums.lines.end());
    loops.push_back(m_.sums.row);
    return loops;
  }

  // False: the one weight is a number.
  bool reads_weights() const { return s_.reads_buffers(m_.acc, Factor::right); }

  bool has_known_extents() const {
    const Loops loops = points();
    const std::vector<Expr>& shape = s_.buffer(m_.input).shape;
    return std::ranges::all_of(loops, [&](const Loop& l) { return s_.extent(l).has_value(); }) &&
           std::ranges::all_of(shape, [](const Expr& e) { return as_const(e).has_value(); });
  }

  IntegerProduct instruction() const {
    return chosen_instruction(s_, [&](const auto& without) { return instruction(without); });
  }
  IntegerProduct instruction(const std::vector<std::string>& without) const {
    // A first layer has few channels; they are innermost in the copy and filled up.
    const bool few = in_ == 0,
               suits = few ? m_.groups == 1 && m_.group_in > 1 && m_.group_in <= kFewestDepth
                           : whole_blocks();
    const bool known =
        has_known_extents();  // else rows are filled up, and a pixel is taken at once
    if (out_ == 0 || m_.depthwise || !suits || (pools() && !known) || !reads_weights() ||
        sums_nothing() || dtype_bytes(m_.left_type) >= dtype_bytes(sums_))
      return {};
    const auto choose = m_.weights.defined() ? integer_product_from_anywhere : integer_product;
    const auto of = [&](int64_t depth, int64_t rows) {
      ProductExtents extents{out_, depth, rows};
      extents.without = without;
      if (known && m_.groups == 1 && !few && !pools()) extents.tiles = {outputs_, m_.group_in};
      const LeftNumbers left{m_.left_type, m_.left_zero};
      const IntegerProduct found = choose(s_.target(), left, m_.right_type, extents);
      if (!found.tiles || found.columns == out_) return found;
      extents.tiles.reset();  // a tile's columns must be a block of channels
      return choose(s_.target(), left, m_.right_type, extents);
    };
    if (few) return of(0, 1);
    // Steps behind a block's end belong to the next block in the copy.
    const int64_t pixels = pools() || !known ? 1 : *s_.extent(m_.sums.row);
    const IntegerProduct wide = of(m_.group_in, pixels), narrow = of(depth_, pixels);
    return wide.rows > 1 ? wide : narrow;
  }

  // The tile of a row that is filled up to whole ones: its extent is free, or an instruction takes
  // several pixels
  std::optional<RegisterTile> tile_of_row() const {
    const std::optional<int64_t> row = s_.extent(m_.sums.row);
    const bool lines = !m_.sums.lines.empty();
    if (out_ == 0) return std::nullopt;
    if (product_.rows > 1 && product_.tiles)
      return RegisterTile{rows_of_tiles(product_, row), blocks_of_group() % 2 == 0 ? 2 : 1};
    if (product_.rows > 1)
      return filled_row_tile(s_.target(), *row, blocks_of_group(), product_.rows);
    if (row) return std::nullopt;
    return m_.depthwise ? RegisterTile{free_row_pixels(s_.target(), 1, lines), 1}
                        : free_row_tile(s_.target(), blocks_of_group(), lines);
  }

  void arrange_input() {
    const bool copies = copies_input();
    if (copies && guarded()) s_.unguard(m_.acc, Factor::left);
    if (product_.defined()) {
      recount_left(product_.left.zero);
      if (is_int(sums_) && (product_.left.zero != 0 || m_.left_type != product_.type))
        s_.narrow(m_.acc, Factor::left, product_.type);
      pack_for_instruction();
    }
    if (row_tile_) s_.pad(m_.sums.row, row_tile_->rows);
    if (copies) copy_left();
    if (product_.defined()) return split_depth();
    count_left();
    if (depth_ > 1 && in_ > 0 && !m_.depthwise && (m_.groups == 1 || m_.group_in % in_ == 0))
      cut_input_channels();
  }

  // The number that is multiplied as 0, without an instruction. Unsigned bytes can be one of the
  // two words that the target multiplies and adds at once, beside a 0.
  int64_t counted_from() const {
    const int64_t least = least_byte(m_.left_type);
    const bool all_taps = !m_.transposed || !m_.sums.phases.empty();
    const bool words = all_taps && !sums_nothing() && is_byte(m_.left_type) &&
                       m_.weights.defined() && s_.target().driver.empty();
    return words && (m_.left_zero == least || pairs_words(s_.target())) ? least : m_.left_zero;
  }

  // Counts from there in the narrowest type, where no instruction does.
  void count_left() {
    if (!is_int(sums_)) return;
    const int64_t zero = counted_from();
    recount_left(zero);
    if (const auto type = narrow_type(s_.target(), {m_.left_type, zero}, sums_))
      s_.narrow(m_.acc, Factor::left, *type);
  }

  void recount_left(int64_t zero) {
    if (zero != m_.left_zero) excess_ = s_.recount(m_.acc, Factor::left, zero, "corr").buffer();
  }

  // True: a copy of the input contains the padding. Otherwise taps in the padding are skipped. A
  // copy is worthwhile only if the edges are too wide for separate tiles at a row's ends
  // (kernels/conv/schedule.cpp), if it is unknown which tiles those are, for an instruction, or if
  // one excess must fit all points of a row.
  bool copies_input() const {
    if (product_.defined()) return !reads_in_place();
    if (sums_nothing()) return false;
    if (m_.spreads_channels) return true;
    const bool free = row_tile_ && (guarded() || m_.taps.back().defined());
    const bool recounts = is_int(sums_) && counted_from() != m_.left_zero;
    if (free || (guarded() && recounts && (out_ == 0 || has_free_edges()))) return true;
    const bool wide = guarded() && m_.pads_begin.back() > kWidestEdge * m_.strides.back(),
               windows = guarded() || std::ranges::any_of(m_.taps, &Loop::defined);
    return out_ > 0 && windows ? s_.choose_switch("copy_input", wide) : wide;
  }

  // True: it is unknown which points miss taps.
  bool has_free_edges() const {
    const Expr& where = s_.store_of(m_.acc)->where;
    return std::ranges::any_of(s_.kernel().symbols,
                               [&](const std::string& n) { return uses_var(where, n); }) ||
           std::ranges::any_of(points(), [&](const Loop& loop) {
             return uses_var(where, loop.name()) && !s_.extent(loop);
           });
  }

  // True: the instruction reads the numbers in the input's layout. No tap may meet the padding.
  bool reads_in_place() const {
    const bool full = is_int(sums_) || m_.group_in % std::max<int64_t>(1, depth_) == 0;
    return product_.left.type == product_.type && !guarded() && in_ > 0 && depth_ <= in_ &&
           product_.rows == 1 && full;
  }

  // Copies the numbers that are multiplied; the padding holds the zero point.
  void copy_left() {
    const int64_t block = m_.spreads_channels             ? out_
                          : product_.defined() && in_ > 0 ? std::max(in_, depth_)
                                                          : in_;
    const int64_t few = in_ == 0 && product_.defined() ? product_.depth : 0;
    m_.copies.insert(m_.copies.begin(), pack_windows(s_, m_, block, {few, product_.rows > 1}));
  }

  // Packs the weights with the channels of an instruction innermost. Tiles are [panel][channels //
  // depth][taps][block of the panel][depth // neighbours][output channel, neighbours].
  void pack_for_instruction() {
    m_.panel_blocks = blocks_of_group();
    m_.vectors = row_tile_ ? row_tile_->vectors
                           : row_tile(s_.target(), s_.extent(m_.sums.row), m_.panel_blocks, 1,
                                      pools() ? m_.out.window.back() : 1)
                                 .vectors;
    const Expr width(m_.vectors * out_),
        channel = variable(m_.sums.channel), place = floor_mod(channel, width),
        rc = variable(m_.channels), block(out_), neighbours(product_.neighbours),
        together(product_.depth), part(depth_);
    PackedDims dims = {{floor_div(channel, width), "wc"}};
    if (in_ > 0) dims.push_back({floor_div(rc, part), "wr"});
    add_taps(dims);
    const Expr step = in_ > 0 ? floor_mod(rc, part) : rc;
    if (product_.tiles) {
      dims.push_back({floor_div(place, block), "wt"});
      dims.push_back({floor_div(step, neighbours), "wq"});
      dims.push_back({floor_mod(place, block) * neighbours + floor_mod(step, neighbours), "wl"});
    } else {
      dims.push_back({product_.depth > 1 ? floor_div(step, together) : step, "wi"});
      dims.push_back({place, "wl"});
      if (product_.depth > 1) dims.push_back({floor_mod(step, together), "wp"});
    }
    pack_weights(dims);
  }

  // Makes the steps that an instruction sums loops of their own, behind the taps.
  void split_depth() {
    s_.pad_zeros(m_.channels, in_ > 0 ? depth_ : product_.depth);
    Loops inner;
    Loop steps = m_.channels;
    if (in_ > 0) {
      const auto cut = s_.split(m_.channels, depth_, Tail::guard, m_.channels.name(), "rl");
      m_.channels = cut.outer, m_.channel_lanes = steps = cut.inner;
    }
    Loop side_by_side;
    if (product_.depth > 1) {
      const auto cut = s_.split(steps, product_.depth, Tail::guard, steps.name(), "rp");
      (in_ > 0 ? m_.channel_lanes : m_.channels) = cut.outer, side_by_side = cut.inner;
      if (product_.tiles) {
        const auto parts = s_.split(cut.inner, product_.neighbours, Tail::guard, "rq", "rp");
        inner = {parts.outer}, side_by_side = parts.inner;
      }
      inner.push_back(side_by_side);
    }
    order_depth(inner);
    m_.instruction = product_.sums(side_by_side);
  }

  // Orders the depth: channels or blocks of them, taps, channels of a block, then `inner`. With
  // taps outside, taps come first.
  void order_depth(const Loops& inner) {
    if (std::ranges::none_of(m_.taps, &Loop::defined)) return;
    Loops order;
    std::ranges::copy_if(m_.taps, std::back_inserter(order), &Loop::defined);
    order.insert(m_.taps_outside ? order.end() : order.begin(), m_.channels);
    if (m_.channel_lanes.defined()) order.push_back(m_.channel_lanes);
    order.insert(order.end(), inner.begin(), inner.end());
    s_.reorder(order);
  }

  // Cuts the input channels into the blocks of the input, or into the parts of them that a group
  // fills.
  void cut_input_channels() {
    const auto cut = s_.split(m_.channels, depth_, Tail::guard, m_.channels.name(), "rl");
    m_.channels = cut.outer, m_.channel_lanes = cut.inner;
    const bool several = s_.extent(m_.channels).value_or(2) > 1,
               taps = std::ranges::any_of(m_.taps, &Loop::defined);
    if (several && taps && !pools() && !pairs_depth(s_.target()))
      m_.taps_outside = s_.choose_switch("taps_outside", false);
    order_depth({});
  }

  void arrange_weights() {
    if (!reads_weights() || (m_.transposed && m_.sums.phases.empty())) return;
    m_.depthwise ? pack_depthwise() : pack_panels();
  }

  void pack_weights(const PackedDims& dims) {
    const bool constant = m_.weights.defined();
    const Stage packed =
        s_.pack(m_.acc, Factor::right, "w", constant ? kConstantScope : "global", dims).stage;
    if (!constant) m_.copies.insert(m_.copies.begin(), packed);
    m_.weights = packed.buffer();
  }

  void add_taps(PackedDims& dims) const {
    for (size_t i = 0; i < m_.taps.size(); ++i)
      if (m_.taps[i].defined()) dims.push_back({variable(m_.taps[i]), "wk" + std::to_string(i)});
  }

  // Packs weights of one channel each as [blocks][taps][channel of a block].
  void pack_depthwise() {
    const Expr c = variable(m_.sums.channel), block(out_);
    PackedDims dims = {{floor_div(c, block), "wc"}};
    add_taps(dims);
    dims.push_back({floor_mod(c, block), "wl"});
    pack_weights(dims);
  }

  bool sums_pairs() const {
    const Target& target = s_.target();
    return pairs_depth(target) && m_.channel_lanes.defined() &&
           *s_.extent(m_.channel_lanes) % 2 == 0 && out_ * 2 == kPairedVectors * target.lanes(4) &&
           multiplies_f32(s_.store_of(m_.acc)->value) && s_.extent(m_.sums.row).value_or(1) > 1;
  }

  // Blocks of channels of a panel. The last panel may hold blocks that do not exist, if all are of
  // one group and the tiles are those of the output, not of the windows of a pool.
  int64_t vectors_of_panel() const {
    std::optional<int64_t> lines = 1;
    if (!m_.sums.phases.empty() && !m_.sums.lines.empty()) lines = s_.extent(m_.sums.lines.back());
    const int64_t step = pools() ? m_.out.window.back() : 1, all = m_.panel_blocks;
    const bool fills = !pools() && all == blocks();
    const int64_t usual = row_tile(s_.target(), s_.extent(m_.sums.row), all, lines, step,
                                   fills ? Cover::padded : Cover::exact)
                              .vectors;
    std::vector<int64_t> others;
    for (int64_t vectors = 1; s_.open() && vectors <= std::min(kWidestPanel, all); ++vectors)
      if ((fills || all % vectors == 0) && step <= most_tile_rows(s_.target(), vectors))
        others.push_back(vectors);
    return s_.choose("panel", usual, others);
  }

  void pack_panels() {
    const bool pairs = sums_pairs();
    m_.panel_blocks = blocks_of_group();
    m_.vectors = row_tile_ ? row_tile_->vectors : pairs ? 1 : vectors_of_panel();
    const Expr width(m_.vectors * out_), channel = variable(m_.sums.channel),
                                         step = variable(m_.channel_lanes);
    PackedDims dims = {{floor_div(channel, width), "wc"}};
    const bool blocks_first = m_.channel_lanes.defined() && !m_.taps_outside;
    if (blocks_first) dims.push_back({variable(m_.channels), "wr"});
    for (size_t i = 0; i < m_.sums.phases.size(); ++i)
      dims.push_back({variable(m_.sums.phases[i]), "wp" + std::to_string(i)});
    add_taps(dims);
    if (!blocks_first) dims.push_back({variable(m_.channels), "wr"});
    if (m_.channel_lanes.defined()) dims.push_back({pairs ? floor_div(step, Expr(2)) : step, "wi"});
    dims.push_back({floor_mod(channel, width), "wl"});
    if (pairs) dims.push_back({floor_mod(step, Expr(2)), "wp"});
    pack_weights(dims);
    if (pairs) m_.paired = m_.channel_lanes;
  }

  ScheduleBuilder& s_;
  ConvStages& m_;
  int64_t in_, out_;  // blocks of the tensors' channels; 0: none
  int64_t outputs_;   // output channels of all groups
  DType sums_;
  int64_t depth_ = 1;  // input channels of a block in the innermost reduction
  IntegerProduct product_;
  std::optional<RegisterTile> row_tile_;
  BufferName excess_;
};

}  // namespace

Stage pack_windows(ScheduleBuilder& s, const ConvStages& m, int64_t block, CopiedRow row) {
  const Expr c = variable(m.sums.channel), rc = variable(m.channels);
  std::vector<ScheduleBuilder::PackedDim> dims = {{variable(m.sums.image), "xn"}};
  Expr lane;
  if (m.depthwise) {
    dims.push_back({block > 0 ? floor_div(c, Expr(block)) : c, "xc"});
    if (block > 0) lane = floor_mod(c, Expr(block));
  } else if (block > 0 && (m.groups == 1 || m.group_in % block == 0)) {
    const bool one = m.group_in == block;
    const Expr within = one ? Expr(0) : floor_div(rc, Expr(block));
    dims.push_back({channel_of_group(m, m.group_in / block, within), "xc"});
    lane = one ? rc : floor_mod(rc, Expr(block));
  } else if (row.few > 0) {
    lane = filled_up(rc, row.few);
  } else {
    dims.push_back({channel_of_group(m, m.group_in, rc), "xc"});
  }
  for (size_t i = 0; i < m.taps.size(); ++i) add_window(s, m, i, row.apart, dims);
  if (lane.defined()) dims.push_back({lane, "xl"});
  return s.pack(m.acc, Factor::left, "xp", "global", dims).stage;
}

Stage fill_bias(ScheduleBuilder& s, const BufferName& bias, const ConvOutput& out, int64_t block) {
  if (!bias.defined() || !s.sound()) return {};
  const bool constant = s.find(bias)->role == BufferRole::constant;
  const Stage copy = s.cache_read(bias, out.conv.defined() ? out.conv : out.y, "bias",
                                  constant ? kConstantScope : "global");
  s.pad_zeros(s.spatial_loops_of(copy).front(), block);
  return constant ? Stage() : copy;
}

void block_output(ScheduleBuilder& s, ConvOutput& out, int64_t block) {
  if (out.conv.defined()) {
    s.block(out.conv.buffer(), 1, block);
    out.conv_loops.lane = s.spatial_loops_of(out.conv).back();
  }
  out.loops.lane = s.spatial_loops_of(out.y).back();
}

int64_t most_merged_groups(const Target& target, const LeftNumbers& left, DType right,
                           int64_t block) {
  return integer_product_from_anywhere(target, left, right, {block}).depth;
}

// All lanes of an output's block read one group, so smaller groups are merged into one. The weights
// between channels of different groups are 0. Groups of one channel are not: the copy of the input
// has a channel for each of the output. An instruction covers several steps of the depth at
// once, so nothing is lost if at most as many groups are merged as it covers steps.
void merge_groups(ScheduleBuilder& s, ConvStages& m) {
  if (m.out_block == 0 || m.depthwise || m.transposed || m.groups <= 1) return;
  if (m.group_in == 1) {
    m.depthwise = m.spreads_channels = m.group_out % m.out_block != 0;
    return;
  }
  const int64_t whole = groups_that_fill(m.groups, m.group_in, std::max<int64_t>(1, m.in_block),
                                         m.group_out, m.out_block);
  const LeftNumbers left{m.left_type, m.left_zero};
  int64_t merged = 1;
  if (m.group_out % m.out_block != 0) merged = whole == 0 ? m.groups : whole;
  else if (whole > 1 && is_byte(m.left_type) &&
           whole <= most_merged_groups(s.target(), left, m.right_type, m.out_block))
    merged = whole;
  if (merged == 1) return;
  const Expr group = floor_div(variable(m.sums.channel), Expr(m.group_out));
  s.skew(m.channels, merged * m.group_in, floor_mod(group, Expr(merged)) * Expr(m.group_in));
  s.unguard(m.acc, Factor::right);
  m.groups /= merged, m.group_in *= merged, m.group_out *= merged;
}

void arrange_conv(ScheduleBuilder& s, ConvStages& m) { ConvArrangement(s, m).run(); }

}  // namespace tw
