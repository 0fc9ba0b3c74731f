#include "ir/schedule/intrinsic.h"

#include "ir/schedule/nest.h"

namespace tw {

using sched::illegal;

namespace {

struct Nest {
  std::vector<LoopRef> loops;
  StoreRef store;
};

Expected<Nest> nest_of(Stmt s, const char* whose) {
  Nest nest;
  for (; is<stmt::Loop>(s); s = nest.loops.back()->body) nest.loops.emplace_back(s);
  if (!is<stmt::Store>(s)) return illegal("{0} is no perfect nest around one store", whose);
  nest.store = StoreRef(s);
  return nest;
}

// The position in elements, over the axes from the last one with a non-constant extent on.
// Undefined: the indices in front of these move with one of the loops.
Expr flat_index(const Buffer& buffer, const std::vector<Expr>& indices,
                const std::vector<LoopRef>& loops, const Ranges& ranges) {
  size_t first = 0;
  for (size_t d = 1; d < indices.size(); ++d)
    if (!as_const(buffer.shape[d])) first = d;
  for (size_t d = 0; d < first; ++d) {
    const Expr index = simplify(indices[d], ranges);
    for (const LoopRef& loop : loops)
      if (uses_var(index, loop->var)) return Expr();
  }
  Expr flat = 0;
  for (size_t d = first; d < indices.size(); ++d)
    flat = (d > first ? flat * buffer.shape[d] : flat) + indices[d];
  return flat;
}

class Matcher {
 public:
  Matcher(const Intrinsic& intrinsic, const Kernel& semantics, const Kernel& kernel,
          const Ranges& ranges)
      : intrinsic_(intrinsic), instruction_(semantics), kernel_(kernel), ranges_(ranges) {}

  Expected<IntrinsicMatch> run(const Stmt& nest) {
    TW_ASSIGN(wanted_, nest_of(instruction_.body, "the instruction"));
    TW_ASSIGN(found_, nest_of(nest, "what stands there"));
    if (wanted_.loops.size() != found_.loops.size())
      return illegal("the instruction has {0} loops, the nest {1}", wanted_.loops.size(),
                     found_.loops.size());
    for (size_t i = 0; i < wanted_.loops.size(); ++i) {
      const stmt::Loop &w = *wanted_.loops[i], &f = *found_.loops[i];
      if (!equal(w.extent, f.extent) || w.role != f.role)
        return illegal("loop '{0}' has not the extent and role of the instruction's loop '{1}'",
                       f.var, w.var);
      if (f.kind != LoopKind::serial && f.kind != LoopKind::unroll)
        return illegal("loop '{0}' is {1}", f.var, loop_kind_name(f.kind));
      ranges_[f.var] = {Expr(0), simplify(f.extent - Expr(1))};
      ranges_[w.var] = ranges_[f.var];
    }
    const stmt::Store &w = *wanted_.store, &f = *found_.store;
    if (w.combiner != f.combiner)
      return illegal("stage '{0}' does not combine as the instruction does", f.label);
    if (f.where.defined() || f.init.defined() || f.async)
      return illegal(
          "stage '{0}' has a where or an init: decompose_reduction makes the init a stage",
          f.label);
    if (!bind(w.buffer, w.indices, f.buffer, f.indices))
      return illegal("stage '{0}' does not store as the instruction does", f.label);
    if (!unify(w.value, f.value))
      return illegal("stage '{0}' does not compute what the instruction does", f.label);
    return match_;
  }

 private:
  bool unify(const Expr& w, const Expr& f) {
    if (w->is.index() != f->is.index() || w->type != f->type) return false;
    return match(
        w, [&](const expr::Int&) { return equal(w, f); },
        [&](const expr::Float&) { return equal(w, f); },
        [&](const expr::Var&) { return equal(in_found_loops(w), f); },
        [&](const expr::Load& load) { return unify(load, *as<expr::Load>(f)); },
        [&](const expr::Unary& unary) { return unify(unary, *as<expr::Unary>(f)); },
        [&](const expr::Binary& binary) { return unify(binary, *as<expr::Binary>(f)); },
        [&](const expr::Select& select) { return unify(select, *as<expr::Select>(f)); },
        [&](const expr::Cast& cast) { return unify(cast, *as<expr::Cast>(f)); });
  }
  bool unify(const expr::Load& w, const expr::Load& f) {
    return bind(w.buffer, w.indices, f.buffer, f.indices);
  }
  bool unify(const expr::Unary& w, const expr::Unary& f) { return w.op == f.op && unify(w.a, f.a); }
  bool unify(const expr::Binary& w, const expr::Binary& f) {
    if (w.op != f.op) return false;
    const bool swaps = w.op == BinaryOp::add || w.op == BinaryOp::mul || w.op == BinaryOp::min ||
                       w.op == BinaryOp::max;
    const IntrinsicMatch before = match_;
    if (unify(w.a, f.a) && unify(w.b, f.b)) return true;
    match_ = before;
    if (swaps && unify(w.a, f.b) && unify(w.b, f.a)) return true;
    match_ = before;
    return false;
  }
  bool unify(const expr::Select& w, const expr::Select& f) {
    return unify(w.condition, f.condition) && unify(w.then, f.then) &&
           unify(w.otherwise, f.otherwise);
  }
  bool unify(const expr::Cast& w, const expr::Cast& f) {
    return w.saturate == f.saturate && unify(w.a, f.a);
  }

  Expr in_found_loops(Expr e) const {
    for (size_t i = 0; i < wanted_.loops.size(); ++i)
      e = substitute(e, wanted_.loops[i]->var, var(found_.loops[i]->var));
    return e;
  }

  // Matches an access with the operand's. It must lie at a fixed distance from the operand's place
  // for all values of the loops.
  bool bind(BufferId w, const std::vector<Expr>& w_at, BufferId f, const std::vector<Expr>& f_at) {
    const Buffer &operand = instruction_.buffer(w), &buffer = kernel_.buffer(f);
    if (operand.dtype != buffer.dtype) return false;
    const Expr wanted = flat_index(operand, w_at, wanted_.loops, ranges_),
               found = flat_index(buffer, f_at, found_.loops, ranges_);
    if (!wanted.defined() || !found.defined()) return false;
    const Expr distance = simplify(found - in_found_loops(wanted), ranges_);
    IntrinsicOperand here{f, f_at};
    here.spread = lies_apart(operand, w_at, found);
    for (const LoopRef& loop : found_.loops)
      if (!here.spread && uses_var(distance, loop->var)) return false;
    for (Expr& index : here.at) {
      for (size_t i = 0; i < found_.loops.size(); ++i)
        index = substitute(index, found_.loops[i]->var,
                           here.spread ? of_thread(w_at[0], i) : Expr(0));
      index = simplify(index, ranges_);
    }
    // The instruction's own access with all loops at 0 must be its operand's first element.
    Expr first = wanted;
    for (const LoopRef& loop : wanted_.loops) first = substitute(first, loop->var, Expr(0));
    if (!is_const(simplify(first), 0)) return false;
    const auto [known, fresh] = match_.emplace(operand.name, here);
    if (fresh) return true;
    if (known->second.buffer != f) return false;
    for (size_t d = 0; d < here.at.size(); ++d)
      if (!equal(known->second.at[d], here.at[d])) return false;
    return true;
  }

  // True: the operand is [thread, element] by address. The loops that count threads may then place
  // its elements freely, while all other loops must match the instruction.
  bool lies_apart(const Buffer& operand, const std::vector<Expr>& w_at, const Expr& found) {
    bool by_address = false;
    for (const EmitCalls::Call& call : intrinsic_.emit.calls)
      for (const EmitCalls::Operand& taken : call.operands)
        by_address |= taken.name == operand.name && taken.kind == EmitCalls::OperandKind::address;
    if (!by_address || intrinsic_.emit.threads == 1 || w_at.size() != 2 ||
        !is_const(operand.shape[0], intrinsic_.emit.threads))
      return false;
    const Expr start = simplify(found - in_found_loops(w_at[1]), ranges_);
    Expr again = Expr(0);  // the thread's number, rebuilt from of_thread
    for (size_t i = 0; i < wanted_.loops.size(); ++i) {
      const std::string& loop = wanted_.loops[i]->var;
      const bool counts = uses_var(w_at[0], loop);
      if (counts == uses_var(w_at[1], loop)) return false;
      if (!counts && uses_var(start, found_.loops[i]->var)) return false;
      if (counts) again = again + var(loop) * Expr(step_of(w_at[0], i));
    }
    ranges_[kEachThread] = {Expr(0), Expr(intrinsic_.emit.threads - 1)};
    return equal(simplify(again, ranges_), simplify(w_at[0], ranges_));
  }

  // The amount that one iteration of the instruction's loop adds to the thread's number
  int64_t step_of(const Expr& thread, size_t loop) const {
    return eval_int(thread, [&](std::string_view name) {
      return static_cast<int64_t>(name == wanted_.loops[loop]->var);
    });
  }
  // The iteration of a loop to which a thread's part belongs; 0 for loops that do not count threads
  Expr of_thread(const Expr& thread, size_t loop) const {
    const int64_t step = step_of(thread, loop);
    if (step == 0) return Expr(0);
    return floor_mod(floor_div(var(kEachThread), Expr(step)), wanted_.loops[loop]->extent);
  }

  const Intrinsic& intrinsic_;
  const Kernel& instruction_;
  const Kernel& kernel_;
  Ranges ranges_;
  Nest wanted_, found_;
  IntrinsicMatch match_;
};

}  // namespace

int64_t threads_together(const StmtNode& s, const Target& target) {
  const auto* block = as<stmt::Block>(s);
  const Intrinsic* intrinsic = block && !block->intrinsic.empty()
                                   ? target.find_intrinsic(block->intrinsic)
                                   : nullptr;
  return intrinsic ? intrinsic->emit.threads : 1;
}

Expected<std::shared_ptr<const Kernel>> semantics_of(const Intrinsic& intrinsic) {
  if (intrinsic.kernel) return intrinsic.kernel;
  TW_ASSIGN(Kernel kernel, parse_kernel(intrinsic.semantics, intrinsic.name));
  return std::make_shared<const Kernel>(std::move(kernel));
}

Expected<IntrinsicMatch> match_intrinsic(const Intrinsic& intrinsic, const Kernel& semantics,
                                         const Kernel& kernel, const Stmt& nest,
                                         const Ranges& ranges) {
  return Matcher(intrinsic, semantics, kernel, ranges).run(nest);
}

namespace {

Error check_instructions_in(const Stmt& s, const Kernel& kernel, const Target& target,
                            Ranges ranges) {
  if (const auto* loop = as<stmt::Loop>(s)) sched::add_range(ranges, *loop);
  const auto* block = as<stmt::Block>(s);
  const Intrinsic* intrinsic = block && !block->intrinsic.empty()
                                   ? target.find_intrinsic(block->intrinsic)
                                   : nullptr;
  if (intrinsic) {
    TW_ASSIGN(const std::shared_ptr<const Kernel> semantics, semantics_of(*intrinsic));
    if (Error error =
            match_intrinsic(*intrinsic, *semantics, kernel, block->body, ranges).takeError())
      return sched::illegal("block '{0}' is not what '{1}' does any more: {2}", block->name,
                            intrinsic->name, error_text(std::move(error)));
  }
  for (const Stmt& child : children(s))
    TW_TRY(check_instructions_in(child, kernel, target, ranges));
  return Error::success();
}

}  // namespace

Error check_instructions(const Kernel& kernel, const Target& target) {
  return check_instructions_in(kernel.body, kernel, target, sched::ranges_of(kernel, {}));
}

Stmt part_of_operands(const Kernel& instruction, const stmt::Block& block,
                      const IntrinsicMatch& match) {
  std::vector<Stmt> places;
  for (const Buffer& parameter : instruction.buffers) {
    const IntrinsicOperand& operand = match.at(parameter.name);
    places.push_back(make_store({.label = parameter.name,
                                 .buffer = operand.buffer,
                                 .indices = operand.at,
                                 .value = imm(0, parameter.dtype)}));
  }
  return make_stmt(stmt::Block{block.name, block.intrinsic, make_sequence(std::move(places))});
}

Expected<IntrinsicMatch> operands_of_part(const Kernel& instruction, const stmt::Block& block) {
  IntrinsicMatch match;
  for (const StoreRef& place : stores_of(block.body))
    match[place->label] = {place->buffer, place->indices};
  for (const Buffer& parameter : instruction.buffers)
    if (!match.contains(parameter.name))
      return illegal("operand '{0}' has no place", parameter.name);
  return match;
}

}  // namespace tw
