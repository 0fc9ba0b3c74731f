// Schedules for tensor instructions between memories of their own. The tiles of the sums
// (kernels/device/tensor_form.h) follow one another. The input's windows and the weights are copied
// into the operand memories, and sums are made in steps over the input channels. Loads, products
// and stores run as separate parts. Virtual threads share the tiles of one axis, so one loads while
// the other computes. If the weights of all input channels fit at once, they stay for all tiles of
// an image.
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
    const std::string& input = s_.kernel().buffer(sums.left.buffer).name;
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
    s_.roles(first_, tile_.slots,
             {{"load", loads}, {"compute", {s_.init_of(acc_), acc_}}, {"store", {y_}}});
    alternate_slots();
    return s_.finish();
  }

 private:
  using Cut = ScheduleBuilder::Cut;

  // Places the slots of the sums alternately in two halves of their memory, which may be banks: one
  // is stored while the next is computed.
  void alternate_slots() {
    const Buffer* sums = s_.find(acc_.buffer());
    if (tile_.slots < 3 || !sums || as_const(sums->shape.front()).value_or(1) < 3) return;
    s_.layout(acc_.buffer(), [](const std::vector<Expr>& at) {
      std::vector<Expr> place = at;
      place[0] = floor_div(at[0], Expr(2));
      place.insert(place.begin(), floor_mod(at[0], Expr(2)));
      return place;
    });
  }

  // Cuts y's loops into tiles of channels and of each spatial axis.
  void tile_result() {
    Loops loops;
    for (const Expr& index : sums_.y->indices)
      loops.push_back(s_.loop_of(as<expr::Var>(index)->name));
    Loop lane = loops.back(), channel = loops[1];
    if (!sums_.blocked) {
      const Cut cut = s_.split(channel, instruction_.lanes, Tail::guard, "ycb", "yln");
      channel = cut.outer, lane = cut.inner;
    }
    const Cut channels = s_.split(channel, tile_.blocks, Tail::guard, "ytc", "yic");
    Loops tiles = {channels.outer}, inner = {channels.inner}, outer;
    if (!tile_.input_stays) outer.push_back(channels.outer);
    if (sums_.blocked) outer.push_back(loops[0]);
    for (size_t d = 0; d < sums_.spatial.size(); ++d) {
      const std::string axis = std::to_string(d);
      const Cut cut = s_.split(loops[sums_.blocked ? d + 2 : 0], tile_.rows[d], Tail::guard,
                               "yt" + axis, "yi" + axis);
      tiles.push_back(cut.outer);
      outer.push_back(cut.outer), inner.push_back(cut.inner);
    }
    channels_ = channels.outer;
    if (tile_.threads > 1) {
      const Loop& shared = tiles[static_cast<size_t>(tile_.split)];
      const Cut cut = s_.split(shared, s_.extent(shared).value_or(1) / tile_.threads, Tail::guard,
                               "vt", shared.name() + "vt");
      threads_ = cut.outer;
      std::ranges::replace(outer, shared, cut.inner);
      if (tile_.split == 0) channels_ = cut.inner;
    }
    if (tile_.input_stays) outer.push_back(channels_);
    first_ = outer.front(), at_ = outer.back();
    spatial_ = tile_.input_stays ? outer[outer.size() - 2] : at_;
    if (threads_.defined()) outer.insert(outer.begin(), threads_);
    inner.push_back(lane);
    outer.insert(outer.end(), inner.begin(), inner.end());
    s_.reorder(outer);
  }

  Loop of_acc(const std::string& variable) const { return s_.moved(acc_, s_.loop_of(variable)); }

  // Makes a tile's sums in steps of some input channels. Each step has the copies of its operands.
  void products() {
    const BufferName packed = s_.name_of(sums_.right.buffer);
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
    const bool all = tile_.depth == sums_.problem.depth;
    s_.compute_at(pad_, tile_.input_stays ? spatial_ : steps.outer);
    s_.compute_at(weights_, all ? channels_ : steps.outer);
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
  Stage weights_;        // the copy of the weights
  // Loops over tiles: the outermost, the innermost, the one over channels, the innermost spatial
  // one
  Loop first_, at_, channels_, spatial_;
  Loop lane_, threads_;  // the instruction's lanes, virtual threads
};

// The default tile, or that of a point: knobs "threads", "slots" (between the parts),
// "input_stays", "blocks" (of channels), "depth" (of a step) and "rows" (of each spatial axis).
TensorTile choose_tile(ScheduleBuilder& s, const TensorProblem& problem,
                       const TensorInstruction& instruction, const TensorTile& usual) {
  constexpr int64_t kMostSlots = 4;
  TensorTile tile;
  tile.threads = s.choose("threads", usual.threads,
                          counted(1, std::max(1, s.target().virtual_threads)));
  tile.slots = s.choose("slots", usual.slots, counted(1, kMostSlots));
  tile.input_stays = s.choose_switch("input_stays", usual.input_stays);
  tile.blocks = s.choose("blocks", usual.blocks, divisors(problem.blocks, problem.blocks));
  tile.depth = s.choose("depth", usual.depth, divisors(problem.depth, problem.depth));
  for (size_t d = 0; d < problem.out.size(); ++d) {
    const int64_t extent = problem.out[d];
    std::vector<int64_t> others;
    for (const int64_t rows : counted(1, extent))
      if ((extent + rows - 1) / rows * rows <= most_rows(extent)) others.push_back(rows);
    tile.rows.push_back(s.choose("rows_" + std::to_string(d), usual.rows[d], others));
  }
  if (!complete_tile(tile, problem, instruction, s.target()))
    s.fail("the tile does not fit the device's memories, or has no tiles for the virtual threads");
  if (tile.input_stays && (!problem.weights || tile.depth != problem.depth))
    s.fail("only the input of all channels can stay");
  return tile;
}

}  // namespace

Expected<Schedule> tensor_schedule(const Kernel& kernel, const Target& target, Choices* choices) {
  ScheduleBuilder s(kernel, target, choices);
  for (const bool weights : {true, false}) {
    const std::optional<TensorInstruction> instruction = tensor_instruction(target, weights);
    if (!instruction) continue;
    const std::optional<TensorSums> sums = tensor_sums(kernel, instruction->lanes);
    if (!sums || sums->problem.weights != weights) continue;
    // The kernel is not in the form
    if (kernel.buffer(sums->left.buffer).role != BufferRole::temp) continue;
    const std::optional<TensorTile> tile = tensor_tile(sums->problem, *instruction, target);
    if (!tile) continue;
    const TensorTile chosen = choose_tile(s, sums->problem, *instruction, *tile);
    return s.sound() ? TensorSpace(s, *instruction, *sums, chosen).run() : s.finish();
  }
  return Schedule{};
}

}  // namespace tw
