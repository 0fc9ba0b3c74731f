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
    switch (s->kind) {
      case StmtKind::sequence:
        for (const Stmt& child : s->body) add(child);
        return;
      case StmtKind::loop: return add_loop(*s);
      case StmtKind::store: return add_store(*s);
      case StmtKind::if_then: {
        const size_t at = emit({.op = Op::branch, .expr = machine_.compile(s->condition)});
        add(s->body[0]);
        out_.code[at].target = here();
        return;
      }
      case StmtKind::block: return add_block(*s);
      case StmtKind::prefetch: return;
      case StmtKind::roles: return add_roles(*s);
      case StmtKind::barrier: emit({.op = Op::barrier, .slot = machine_.add_slot(s->var)}); return;
      case StmtKind::signal:
      case StmtKind::wait: {
        Instruction i{.op = s->kind == StmtKind::signal ? Op::signal : Op::wait,
                      .flag = s->async,
                      .count = s->count};
        while (kernel_.queues[static_cast<size_t>(i.slot)].name != s->label) ++i.slot;
        for (const Expr& index : s->indices) i.indices.push_back(machine_.compile(index));
        emit(std::move(i));
        return;
      }
    }
    TW_UNREACHABLE("bad statement");
  }

  void add_block(const StmtNode& s) {
    const Intrinsic* intrinsic = target_ && !s.names.empty() ? target_->find_intrinsic(s.names[0])
                                                             : nullptr;
    pairs_ = intrinsic ? intrinsic->pairs : PairRule::in_order;
    add(s.body[0]);
    pairs_ = PairRule::in_order;
  }

  // An even number of products at a time, of floats.
  bool makes_pairs(const StmtNode& s) const {
    const auto depth = reduce_extents_.empty() ? std::nullopt : as_const(reduce_extents_.back());
    return depth && *depth % 2 == 0 && s.combiner == Combiner::add &&
           s.value->kind == ExprKind::binary && s.value->binary == BinaryOp::mul &&
           s.value->type == DType::f32;
  }

  void add_loop(const StmtNode& s) {
    const Code extent = machine_.compile(s.extent);
    const int slot = machine_.add_slot(s.var);
    if (s.role == AxisRole::reduce) {
      reduce_slots_.push_back(slot);
      reduce_extents_.push_back(s.extent);
    }
    if (is_concurrent(s.loop_kind)) {
      out_.concurrent = true;
      const size_t fork = emit({.op = Op::fork_loop,
                                .slot = slot,
                                .expr = extent,
                                .names = {s.var},
                                .flag = s.loop_kind == LoopKind::bind});
      add(s.body[0]);
      emit({.op = Op::end});
      out_.code[fork].target = here();
    } else {
      const size_t begin = emit({.op = Op::loop, .slot = slot, .expr = extent});
      add(s.body[0]);
      emit({.op = Op::next, .slot = slot, .target = begin + 1});
      out_.code[begin].target = here();
    }
    if (s.role == AxisRole::reduce) {
      reduce_slots_.pop_back();
      reduce_extents_.pop_back();
    }
  }

  void add_roles(const StmtNode& s) {
    out_.concurrent = true;
    const size_t fork = emit({.op = Op::fork_roles, .names = s.names});
    for (const Stmt& role : s.body) {
      out_.code[fork].starts.push_back(here());
      add(role);
      emit({.op = Op::end});
    }
    out_.code[fork].target = here();
  }

  void add_store(const StmtNode& s) {
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
  PairRule pairs_ = PairRule::in_order;  // of the block around
};

}  // namespace

Flat flatten(const Kernel& kernel, Machine& machine, const Target* target) {
  return Flattener(kernel, machine, target).run();
}

}  // namespace tw::interpreter
