#include "ir/kernel/flat.h"

#include <algorithm>

namespace tw::interpreter {
namespace {

class Flattener {
 public:
  Flattener(const Kernel& kernel, Machine& machine, const Target* target)
      : kernel_(kernel), machine_(machine), target_(target) {}

  Flat run() {
    add(kernel_.body);
    emit({.op = Op::end});
    return std::move(out_);
  }

 private:
  size_t here() const { return out_.code.size(); }
  size_t emit(Instruction i) {
    out_.code.push_back(std::move(i));
    return here() - 1;
  }

  void add(const Stmt& s) {
    match(s, [&](const auto& kind) { add_kind(kind); });
  }

  void add_kind(const stmt::Sequence& sequence) {
    for (const Stmt& child : sequence.body) add(child);
  }

  void add_kind(const stmt::If& guard) {
    const size_t at = emit({.op = Op::branch, .expr = machine_.compile(guard.condition)});
    add(guard.body);
    out_.code[at].target = here();
  }

  void add_kind(const stmt::Prefetch&) {}

  void add_kind(const stmt::Barrier& barrier) {
    emit({.op = Op::barrier, .slot = machine_.add_slot(barrier.loop)});
  }

  void add_kind(const stmt::Signal& signal) {
    add_token({.op = Op::signal, .flag = signal.async, .count = signal.count}, signal.queue,
              signal.index);
  }

  void add_kind(const stmt::Wait& wait) {
    add_token({.op = Op::wait, .count = wait.count}, wait.queue, wait.index);
  }

  void add_token(Instruction i, const std::string& queue, const Expr& index) {
    while (kernel_.queues[static_cast<size_t>(i.slot)].name != queue) ++i.slot;
    if (index.defined()) i.indices.push_back(machine_.compile(index));
    emit(std::move(i));
  }

  void add_kind(const stmt::Block& block) {
    const Intrinsic* intrinsic = target_ && !block.intrinsic.empty()
                                     ? target_->find_intrinsic(block.intrinsic)
                                     : nullptr;
    pairs_ = intrinsic ? intrinsic->pairs : PairRule::in_order;
    add(block.body);
    pairs_ = PairRule::in_order;
  }

  // True: the store sums f32 products, and the innermost reduction has an even extent.
  bool makes_pairs(const stmt::Store& s) const {
    const auto depth = reduce_extents_.empty() ? std::nullopt : as_const(reduce_extents_.back());
    return depth && *depth % 2 == 0 && s.combiner == Combiner::add &&
           as_binary(s.value, BinaryOp::mul) && s.value->type == DType::f32;
  }

  void add_kind(const stmt::Loop& s) {
    const Code extent = machine_.compile(s.extent);
    const int slot = machine_.add_slot(s.var);
    if (s.role == AxisRole::reduce) {
      reduce_slots_.push_back(slot);
      reduce_extents_.push_back(s.extent);
    }
    if (is_concurrent(s.kind)) {
      out_.concurrent = true;
      const size_t fork = emit({.op = Op::fork_loop,
                                .slot = slot,
                                .expr = extent,
                                .names = {s.var},
                                .flag = s.kind == LoopKind::bind});
      add(s.body);
      emit({.op = Op::end});
      out_.code[fork].target = here();
    } else {
      const size_t begin = emit({.op = Op::loop, .slot = slot, .expr = extent});
      add(s.body);
      emit({.op = Op::next, .slot = slot, .target = begin + 1});
      out_.code[begin].target = here();
    }
    if (s.role == AxisRole::reduce) {
      reduce_slots_.pop_back();
      reduce_extents_.pop_back();
    }
  }

  void add_kind(const stmt::Roles& s) {
    out_.concurrent = true;
    const size_t fork = emit({.op = Op::fork_roles, .names = s.names});
    for (const Stmt& role : s.parts) {
      out_.code[fork].starts.push_back(here());
      add(role);
      emit({.op = Op::end});
    }
    out_.code[fork].target = here();
  }

  void add_kind(const stmt::Store& s) {
    StoreCode n{.label = s.label,
                .buffer = s.buffer.index,
                .indices = {},
                .value = machine_.compile(s.value),
                .combiner = s.combiner,
                .is_float = is_float(kernel_.buffer(s.buffer).dtype),
                .async = s.async,
                .reduce_slots = reduce_slots_,
                .pairs = makes_pairs(s) ? pairs_ : PairRule::in_order};
    for (const Expr& index : s.indices) n.indices.push_back(machine_.compile(index));
    if ((n.has_where = s.where.defined())) n.where = machine_.compile(s.where);
    if ((n.has_init = s.init.defined())) n.init = machine_.compile(s.init);
    out_.concurrent |= s.async;
    emit({.op = Op::store, .slot = static_cast<int>(out_.stores.size())});
    out_.stores.push_back(std::move(n));
  }

  const Kernel& kernel_;
  Machine& machine_;
  const Target* target_;
  Flat out_;
  std::vector<int> reduce_slots_;
  std::vector<Expr> reduce_extents_;
  PairRule pairs_ = PairRule::in_order;  // rule of the block around
};

}  // namespace

Flat flatten(const Kernel& kernel, Machine& machine, const Target* target) {
  return Flattener(kernel, machine, target).run();
}

}  // namespace tw::interpreter
