// Lays the weights of convolutions with blocked output out in panels of V blocks of B channels:
// [oc/(V*B)][ic blocks][kernel...][ic of a block][V*B], or [oc/(V*B)][kernel...][ic][V*B] for an
// input whose channels are one loop. For transposed ones it is [oc/(V*B)][phases...][taps...][ic]
// [V*B]. The tile of a row chooses V, a divisor of the number of blocks. Pairs of input channels
// are innermost if the target sums so.
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

bool sums_pairs(const ScheduleBuilder& s, const ConvStages& m) {
  const Target& target = s.target();
  return pairs_depth(target) && m.channel_lanes.defined() && *s.extent(m.channel_lanes) % 2 == 0 &&
         *s.extent(m.sums.lane) * 2 == kPairedVectors * target.lanes(4) &&
         multiplies_f32(s.store_of(m.acc)->value) && s.extent(m.sums.row).value_or(1) > 1;
}

// True: the last panel may hold blocks of channels that do not exist. All must be of one group, and
// the tiles must be those of the output, not of the windows of a pool.
bool fills_panels(const ScheduleBuilder& s, const ConvStages& m) {
  return m.out.window.empty() && m.sums.lane.defined() &&
         m.panel_blocks == s.extent(m.sums.channel);
}

// Blocks of channels of a panel, out of `panel_blocks`
int64_t vectors_of(const ScheduleBuilder& s, const ConvStages& m) {
  const auto row = s.extent(m.sums.row);
  std::optional<int64_t> lines = 1;
  if (!m.sums.phases.empty() && !m.sums.lines.empty()) lines = s.extent(m.sums.lines.back());
  const int64_t step = m.out.window.empty() ? 1 : m.out.window.back();
  const bool fills = fills_panels(s, m);
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

}  // namespace

void arrange_conv(ScheduleBuilder& s, ConvStages& m) {
  if (m.panel_blocks == 0) return;
  const bool pairs = sums_pairs(s, m);
  if (m.vectors == 0) m.vectors = pairs ? 1 : vectors_of(s, m);
  const PanelIndices c = panel_indices(s, m.sums.channel, m.sums.lane, m.vectors);
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
  const bool constant = m.weights.defined();
  const Stage packed =
      s.pack(m.acc, Factor::right, "w", constant ? kConstantScope : "global", dims).stage;
  if (!constant) m.copies.insert(m.copies.begin(), packed);
  m.weights = packed.buffer();
  s.pad(m.sums.channel, m.vectors);
  if (pairs) m.paired = m.channel_lanes;
}

}  // namespace tw
