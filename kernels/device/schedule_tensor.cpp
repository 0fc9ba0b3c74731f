// Tensor instructions between memories of their own: tiles of the sums
// (kernels/device/tensor_form.h) one after the other, the input's windows and the weights copied
// into the operand memories, sums in steps over the input channels. Loads, products and stores are
// parts of their own; virtual threads share the tiles of one axis, so that one loads while the
// other computes. Weights of all input channels at once stay for all tiles of an image.
#include <algorithm>

#include "kernels/default_schedule.h"
#include "kernels/device/tensor_form.h"
#include "kernels/families.h"

namespace tw {
namespace {

class TensorSpace {
 public:
  TensorSpace(ScheduleBuilder s, const TensorInstruction& instruction, const TensorSums& sums,
              const TensorTile& tile)
      : s_(std::move(s)), instruction_(instruction), sums_(sums), tile_(tile) {}

  Expected<Schedule> run() {
    tile_result();
    s_.compute_at("acc", at_);
    sums_.problem.weights ? products() : maxima();
    s_.set_scope("xp", instruction_.left);
    s_.set_scope(s_.kernel().buffer(sums_.acc->buffer).name, instruction_.sums);
    s_.tensorize(lane_, instruction_.intrinsic->name, "tensor");
    if (tile_.threads > 1) s_.virtual_thread("vt");
    std::vector<std::string> loads = {"pad"}, sums = {"acc.init", "acc"};
    if (sums_.problem.weights) loads.push_back("wgt");
    s_.roles(first_, 1, {{"load", loads}, {"compute", sums}, {"store", {sums_.y->label}}});
    return s_.finish();
  }

 private:
  // y's loops: tiles of channels and of each spatial axis, then what is inside of one.
  void tile_result() {
    std::vector<std::string> loops, outer, inner;
    for (const Expr& index : sums_.y->indices) loops.push_back(index->name);
    const auto spatial = [&](size_t d) { return loops[sums_.blocked ? d + 2 : 0]; };
    std::string lane = loops.back(), channel = loops[1];
    if (!sums_.blocked) {
      s_.split(channel, instruction_.lanes, Tail::guard, "ycb", "yln");
      channel = "ycb", lane = "yln";
    }
    s_.split(channel, tile_.blocks, Tail::guard, "ytc", "yic");
    outer = {"ytc"}, inner = {"yic"};
    if (sums_.blocked) outer.push_back(loops[0]);
    for (size_t d = 0; d < sums_.spatial.size(); ++d) {
      const std::string t = "yt" + std::to_string(d), i = "yi" + std::to_string(d);
      s_.split(spatial(d), tile_.rows[d], Tail::guard, t, i);
      outer.push_back(t), inner.push_back(i);
    }
    if (tile_.threads > 1) {
      const std::string shared = tile_.split == 0 ? "ytc" : "yt" + std::to_string(tile_.split - 1),
                        own = shared + "vt";
      s_.split(shared, s_.extent(shared).value_or(1) / tile_.threads, Tail::guard, "vt", own);
      std::ranges::replace(outer, shared, own);
      if (tile_.split == 0) first_ = own;
      outer.insert(outer.begin(), "vt");
    }
    at_ = outer.back();
    inner.push_back(lane);
    outer.insert(outer.end(), inner.begin(), inner.end());
    s_.reorder(outer);
  }

  std::string of_acc(const std::string& loop) const { return "acc_" + loop; }

  // The sums of a tile in steps of some input channels, each step with its operands' copies.
  void products() {
    const std::string weights = s_.kernel().buffer(sums_.right->buffer).name;
    s_.cache_read(weights, "acc", "wgt", instruction_.right);
    std::string lane = of_acc(sums_.lane), channel = of_acc(sums_.channel), depth = sums_.depth,
                depth_lane = sums_.depth_lane;
    if (!sums_.blocked) {
      s_.split(of_acc(sums_.channel), instruction_.lanes, Tail::guard, "acc_cb", "acc_ln");
      s_.split(sums_.depth, instruction_.lanes, Tail::guard, "kb", "kl");
      channel = "acc_cb", lane = "acc_ln", depth = "kb", depth_lane = "kl";
    }
    s_.split(depth, tile_.depth, Tail::guard, "rstep", "rin");
    std::vector<std::string> order = {"rstep", channel};
    for (const std::string& loop : sums_.spatial) order.push_back(of_acc(loop));
    order.push_back("rin");
    order.insert(order.end(), sums_.taps.begin(), sums_.taps.end());
    order.push_back(lane), order.push_back(depth_lane);
    s_.reorder(order);
    s_.compute_at("pad", "rstep");
    s_.compute_at("wgt", tile_.depth == sums_.problem.depth ? first_ : "rstep");
    s_.decompose("acc", "rstep");
    lane_ = lane;
  }

  void maxima() {
    std::vector<std::string> order = sums_.taps;
    std::erase(order, "");
    const std::string outer = order.front();
    order.push_back(of_acc(sums_.channel));
    for (const std::string& loop : sums_.spatial) order.push_back(of_acc(loop));
    order.push_back(of_acc(sums_.lane));
    s_.reorder(order);
    s_.compute_at("pad", at_);
    s_.decompose("acc", outer);
    lane_ = of_acc(sums_.lane);
  }

  ScheduleBuilder s_;
  const TensorInstruction& instruction_;
  const TensorSums& sums_;
  TensorTile tile_;
  // The innermost loop of tiles, the instruction's loop, the loop of channel tiles
  std::string at_, lane_, first_ = "ytc";
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
    if (!instruction || !kernel.find_buffer("xp")) continue;
    const std::optional<TensorSums> sums = tensor_sums(kernel, instruction->lanes);
    if (!sums || sums->problem.weights != weights) continue;
    const std::optional<TensorTile> tile = tensor_tile(sums->problem, *instruction, target);
    if (tile)
      return TensorSpace(s, *instruction, *sums, choose_tile(s, sums->problem, *instruction, *tile))
          .run();
  }
  return Schedule{};
}

}  // namespace tw
