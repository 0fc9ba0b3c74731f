#include "backends/llvm/kernel_emitter.h"

#include <numeric>

#include "backends/llvm/shared_loop.h"
#include "ir/kernel/copies.h"
#include "ir/kernel/guards.h"
#include "ir/schedule/interleave.h"

namespace tw {
namespace {
constexpr int64_t kMaxStatements = 20000;  // store leaves after expansion
// Of one kernel: workers have little stack (runtime/model.h)
constexpr int64_t kMaxStackBytes = 48 << 10;

// Every statement's expressions in normal form, so that offsets are sums of few terms.
Stmt simplified(const Stmt& body, const Ranges& ranges) {
  return rewrite_exprs(body, [&](const Expr& e) { return simplify(e, ranges); });
}
}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                             const Target& target, const Surroundings* surroundings)
    : module_(module),
      kernel_(interleave_virtual_threads(kernel)),
      target_(target),
      v_(module.getContext(), traits, target.fast_math),
      around_(surroundings),
      layout_(workspace_layout(kernel_, target.cores)),
      cores_(target.cores) {}

void KernelEmitter::fail(const std::string& message) {
  if (error_.empty()) error_ = message;
}

int64_t KernelEmitter::elements(BufferId id) const {
  int64_t count = 1;
  for (const Expr& extent : kernel_.buffer(id).shape) {
    auto value = as_const(extent);
    if (!value) return -1;
    count *= *value;
  }
  return count;
}

// Depths, ranges and roles of all loops, and the width of each register buffer's slots: the common
// divisor of the vector loops that run along its innermost elements.
void KernelEmitter::analyse() {
  for (const std::string& s : kernel_.symbols) ranges_[s] = symbol_range(s);
  if (around_) ranges_.insert(around_->variables().begin(), around_->variables().end());
  slot_lanes_.assign(kernel_.buffers.size(), 0);
  std::function<void(const Stmt&, int, const StmtNode*)> walk = [&](const Stmt& s, int depth,
                                                                    const StmtNode* lanes) {
    if (s->kind == StmtKind::loop) {
      depths_[s->var] = ++depth;
      ranges_[s->var] = {0, s->extent - 1};
      roles_[s->var] = s->role;
      if (s->loop_kind == LoopKind::vector && !lanes) lanes = s.get();
    }
    auto note = [&](BufferId id, const std::vector<Expr>& indices) {
      if (!lanes || kernel_.buffer(id).scope != "register") return;
      for (const IndexTerm& t : offset_form(kernel_.buffer(id), indices, depths_).terms) {
        bool ramp = t.factors.size() == 1 && t.factors[0]->kind == ExprKind::var &&
                    t.factors[0]->name == lanes->var && t.coefficient == 1;
        auto extent = as_const(lanes->extent);
        int64_t& width = slot_lanes_[static_cast<size_t>(id.index)];
        if (ramp && extent) width = std::gcd(width, *extent);
      }
    };
    if (s->kind == StmtKind::region) {
      for (const auto& [name, operand] : instruction_of(*s).operands) {
        int64_t& width = slot_lanes_[static_cast<size_t>(operand.buffer.index)];
        if (kernel_.buffer(operand.buffer).scope == "register")
          width = std::gcd(width, operand.count);
      }
    }
    if (s->kind == StmtKind::store) {
      note(s->buffer, s->indices);
      for (const Expr& e : {s->value, s->where, s->init})
        if (e.defined())
          visit(e, [&](const Expr& n) {
            if (n->kind == ExprKind::load) note(n->buffer, n->args);
          });
    }
    for (const Stmt& child : s->body) walk(child, depth, lanes);
  };
  walk(kernel_.body, 0, nullptr);
  check_temps();
}

void KernelEmitter::check_temps() {
  int64_t stack_bytes = 0;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const Buffer& buffer = kernel_.buffers[i];
    if (buffer.role != BufferRole::temp || buffer.scope == "global" || buffer.scope == "thread")
      continue;
    if (around_ && around_->holds(BufferId{static_cast<int32_t>(i)})) continue;
    int64_t count = elements(BufferId{static_cast<int32_t>(i)});
    if (buffer.scope != "stack" && buffer.scope != "register")
      fail("buffer '" + buffer.name + "' is in scope '" + buffer.scope +
           "', which a CPU does not have");
    if (count < 0)
      return fail("buffer '" + buffer.name + "' of scope " + buffer.scope +
                  " needs a constant shape");
    if (buffer.scope == "stack") stack_bytes += count * dtype_bytes(buffer.dtype);
    if (slot_lanes_[i] && count % slot_lanes_[i]) slot_lanes_[i] = std::gcd(slot_lanes_[i], count);
    if (slot_lanes_[i] == 1) slot_lanes_[i] = 0;
  }
  if (stack_bytes > kMaxStackBytes)
    fail("stack buffers take " + std::to_string(stack_bytes) + " bytes, the limit is " +
         std::to_string(kMaxStackBytes));
}

Expected<EmittedKernel> KernelEmitter::emit(const std::string& symbol, const Expr& shares) {
  shares_ = shares;
  symbol_ = symbol;
  analyse();
  EmittedKernel result;
  if (error_.empty()) {
    result.function = start_function(symbol, 0, llvm::GlobalValue::ExternalLinkage);
    enter(result.function);
    emit_stmt(hoist_guards(simplified(kernel_.body, ranges_)));
    v_.b.CreateRetVoid();
  }
  if (!error_.empty())
    return make_error(DiagCode::unsupported, "kernel '{0}': {1}", kernel_.name, error_);
  return result;
}

void KernelEmitter::at_line(unsigned line) {
  if (lines_)
    v_.b.SetCurrentDebugLocation(
        llvm::DILocation::get(v_.b.getContext(), line, 0, region_.function->getSubprogram()));
}

void KernelEmitter::emit_stmt(const Stmt& s) {
  if (!error_.empty()) return;
  switch (s->kind) {
    case StmtKind::block:
      for (const Stmt& child : s->body) emit_stmt(child);
      return;
    case StmtKind::loop: return emit_loop(s);
    case StmtKind::store: return emit_store(s);
    case StmtKind::if_then: {
      memo_.clear();  // values of an earlier iteration of an expanded loop are not this one's
      Value* condition = emit(resolved(s->condition));
      if (is_all_true(condition)) return emit_stmt(s->body[0]);
      if (is_all_false(condition)) return;
      if (Values::lanes(condition)) {
        Value* outer = mask_;
        mask_ = v_.logical_and(mask_, condition);
        if (is_all_true(mask_)) mask_ = outer;
        emit_stmt(s->body[0]);
        mask_ = outer;
        return;
      }
      v_.branch(
          condition, [&]() -> Value* { return emit_stmt(s->body[0]), nullptr; },
          []() -> Value* { return nullptr; });
      return;
    }
    case StmtKind::region: return emit_region(s);
    case StmtKind::prefetch: return emit_prefetch(*s);
    case StmtKind::signal:
    case StmtKind::wait:
      memo_.clear();
      if (!around_) return fail("tokens are a device's: a CPU has none");
      return s->kind == StmtKind::signal ? around_->commit(v_) : around_->await(v_, s->count);
    case StmtKind::roles: return fail("roles are a device's: a CPU has none");
    case StmtKind::barrier:
      memo_.clear();
      return around_ ? around_->barrier(v_) : fail("barriers are a device's: a CPU has none");
  }
}

void KernelEmitter::emit_loop(const Stmt& s) {
  auto extent = as_const(s->extent);
  if (extent && *extent <= 0) return;
  loops_.push_back(s.get());
  if (s->loop_kind == LoopKind::bind)
    fail("loop '" + s->var + "' is bound to " + s->axis + ", which a CPU does not have");
  bool parallel = s->loop_kind == LoopKind::parallel && !in_parallel_ &&
                  !is_const(shares_here(), 1);
  bool expand = s->loop_kind == LoopKind::unroll ||
                (s->loop_kind == LoopKind::vector && lane_count_);
  if ((expand || s->loop_kind == LoopKind::vector) && !extent) {
    fail("loop '" + s->var + "' is " + loop_kind_name(s->loop_kind) +
         " but its extent is not constant");
  } else if (parallel && (extent != 1 || shared_loop(kernel_, s))) {
    emit_parallel(s);
  } else if (s->loop_kind == LoopKind::unroll && emit_transpose(s)) {
  } else if (expand || (extent && *extent == 1)) {
    for (int64_t i = 0; i < *extent && error_.empty(); ++i) {
      region_.vars[s->var] = v_.i64(i);
      expanded_[s->var] = i;
      emit_stmt(s->body[0]);
    }
    expanded_.erase(s->var);
  } else if (s->loop_kind == LoopKind::vector) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < *extent; ++i) ramp.push_back(v_.b.getInt64(static_cast<uint64_t>(i)));
    region_.vars[s->var] = llvm::ConstantVector::get(ramp);
    lane_var_ = s->var;
    lane_count_ = static_cast<int>(*extent);
    emit_stmt(s->body[0]);
    lane_var_.clear();
    lane_count_ = 0;
  } else if (shared_.loop == s.get()) {
    memo_.clear();
    emit_shared(s);
  } else {
    memo_.clear();
    Value* end = emit(s->extent);
    if (Values::lanes(end)) fail("loop '" + s->var + "' has an extent that differs between lanes");
    else emit_serial(s, v_.i64(0), end);
  }
  region_.vars.erase(s->var);
  loops_.pop_back();
}

// do-while with an entry test where begin < end is not known.
void KernelEmitter::emit_serial(const Stmt& s, Value* begin, Value* end) {
  auto& b = v_.b;
  if (lines_) at_line(lines_->loop(s->var));
  auto* header = llvm::BasicBlock::Create(b.getContext(), "loop." + s->var, region_.function);
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "end." + s->var, region_.function);
  Value* any = b.CreateICmpSLT(begin, end);
  if (is_all_true(any)) b.CreateBr(header);
  else b.CreateCondBr(any, header, exit);
  auto* before = b.GetInsertBlock();
  b.SetInsertPoint(header);
  llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2, s->var);
  index->addIncoming(begin, before);
  region_.vars[s->var] = index;
  emit_stmt(s->body[0]);
  if (lines_) at_line(lines_->loop(s->var));
  Value* next = b.CreateAdd(index, v_.i64(1), "", true, true);
  index->addIncoming(next, b.GetInsertBlock());
  auto* latch = b.CreateCondBr(b.CreateICmpSLT(next, end), header, exit);
  auto& context = b.getContext();
  auto* no_unroll = llvm::MDNode::get(context,
                                      llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  auto* no_vectors = llvm::MDNode::get(context,
                                       {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                                        llvm::ConstantAsMetadata::get(b.getFalse())});
  auto* id = llvm::MDNode::getDistinct(context, {nullptr, no_unroll, no_vectors});
  id->replaceOperandWith(0, id);
  latch->setMetadata(llvm::LLVMContext::MD_loop, id);
  b.SetInsertPoint(exit);
}

// A hint: one address, that of lane 0.
void KernelEmitter::emit_prefetch(const StmtNode& s) {
  memo_.clear();
  memo_.emplace_back();
  const BufferId id = s.buffer;
  if (kernel_.buffer(id).scope == "register") return;
  Access access = access_of(offset_form(kernel_.buffer(id), s.indices, depths_));
  if (access.lane_offsets)
    return fail("a prefetch of '" + kernel_.buffer(id).name + "' in a vector loop");
  llvm::Type* i32 = v_.b.getInt32Ty();
  Value* p = pointer(id, access, 0);
  v_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                       {p, llvm::ConstantInt::get(i32, 0),
                        llvm::ConstantInt::get(i32, static_cast<uint64_t>(s.count)),
                        llvm::ConstantInt::get(i32, 1)});
}

// i1, uniform: the reduce loops around are all at their first iteration (lane 0 stands for a vector
// one).
Value* KernelEmitter::first_reduce_iteration() {
  Value* first = v_.b.getTrue();
  for (const StmtNode* loop : loops_) {
    if (loop->role != AxisRole::reduce || loop->var == lane_var_) continue;
    Value* index = region_.vars[loop->var];
    first = v_.logical_and(first, v_.b.CreateICmpEQ(index, v_.i64(0)));
  }
  return first;
}

// The condition at the present iteration of the expanded loops: what is decided there costs no
// instruction.
Expr KernelEmitter::resolved(const Expr& condition) {
  Expr e = condition;
  for (const auto& [name, value] : expanded_)
    if (uses_var(e, name)) e = substitute(e, name, Expr(value));
  if (e.get() == condition.get()) return e;
  resolved_.push_back(simplify(e, ranges_));
  return resolved_.back();
}

void KernelEmitter::emit_store(const Stmt& s) {
  if (++emitted_ > kMaxStatements)
    return fail("more than " + std::to_string(kMaxStatements) + " statements after unrolling");
  memo_.clear();
  memo_.emplace_back();
  if (lines_) at_line(lines_->store(s->label));
  if (s->async && around_ && around_->holds(s->buffer)) return emit_async(*s);
  Access access = access_of(form_of(s.get(), s->buffer, s->indices));
  if (s->init.defined()) {
    v_.branch(
        first_reduce_iteration(),
        [&]() -> Value* {
          memo_.emplace_back();
          store(s->buffer, access, emit(s->init));
          memo_.pop_back();
          return nullptr;
        },
        []() -> Value* { return nullptr; });
  }
  if (!s->where.defined()) return emit_update(s, access);
  Value* where = emit(resolved(s->where));
  if (is_all_true(where)) return emit_update(s, access);
  if (is_all_false(where)) return;
  if (Values::lanes(where)) {
    Value* outer = mask_;
    mask_ = v_.logical_and(mask_, where);
    if (is_all_true(mask_)) mask_ = outer;
    if (!is_all_false(mask_)) emit_update(s, access);
    mask_ = outer;
    return;
  }
  v_.branch(
      where,
      [&]() -> Value* {
        memo_.emplace_back();
        emit_update(s, access);
        memo_.pop_back();
        return nullptr;
      },
      []() -> Value* { return nullptr; });
}

// The lanes of a vector loop are one copy where they lie side by side.
void KernelEmitter::emit_async(const StmtNode& s) {
  const bool selects = s.value->kind == ExprKind::select;
  const Expr from = copied_load(s.value);
  Value* there = selects ? emit(resolved(s.value->args[0])) : nullptr;
  const Access to_access = access_of(form_of(&s, s.buffer, s.indices)),
               from_access = access_of(form_of(from.get(), from->buffer, from->args));
  const int64_t size = dtype_bytes(kernel_.buffer(s.buffer).dtype);
  const bool side_by_side = !lane_count_ ||
                            (to_access.lane_stride == 1 && from_access.lane_stride == 1 &&
                             !to_access.lane_offsets && !from_access.lane_offsets);
  if (mask_ || !side_by_side || (there && Values::lanes(there)))
    return fail("the lanes of the asynchronous stage '" + s.label + "' are no one copy");
  const int64_t bytes = size * std::max(lane_count_, 1);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return fail("the asynchronous stage '" + s.label + "' copies " + std::to_string(bytes) +
                " bytes at a time, not 4, 8 or 16");
  around_->copy(v_, pointer(s.buffer, to_access, 0), pointer(from->buffer, from_access, 0), bytes,
                there && !is_all_true(there) ? there : nullptr);
}

void KernelEmitter::emit_update(const Stmt& s, const Access& access) {
  DType t = kernel_.buffer(s->buffer).dtype;
  if (s->combiner == Combiner::none) return store(s->buffer, access, emit(s->value));
  bool uniform = !access.lane_stride && !access.lane_offsets;
  if (uniform && lane_count_) {  // the lanes are combined first: their order is free
    Value* value = v_.splat(emit(s->value), lane_count_);
    if (mask_) value = v_.select(mask_, value, v_.identity(s->combiner, t));
    Value* sum = v_.horizontal(s->combiner, t, value);
    Value* outer = mask_;
    mask_ = nullptr;
    store(s->buffer, access, v_.combine(s->combiner, t, load(s->buffer, access), sum));
    mask_ = outer;
    return;
  }
  if (access.lane_offsets) {  // lanes may meet in one element: one after the other
    Value* value = v_.splat(emit(s->value), lane_count_);
    Value* offsets = access.lane_offsets;
    Value* mask = mask_;
    int count = std::exchange(lane_count_, 0);
    mask_ = nullptr;
    for (int i = 0; i < count; ++i) {
      Access one = access;
      Value* offset = v_.b.CreateExtractElement(offsets, static_cast<uint64_t>(i));
      one.dynamic = one.dynamic ? v_.b.CreateAdd(one.dynamic, offset) : offset;
      one.lane_offsets = nullptr;
      Value* active = mask ? v_.b.CreateExtractElement(mask, static_cast<uint64_t>(i))
                           : v_.b.getTrue();
      v_.branch(
          active,
          [&]() -> Value* {
            store(s->buffer, one,
                  v_.combine(s->combiner, t, load(s->buffer, one),
                             v_.b.CreateExtractElement(value, static_cast<uint64_t>(i))));
            return nullptr;
          },
          []() -> Value* { return nullptr; });
    }
    lane_count_ = count;
    mask_ = mask;
    return;
  }
  if (s->combiner == Combiner::add && t == DType::i32 && lane_count_)
    if (Value* sum = add_products(s->value, load(s->buffer, access)))
      return store(s->buffer, access, sum);
  bool product = s->combiner == Combiner::add && (t == DType::f32 || t == DType::f64) &&
                 s->value->kind == ExprKind::binary && s->value->binary == BinaryOp::mul &&
                 s->value->type == t;
  if (product && v_.traits.fma) {
    Value* x = emit(s->value->args[0]);
    Value* y = emit(s->value->args[1]);
    return store(s->buffer, access, v_.fma(x, y, load(s->buffer, access)));
  }
  Value* value = emit(s->value);
  store(s->buffer, access, v_.combine(s->combiner, t, load(s->buffer, access), value));
}
}  // namespace tw
