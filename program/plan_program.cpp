#include "program/plan_program.h"

#include <algorithm>

#include "ir/size_ends.h"
#include "program/bind_weights.h"
#include "program/in_place.h"
#include "program/region_calls.h"
#include "program/sizes.h"

namespace tw {
namespace {

// Plans the calls of one graph; the regions inside it are planned before.
class CallPlanner {
 public:
  // `program` has the kernels, the weights with their offsets, and the regions that are planned.
  CallPlanner(LoweredCalls lowered, Program& program, const Target& target)
      : lowered_(std::move(lowered)), program_(program), target_(target) {}

  Expected<PlannedProgram> run() {
    TW_TRY(add_region_calls());
    add_buffers();
    keep_what_is_sent();
    join_in_place(calls(), program_.kernels, lifetimes_);
    growable_ = plan_growable(lifetimes_, lowered_.symbols, program_.growable_buffers, calls());
    TW_TRY(count_bytes());
    offsets_.resize(lifetimes_.size());
    for (int device = 0; device <= static_cast<int>(target_.devices.size()); ++device)
      plan_arena(device);
    for (KernelCall& call : calls().calls)
      for (size_t a = 0; a < call.arguments.size(); ++a)
        settle(call.arguments[a], a == 0 ? call.from : call.device);
    for (SizeStep& step : calls().steps)
      if (step.kind == SizeStep::Kind::read || step.kind == SizeStep::Kind::within)
        settle(step.at, 0);
    for (auto [call, buffer] : workspaces_) place_workspace(calls().calls[call], buffer);
    result_.program = std::move(calls());
    return std::move(result_);
  }

 private:
  Program& calls() { return lowered_.program; }

  Error add_region_calls() {
    for (const LoweredRegions& regions : lowered_.regions) {
      KernelCall& call = calls().calls[regions.call];
      TW_ASSIGN(RegionLayout layout, lay_out_regions(*lowered_.graph, regions, *call.function,
                                                     program_.regions, target_.devices.size()));
      layout.call.workspaces.assign(target_.devices.size(), 0);
      set_region(call, std::move(layout.call));
      region_workspaces_[regions.call] = std::move(layout.workspaces);
    }
    return Error::success();
  }

  static void set_region(KernelCall& call, RegionCall region) {
    ExternCall function = *call.function;
    function.region = std::make_shared<const RegionCall>(std::move(region));
    call.function = std::make_shared<const ExternCall>(std::move(function));
  }

  // `buffer` is the number of a lifetime.
  void place_workspace(KernelCall& call, size_t buffer) {
    const int device = devices_[buffer];
    TW_CHECK(device == 0 || growable_[buffer] < 0, "a device has no memory that grows");
    if (call.function && device != 0) {
      RegionCall region = *call.function->region;
      region.workspaces[static_cast<size_t>(device) - 1] = offsets_[buffer];
      return set_region(call, std::move(region));
    }
    call.workspace = growable_[buffer] < 0 ? offsets_[buffer] : Expr(0);
    call.workspace_buffer = growable_[buffer];
  }

  Expr workspace_bytes(size_t number, int device) const {
    const KernelCall& call = lowered_.program.calls[number];
    if (call.function) return region_workspaces_.at(number)[static_cast<size_t>(device)];
    const Target& place = call.device ? target_.devices[static_cast<size_t>(call.device) - 1]
                                      : target_;
    return workspace_layout(program_.kernels[static_cast<size_t>(call.kernel)], place.cores).bytes;
  }

  // Collects the lifetimes of values and of workspaces that are not empty, and renumbers operands
  // accordingly.
  void add_buffers() {
    std::vector<LoweredBuffer>& buffers = lowered_.buffers;
    std::vector<bool> empty(buffers.size());
    for (auto [call, buffer] : lowered_.workspaces) {
      buffers[buffer].lifetime.bytes = workspace_bytes(call, buffers[buffer].device);
      empty[buffer] = is_const(buffers[buffer].lifetime.bytes, 0);
    }
    std::vector<int> numbers(buffers.size(), -1);
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (empty[b]) continue;
      numbers[b] = static_cast<int>(lifetimes_.size());
      Lifetime lifetime = buffers[b].lifetime;
      // Nobody checks sizes in a branch that is not taken, so they may be negative.
      if (lowered_.in_region && !can_prove(le(Expr(0), lifetime.bytes), lowered_.symbols))
        lifetime.bytes = max(lifetime.bytes, Expr(0));
      lifetimes_.push_back(std::move(lifetime));
      devices_.push_back(buffers[b].device);
    }
    for (auto [call, buffer] : lowered_.workspaces)
      if (!empty[buffer]) workspaces_.emplace_back(call, static_cast<size_t>(numbers[buffer]));
    for (const Lifetime& lifetime : lifetimes_)
      calls().naive_arena_bytes += static_cast<uint64_t>(
          eval_int(lifetime.bytes, [](std::string_view) { return int64_t{1}; }));
    const auto renumber = [&](Operand& operand) {
      if (operand.place == Place::arena)
        operand.index = numbers[static_cast<size_t>(operand.index)];
    };
    for (KernelCall& call : calls().calls)
      for (Operand& operand : call.arguments) renumber(operand);
    for (SizeStep& step : calls().steps)
      if (step.kind == SizeStep::Kind::read || step.kind == SizeStep::Kind::within)
        renumber(step.at);
  }

  // Checks that the bytes of all buffers in arenas together can be counted (kMostCounted).
  Error count_bytes() const {
    int64_t total = 0, most = -1;
    size_t largest = 0;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (growable_[i] >= 0) continue;
      const std::optional<Bounds> ends = size_ends(lifetimes_[i].bytes, lowered_.symbols);
      const int64_t bytes = ends ? std::max<int64_t>(ends->max.value_or(0), 0) : kMostCounted;
      if (bytes > most) most = bytes, largest = i;
      total += bytes;
      if (!ends || total > kMostCounted) return too_many_bytes(largest);
    }
    return Error::success();
  }

  Error too_many_bytes(size_t lifetime) const {
    const auto of_it = [&](const Operand& operand) {
      return operand.place == Place::arena && operand.index == static_cast<int>(lifetime);
    };
    const auto user = std::ranges::find_if(lowered_.program.calls, [&](const KernelCall& call) {
      return std::ranges::any_of(call.arguments, of_it);
    });
    const bool found = user != lowered_.program.calls.end();
    return make_error(DiagCode::limit,
                      "the values between the operators need more than 2^61 bytes together; one of "
                      "{0} needs {1}",
                      found ? "'" + user->name + "'" : "a kernel's own",
                      to_string(lifetimes_[lifetime].bytes));
  }

  // Keeps a buffer alive that is sent to a device until the processor waits for the device: for a
  // transfer back, or for the end of the run.
  void keep_what_is_sent() {
    const std::vector<KernelCall>& list = calls().calls;
    for (size_t c = 0; c < list.size(); ++c) {
      const Operand& sent = list[c].arguments.empty() ? Operand() : list[c].arguments[0];
      if (!list[c].is_transfer() || list[c].from != 0 || sent.place != Place::arena) continue;
      size_t wait = c + 1;
      while (wait < list.size() && !(list[wait].is_transfer() && list[wait].from == list[c].device))
        ++wait;
      int& last = lifetimes_[static_cast<size_t>(sent.index)].last;
      last = std::max(last, static_cast<int>(std::min(wait, list.size() - 1)));
    }
  }

  void plan_arena(int device) {
    std::vector<size_t> own;
    std::vector<Lifetime> lifetimes;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (devices_[i] != device || growable_[i] >= 0) continue;
      own.push_back(i);
      lifetimes.push_back(lifetimes_[i]);
    }
    MemoryPlan memory = plan_memory(lifetimes, lowered_.symbols);
    for (size_t i = 0; i < own.size(); ++i) offsets_[own[i]] = memory.offsets[i];
    if (device != 0) {
      calls().devices[static_cast<size_t>(device) - 1].arena_bytes = memory.bytes;
      return;
    }
    calls().arena_bytes = memory.bytes;
    if (!calls().symbols.empty())
      calls().max_arena_bytes = most_bytes(memory.bytes, calls().symbols, lowered_.symbols);
    result_.arena = std::move(memory);
    result_.buffers = std::move(lifetimes);
  }

  // Replaces the number of a lifetime or of a weight piece by its place.
  void settle(Operand& operand, int device) const {
    const auto index = static_cast<size_t>(operand.index);
    if (operand.place == Place::arena && growable_[index] >= 0)
      operand = {Place::growable, growable_[index], operand.offset};
    else if (operand.place == Place::arena)
      operand = {Place::arena, 0, simplify_dim(offsets_[index] + operand.offset)};
    else if (operand.place == Place::weights)
      operand = {Place::weights, 0, simplify_dim(weight_offset(index, device) + operand.offset)};
  }

  // The piece's offset in the device's part of the weights.
  Expr weight_offset(size_t piece, int device) const {
    const uint64_t begin = device ? program_.devices[static_cast<size_t>(device) - 1].weights_offset
                                  : 0;
    return static_cast<int64_t>(program_.weights[piece].offset - begin);
  }

  LoweredCalls lowered_;
  Program& program_;
  const Target& target_;
  PlannedProgram result_;
  std::map<size_t, std::vector<Expr>> region_workspaces_;  // by call, then by place: bytes
  std::vector<std::pair<size_t, size_t>> workspaces_;      // call, lifetime
  std::vector<Lifetime> lifetimes_;
  std::vector<int> devices_;   // by lifetime
  std::vector<int> growable_;  // by lifetime: a growable buffer; -1: in the arena
  std::vector<Expr> offsets_;
};

// Places the weights of a device in the order of their first use, in one stretch.
void plan_weights(Program& program, int device, const std::vector<int>& devices) {
  const uint64_t begin = program.weight_bytes;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    if (devices[i] != device) continue;
    program.weights[i].offset = program.weight_bytes;
    program.weight_bytes += (program.weights[i].size + 63) / 64 * 64;
  }
  if (device == 0) return;
  DeviceProgram& own = program.devices[static_cast<size_t>(device) - 1];
  own.weights_offset = begin;
  own.weight_bytes = program.weight_bytes - begin;
}

}  // namespace

Expected<PlannedProgram> plan_program(LoweredProgram lowered, std::vector<RunKernel> scheduled,
                                      const Target& target) {
  Program whole;  // parts that all graphs of the model share
  whole.kernels = bind_weights(lowered, std::move(scheduled));
  for (size_t k = 0; k < lowered.kernels.size(); ++k) {
    Work work = count_work(lowered.kernels[k].lowered.kernel);
    work.weight_bytes = count_work(whole.kernels[k]).weight_bytes;  // as they are packed
    whole.work.push_back(std::move(work));
  }
  whole.weights = std::move(lowered.weights);
  whole.devices.resize(target.devices.size());
  for (int device = 0; device <= static_cast<int>(target.devices.size()); ++device)
    plan_weights(whole, device, lowered.weight_devices);
  for (LoweredCalls& region : lowered.regions) {
    TW_ASSIGN(PlannedProgram planned, CallPlanner(std::move(region), whole, target).run());
    whole.regions.push_back(std::move(planned.program));
  }
  TW_ASSIGN(PlannedProgram main, CallPlanner(std::move(lowered.main), whole, target).run());
  Program& program = main.program;
  program.kernels = std::move(whole.kernels);
  program.work = std::move(whole.work);
  program.weights = std::move(whole.weights);
  program.weight_bytes = whole.weight_bytes;
  program.regions = std::move(whole.regions);
  program.growable_buffers = whole.growable_buffers;
  for (size_t d = 0; d < program.devices.size(); ++d) {
    program.devices[d].weights_offset = whole.devices[d].weights_offset;
    program.devices[d].weight_bytes = whole.devices[d].weight_bytes;
  }
  return main;
}

}  // namespace tw
