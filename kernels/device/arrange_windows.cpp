// Arranges convolutions for windows. Stage xp is the input with zeros around it, if taps meet the
// padding or there are several taps. The sums run in whole tiles of the threads. Weights lie as
// [output channel block][input channel block][taps][input channel][output channel of the block].
#include <algorithm>
#include <numeric>

#include "kernels/device/window_model.h"
#include "kernels/schedule/builder.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

constexpr int64_t kFreeImages = 1;  // assumed for a free number

// True: a channel of the output reads the channel of the input at the same place of its block.
bool same_channel(const ConvStages& m) {
  return m.group_in == 1 && m.group_out == 1 && m.in_block == m.out_block;
}

// A convolution's axis; in a copy (pack_windows), without the places between those that taps read.
// nullopt: its sizes are free
std::optional<WindowAxis> axis_of(const ScheduleBuilder& s, const ConvStages& m, size_t i,
                                  bool copied) {
  const bool row = i + 1 == m.taps.size();
  const auto out = s.extent(row ? m.sums.row : m.sums.lines[i]),
             in = as_const(s.buffer(m.input).shape[i + 2]);
  if (!out || !in) return std::nullopt;
  const int64_t taps = s.extent(m.taps[i]).value_or(1),
                between = !copied    ? 1
                          : taps > 1 ? std::gcd(m.strides[i], m.dilations[i])
                                     : m.strides[i];
  return WindowAxis{*out, (*in + between - 1) / between, taps, m.strides[i] / between,
                    std::max<int64_t>(1, m.dilations[i] / between)};
}

// The sizes, but for the channels of a step. nullopt: some are free
std::optional<WindowProblem> problem_of(const ScheduleBuilder& s, const ConvStages& m) {
  WindowProblem p;
  p.images = s.extent(m.sums.image).value_or(kFreeImages);
  p.inputs = p.images * m.groups * m.group_in;
  p.copied = s.store_of(m.acc)->where.defined() ||
             std::ranges::any_of(m.taps, [](const Loop& tap) { return tap.defined(); });
  for (size_t i = 0; i < m.taps.size(); ++i) {
    const std::optional<WindowAxis> axis = axis_of(s, m, i, p.copied);
    if (!axis) return std::nullopt;
    p.inputs *= axis->in;
    if (i + 1 == m.taps.size()) p.row = *axis;
    else if (i + 2 == m.taps.size()) p.line = *axis;
    else p.images *= axis->out, p.outer_taps *= axis->taps;
  }
  p.lanes = std::max<int64_t>(1, m.out_block);
  p.channels = (m.groups * m.group_out + p.lanes - 1) / p.lanes;
  p.depth = m.group_in, p.bytes = dtype_bytes(m.left_type);
  return p;
}

}  // namespace

std::optional<WindowStages> windows_of(const ScheduleBuilder& s, const ConvStages& m) {
  if (m.transposed || !m.out.window.empty() || !is_float(m.left_type) ||
      !s.reads_buffers(m.acc, Factor::right) || s.buffer(m.acc.buffer()).dtype == DType::f64 ||
      is_const(s.store_of(m.acc)->where, 0))
    return std::nullopt;
  std::optional<WindowProblem> p = problem_of(s, m);
  if (!p) return std::nullopt;
  // A step takes as many channels of a block as fit their weights in registers.
  const int64_t in_block = std::max<int64_t>(1, m.in_block);
  for (p->step = !same_channel(m) && m.group_in % in_block == 0 ? in_block : 1;; p->step /= 2) {
    p->loaded = same_channel(m) ? p->lanes : p->step;
    if (const auto tile = window_tile(*p, s.target())) {
      WindowStages stages;
      stages.problem = *p, stages.tile = *tile;
      return stages;
    }
    if (p->step % 2 != 0) return std::nullopt;
  }
}

namespace {

class WindowArrangement {
 public:
  WindowArrangement(ScheduleBuilder& s, const ConvStages& m, WindowStages stages)
      : s_(s), m_(m), out_(std::move(stages)) {}

  WindowStages run() {
    if (s_.store_of(m_.acc)->where.defined()) s_.unguard(m_.acc, Factor::left);
    if (out_.problem.copied) out_.window = pack_windows(s_, m_, m_.in_block);
    fill_up();
    pack_weights();
    out_.acc = m_.acc, out_.sums = m_.sums, out_.taps = m_.taps, out_.out = m_.out;
    cut_channels();
    if (m_.out_block == 0) return std::move(out_);
    fill_bias(s_, m_.bias, m_.out, m_.out_block);
    s_.block(m_.acc.buffer(), 1, m_.out_block);
    out_.sums.lane = s_.spatial_loops_of(m_.acc).back();
    block_output(s_, out_.out, m_.out_block);
    return std::move(out_);
  }

 private:
  // Lets the sums run to whole tiles: a block's, or a thread's if the input is not copied.
  void fill_up() {
    const WindowTile& t = out_.tile;
    const bool copied = out_.problem.copied;
    fill_up(m_.sums.row, m_.taps.size() - 1, out_.problem.row, t.pixels * (copied ? t.across : 1));
    if (!m_.sums.lines.empty())
      fill_up(m_.sums.lines.back(), m_.taps.size() - 2, out_.problem.line,
              t.lines * (copied ? t.down : 1));
  }

  // The copy has zeros for the added points.
  void fill_up(const Loop& points, size_t axis, const WindowAxis& sizes, int64_t tile) {
    const Loop window = windows_loop(axis);
    if (out_.problem.copied && sizes.out > 1)
      s_.pad_zeros(window, sizes.span((sizes.out + tile - 1) / tile * tile));
    s_.pad(points, tile);
  }

  void pack_weights() {
    const Expr block(out_.problem.lanes), step(out_.problem.step),
        channel = variable(m_.sums.channel), depth = variable(m_.channels);
    std::vector<ScheduleBuilder::PackedDim> dims = {{floor_div(channel, block), "wc"},
                                                    {floor_div(depth, step), "wr"}};
    for (size_t i = 0; i < m_.taps.size(); ++i)
      dims.push_back({variable(m_.taps[i]), "wk" + std::to_string(i)});
    dims.insert(dims.end(), {{floor_mod(depth, step), "wi"}, {floor_mod(channel, block), "wl"}});
    s_.pack(m_.acc, Factor::right, "w", m_.weights.defined() ? kConstantScope : "global", dims);
  }

  // Makes a loop of the channels of a step, inside the taps.
  void cut_channels() {
    const int64_t step = out_.problem.step;
    out_.channels = m_.channels;
    if (step > 1) {
      const auto cut = s_.split(m_.channels, step, Tail::guard, m_.channels.name(), "rl");
      out_.channels = cut.outer, out_.channel_lanes = cut.inner;
    }
    Loops order = {out_.channels};
    order.insert(order.end(), m_.taps.begin(), m_.taps.end());
    order.push_back(out_.channel_lanes);
    s_.reorder(order);
  }

  ScheduleBuilder& s_;
  const ConvStages& m_;
  WindowStages out_;
};

}  // namespace

WindowStages arrange_in_windows(ScheduleBuilder& s, const ConvStages& m,
                                const WindowStages& stages) {
  return WindowArrangement(s, m, stages).run();
}

}  // namespace tw
