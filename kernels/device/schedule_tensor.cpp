// Tensor instructions between memories of their own: tiles of the sums
// (kernels/device/tensor_form.h) one after the other, the input's windows and the weights copied
// into the operand memories, sums in steps over the input channels. Loads, products and stores are
// parts of their own; virtual threads share the tiles of one axis, so that one loads while the
// other computes. Weights of all input channels at once stay for all tiles of an image.
#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/tensor_form.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

class TensorSpace {
 public:
  TensorSpace(ScheduleBuilder s, const TensorInstruction& instruction, const TensorSums& sums,
              const TensorTile& tile)
      : s_(std::move(s)), instruction_(instruction), sums_(sums), tile_(tile) {
    const std::string& input = s_.kernel().buffer(sums.left->buffer).name;
    for (const Stage& stage : s_.stages()) {
      if (stage.label() == sums.acc->label) acc_ = stage;
      if (stage.label() == sums.y->label) y_ = stage;
      if (stage.buffer().name() == input) pad_ = stage;
    }
  }

  Expected<Schedule> run() {
    tile_result();
    s_.compute_at(acc_, at_);
    sums_.problem.weights ? products() : maxima();
    s_.set_scope(pad_, instruction_.left);
    s_.set_scope(acc_, instruction_.sums);
    s_.tensorize(lane_, instruction_.intrinsic->name, "tensor");
    if (tile_.threads > 1) s_.virtual_thread(threads_);
    Stages loads = {pad_};
    if (weights_.defined()) loads.push_back(weights_);
    s_.roles(first_, 1, {{"load", loads}, {"compute", {s_.init_of(acc_), acc_}}, {"store", {y_}}});
    return s_.finish();
  }

 private:
  using Cut = ScheduleBuilder::Cut;

  // y's loops: tiles of channels and of each spatial axis, then what is inside of one.
  void tile_result() {
    Loops loops;
    for (const Expr& index : sums_.y->indices) loops.push_back(s_.loop_of(index->name));
    Loop lane = loops.back(), channel = loops[1];
    if (!sums_.blocked) {
      const Cut cut = s_.split(channel, instruction_.lanes, Tail::guard, "ycb", "yln");
      channel = cut.outer, lane = cut.inner;
    }
    const Cut channels = s_.split(channel, tile_.blocks, Tail::guard, "ytc", "yic");
    first_ = channels.outer;
    Loops tiles = {channels.outer}, inner = {channels.inner}, outer = tiles;
    if (sums_.blocked) outer.push_back(loops[0]);
    for (size_t d = 0; d < sums_.spatial.size(); ++d) {
      const std::string axis = std::to_string(d);
      const Cut cut = s_.split(loops[sums_.blocked ? d + 2 : 0], tile_.rows[d], Tail::guard,
                               "yt" + axis, "yi" + axis);
      tiles.push_back(cut.outer);
      outer.push_back(cut.outer), inner.push_back(cut.inner);
    }
    if (tile_.threads > 1) {
      const Loop& shared = tiles[static_cast<size_t>(tile_.split)];
      const Cut cut = s_.split(shared, s_.extent(shared).value_or(1) / tile_.threads, Tail::guard,
                               "vt", shared.name() + "vt");
      threads_ = cut.outer;
      std::ranges::replace(outer, shared, cut.inner);
      if (tile_.split == 0) first_ = cut.inner;
      outer.insert(outer.begin(), threads_);
    }
    at_ = outer.back();
    inner.push_back(lane);
    outer.insert(outer.end(), inner.begin(), inner.end());
    s_.reorder(outer);
  }

  Loop of_acc(const std::string& variable) const { return s_.moved(acc_, s_.loop_of(variable)); }

  // The sums of a tile in steps of some input channels, each step with its operands' copies.
  void products() {
    const BufferName packed = s_.name_of(sums_.right->buffer);
    weights_ = s_.cache_read(packed, acc_, "wgt", instruction_.right);
    Cut channel{of_acc(sums_.channel), {}}, depth{s_.loop_of(sums_.depth), {}};
    if (sums_.blocked) {
      channel.inner = of_acc(sums_.lane), depth.inner = s_.loop_of(sums_.depth_lane);
    } else {
      channel = s_.split(channel.outer, instruction_.lanes, Tail::guard, "acc_cb", "acc_ln");
      depth = s_.split(depth.outer, instruction_.lanes, Tail::guard, "kb", "kl");
    }
    const Cut steps = s_.split(depth.outer, tile_.depth, Tail::guard, "rstep", "rin");
    Loops order = {steps.outer, channel.outer};
    for (const std::string& variable : sums_.spatial) order.push_back(of_acc(variable));
    order.push_back(steps.inner);
    for (const Loop& tap : taps()) order.push_back(tap);
    order.insert(order.end(), {channel.inner, depth.inner});
    s_.reorder(order);
    s_.compute_at(pad_, steps.outer);
    s_.compute_at(weights_, tile_.depth == sums_.problem.depth ? first_ : steps.outer);
    s_.decompose(acc_, steps.outer);
    lane_ = channel.inner;
  }

  void maxima() {
    Loops order = taps();
    const Loop outer = order.front();
    order.push_back(of_acc(sums_.channel));
    for (const std::string& variable : sums_.spatial) order.push_back(of_acc(variable));
    lane_ = of_acc(sums_.lane);
    order.push_back(lane_);
    s_.reorder(order);
    s_.compute_at(pad_, at_);
    s_.decompose(acc_, outer);
  }

  Loops taps() const {
    Loops taps;
    for (const std::string& variable : sums_.taps)
      if (!variable.empty()) taps.push_back(s_.loop_of(variable));
    return taps;
  }

  ScheduleBuilder s_;
  const TensorInstruction& instruction_;
  const TensorSums& sums_;
  TensorTile tile_;
  Stage pad_, acc_, y_;  // the padded input, the sums, the output
  Stage weights_;        // their copy
  // The innermost loop of tiles, the instruction's loop, the loop of channel tiles, virtual threads
  Loop at_, lane_, first_, threads_;
};

// The usual tile, or a point's: knob "tile", of virtual threads, the axis that they share, blocks,
// depth and rows.
TensorTile choose_tile(const ScheduleBuilder& s, const TensorProblem& problem,
                       const TensorInstruction& instruction, const TensorTile& usual) {
  constexpr size_t kBest = 256, kMany = 4096;  // of the tiles, with rules and without
  const auto numbers = [](const TensorTile& tile) {
    std::vector<int64_t> all = {tile.threads, tile.split, tile.blocks, tile.depth};
    all.insert(all.end(), tile.rows.begin(), tile.rows.end());
    return all;
  };
  const std::vector<int64_t> chosen = s.choose("tile", [&] {
    std::vector<std::vector<int64_t>> values = {numbers(usual)};
    if (s.open())
      for (const TensorTile& tile :
           tensor_tiles(problem, instruction, s.target(), s.rules() ? kBest : kMany))
        values.push_back(numbers(tile));
    return values;
  });
  return {chosen[0],
          chosen[2],
          chosen[3],
          {chosen.begin() + 4, chosen.end()},
          static_cast<int>(chosen[1])};
}

}  // namespace

Expected<Schedule> tensor_schedule(const Kernel& kernel, const Target& target, Choices* choices) {
  const ScheduleBuilder s(kernel, target, choices);
  for (const bool weights : {true, false}) {
    const std::optional<TensorInstruction> instruction = tensor_instruction(target, weights);
    if (!instruction) continue;
    const std::optional<TensorSums> sums = tensor_sums(kernel, instruction->lanes);
    if (!sums || sums->problem.weights != weights) continue;
    if (kernel.buffer(sums->left->buffer).role != BufferRole::temp) continue;  // not in the form
    const std::optional<TensorTile> tile = tensor_tile(sums->problem, *instruction, target);
    if (tile)
      return TensorSpace(s, *instruction, *sums, choose_tile(s, sums->problem, *instruction, *tile))
          .run();
  }
  return Schedule{};
}

}  // namespace tw
