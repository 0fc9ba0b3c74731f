// Lays the weights of convolutions with blocked output out in panels of V blocks of B channels:
// [oc/(V*B)][ic blocks][kernel...][ic of a block][V*B], or [oc/(V*B)][kernel...][ic][V*B] for an
// input whose channels are one loop. For transposed ones it is [oc/(V*B)][phases...][taps...][ic]
// [V*B]. The tile of a row chooses V, a divisor of the number of blocks. Pairs of input channels
// are innermost if the target sums so.
#include <algorithm>
#include <numeric>

#include "kernels/common/row_tile.h"
#include "kernels/conv/conv.h"
#include "kernels/schedule/panels.h"

namespace tw {
namespace {

bool multiplies_f32(const Expr& sum) {
  const auto* product = as_binary(sum, BinaryOp::mul);
  return product && product->a.type() == DType::f32 && !is<expr::Cast>(product->a) &&
         !is<expr::Cast>(product->b);
}

// The output channels of the sums: one loop of a definition, or loops over blocks and in a block
struct OutputChannels {
  std::optional<int64_t> blocks;
  int64_t block = 1;
  bool cut = true;
};

bool sums_pairs(const ScheduleBuilder& s, const ConvStages& m, const OutputChannels& c) {
  const Target& target = s.target();
  return pairs_depth(target) && m.channel_lanes.defined() && *s.extent(m.channel_lanes) % 2 == 0 &&
         c.block * 2 == kPairedVectors * target.lanes(4) &&
         multiplies_f32(s.store_of(m.acc)->value) && s.extent(m.sums.row).value_or(1) > 1;
}

// True: the last panel may hold blocks of channels that do not exist. All must be of one group, and
// the tiles must be those of the output, not of the windows of a pool.
bool fills_panels(const ConvStages& m, const OutputChannels& c) {
  return m.out.window.empty() && (m.sums.lane.defined() || !c.cut) && m.panel_blocks == c.blocks;
}

// Blocks of channels of a panel, out of `panel_blocks`
int64_t vectors_of(const ScheduleBuilder& s, const ConvStages& m, const OutputChannels& c) {
  const auto row = s.extent(m.sums.row);
  std::optional<int64_t> lines = 1;
  if (!m.sums.phases.empty() && !m.sums.lines.empty()) lines = s.extent(m.sums.lines.back());
  const int64_t step = m.out.window.empty() ? 1 : m.out.window.back();
  const bool fills = fills_panels(m, c);
  const int64_t usual = row_tile(s.target(), row, m.panel_blocks, lines, step,
                                 fills ? Cover::padded : Cover::exact)
                            .vectors;
  std::vector<int64_t> others;
  for (int64_t vectors = 1; s.open() && vectors <= std::min(kWidestPanel, m.panel_blocks);
       ++vectors)
    if ((fills || m.panel_blocks % vectors == 0) && step <= most_tile_rows(s.target(), vectors))
      others.push_back(vectors);
  return s.choose("panel", usual, others);
}

void pack_weights(ScheduleBuilder& s, ConvStages& m,
                  const std::vector<ScheduleBuilder::PackedDim>& dims) {
  const bool constant = m.weights.defined();
  const Stage packed =
      s.pack(m.acc, Factor::right, "w", constant ? kConstantScope : "global", dims).stage;
  if (!constant) m.copies.insert(m.copies.begin(), packed);
  m.weights = packed.buffer();
}

// Weights of one channel each are packed as [blocks][taps][channel of a block].
void pack_depthwise(ScheduleBuilder& s, ConvStages& m, int64_t block) {
  const Expr c = variable(m.sums.channel);
  std::vector<ScheduleBuilder::PackedDim> dims = {{floor_div(c, Expr(block)), "wc"}};
  for (size_t i = 0; i < m.taps.size(); ++i)
    dims.push_back({variable(m.taps[i]), "wk" + std::to_string(i)});
  dims.push_back({floor_mod(c, Expr(block)), "wl"});
  pack_weights(s, m, dims);
}

void pack_panels(ScheduleBuilder& s, ConvStages& m, const OutputChannels& channels) {
  const bool pairs = sums_pairs(s, m, channels);
  if (m.vectors == 0) m.vectors = pairs ? 1 : vectors_of(s, m, channels);
  const Expr width(m.vectors * channels.block), channel = variable(m.sums.channel);
  const PanelIndices c = channels.cut
                             ? panel_indices(s, m.sums.channel, m.sums.lane, m.vectors)
                             : PanelIndices{floor_div(channel, width), floor_mod(channel, width)};
  std::vector<ScheduleBuilder::PackedDim> dims = {{c.panel, "wc"}};
  if (m.channel_lanes.defined()) dims.push_back({variable(m.channels), "wr"});
  for (size_t i = 0; i < m.sums.phases.size(); ++i)
    dims.push_back({variable(m.sums.phases[i]), "wp" + std::to_string(i)});
  for (size_t i = 0; i < m.taps.size(); ++i)
    dims.push_back({variable(m.taps[i]), "wk" + std::to_string(i)});
  const Expr step = variable(m.channel_lanes);
  if (!m.channel_lanes.defined()) dims.push_back({variable(m.channels), "wr"});
  else dims.push_back({pairs ? floor_div(step, Expr(2)) : step, "wi"});
  dims.push_back({c.place, "wl"});
  if (pairs) dims.push_back({floor_mod(step, Expr(2)), "wp"});
  pack_weights(s, m, dims);
  if (pairs) m.paired = m.channel_lanes;
}

// Cuts the input channels into the blocks of the input, or into the parts of them that a group
// fills.
void cut_input_channels(ScheduleBuilder& s, ConvStages& m, int64_t block) {
  const int64_t part = std::gcd(m.group_in, block);
  const auto cut = s.split(m.channels, part >= kFewestDepth ? part : block, Tail::guard,
                           m.channels.name(), "rl");
  m.channels = cut.outer, m.channel_lanes = cut.inner;
  Loops order = {m.channels};
  std::ranges::copy_if(m.taps, std::back_inserter(order), &Loop::defined);
  if (order.size() == 1) return;
  order.push_back(m.channel_lanes);
  s.reorder(order);
}

// Brings the blocks of its tensors to a definition. False: the output has none.
bool arrange_definition(ScheduleBuilder& s, ConvStages& m) {
  const size_t dims = 3 + m.sums.lines.size();
  const auto block_of = [&](const BufferName& buffer, size_t plain_dims) -> int64_t {
    const std::vector<Expr>& shape = s.buffer(buffer).shape;
    return shape.size() > plain_dims ? *as_const(shape.back()) : 0;
  };
  const int64_t in = block_of(m.input, dims),
                out = block_of(m.out.y.buffer(), dims + m.sums.phases.size());
  for (const Stage& copy : m.copies)
    if (in > 0) s.block(copy.buffer(), 1, in);
  const bool groups_fill_blocks = m.groups == 1 || m.group_in % std::max<int64_t>(1, in) == 0;
  if (in > 0 && !m.depthwise && !m.transposed && groups_fill_blocks) cut_input_channels(s, m, in);
  if (out == 0) return false;
  const int64_t channels = m.groups * m.group_out, blocks = (channels + out - 1) / out;
  if (const Stage copy = fill_bias(s, m.bias, m.out, out); copy.defined()) m.copies.push_back(copy);
  if (m.depthwise) {
    pack_depthwise(s, m, out);
  } else if (!m.transposed || !m.sums.phases.empty()) {
    m.panel_blocks = m.groups == 1 ? blocks : m.group_out % out == 0 ? m.group_out / out : 1;
    m.vectors = 0;
    pack_panels(s, m, {blocks, out, false});
  }
  s.block(m.acc.buffer(), 1, out);
  m.sums.lane = s.spatial_loops_of(m.acc).back();
  block_output(s, m.out, out);
  if (m.panel_blocks > 0) s.pad(m.sums.channel, m.vectors);
  return true;
}

}  // namespace

Stage fill_bias(ScheduleBuilder& s, const BufferName& bias, const ConvOutput& out, int64_t block) {
  if (!bias.defined()) return {};
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

void arrange_conv(ScheduleBuilder& s, ConvStages& m) {
  if (m.groups > 0 && arrange_definition(s, m)) return;
  if (m.panel_blocks == 0) return;
  pack_panels(s, m, {s.extent(m.sums.channel), s.extent(m.sums.lane).value_or(1), true});
  s.pad(m.sums.channel, m.vectors);
}

}  // namespace tw
