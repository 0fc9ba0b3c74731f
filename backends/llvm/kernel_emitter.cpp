#include "backends/llvm/kernel_emitter.h"

#include "ir/kernel/guards.h"
#include "ir/kernel/shared_loop.h"
#include "ir/kernel/stack_limits.h"
#include "ir/schedule/interleave.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {
namespace {

// Every statement's expressions in normal form, so that offsets are sums of few terms.
Stmt simplified(const Stmt& body, const Ranges& ranges) {
  return rewrite_exprs(body, [&](const Expr& e) { return simplify(e, ranges); });
}

Emission emission_of(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                     const Target& target, const KernelEnvironment* environment) {
  Kernel interleaved = interleave_virtual_threads(kernel);
  const WorkspaceLayout layout = workspace_layout(interleaved, target.cores);
  return {.module = module,
          .kernel = std::move(interleaved),
          .target = target,
          .v = Values(module.getContext(), traits, target.fast_math),
          .environment = environment,
          .layout = layout};
}

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                             const Target& target, const KernelEnvironment* environment)
    : OwnedEmission{emission_of(module, traits, kernel, target, environment)},
      EmissionPart(emission),
      expressions_(emission, memory_),
      memory_(emission, expressions_),
      instructions_(emission, expressions_, memory_) {}

// Depths and ranges of all loops, and the width of each register buffer's slots: the common
// divisor of the vector loops that run along its innermost elements.
void KernelEmitter::analyse() {
  for (const std::string& s : kernel_.symbols) emission_.ranges[s] = symbol_range(s);
  if (emission_.environment)
    emission_.ranges.insert(emission_.environment->variables().begin(),
                            emission_.environment->variables().end());
  std::function<void(const Stmt&, int, const StmtNode*)> walk = [&](const Stmt& s, int depth,
                                                                    const StmtNode* lanes) {
    if (s->kind == StmtKind::loop) {
      emission_.depths[s->var] = ++depth;
      emission_.ranges[s->var] = {0, s->extent - 1};
      if (s->loop_kind == LoopKind::vector && !lanes) lanes = s.get();
    }
    auto note = [&](BufferId id, const std::vector<Expr>& indices) {
      if (!lanes || kernel_.buffer(id).scope != "register") return;
      for (const IndexTerm& t : offset_form(kernel_.buffer(id), indices, emission_.depths).terms) {
        bool ramp = t.factors.size() == 1 && t.factors[0]->kind == ExprKind::var &&
                    t.factors[0]->name == lanes->var && t.coefficient == 1;
        auto extent = as_const(lanes->extent);
        if (ramp && extent) memory_.note_register_access(id, *extent);
      }
    };
    if (s->kind == StmtKind::block) instructions_.note_operands(*s);
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
  memory_.place_tiles();
  check_temps();
}

void KernelEmitter::check_temps() {
  int64_t stack_bytes = 0;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const Buffer& buffer = kernel_.buffers[i];
    if (buffer.role != BufferRole::temp || buffer.scope == "global" || buffer.scope == "thread")
      continue;
    const BufferId id{static_cast<int32_t>(i)};
    if (emission_.environment && emission_.environment->holds(id)) continue;
    const int64_t count = memory_.elements(id);
    if (buffer.scope != "stack" && buffer.scope != "register" && buffer.scope != kTileScope)
      fail("buffer '" + buffer.name + "' is in scope '" + buffer.scope +
           "', which a CPU does not have");
    if (count < 0)
      return fail("buffer '" + buffer.name + "' of scope " + buffer.scope +
                  " needs a constant shape");
    if (buffer.scope == "stack") stack_bytes += count * dtype_bytes(buffer.dtype);
    memory_.close_register_slots(id);
  }
  if (stack_bytes > kMaxStackBytes)
    fail("stack buffers take " + std::to_string(stack_bytes) + " bytes, the limit is " +
         std::to_string(kMaxStackBytes));
}

Expected<EmittedKernel> KernelEmitter::emit(const std::string& symbol, const Expr& chunks) {
  most_chunks_ = chunks;
  symbol_ = symbol;
  analyse();
  EmittedKernel result;
  if (!failed()) {
    result.function = start_function(symbol, 0, llvm::GlobalValue::ExternalLinkage);
    enter(result.function);
    const Stmt body = hoist_guards(simplified(kernel_.body, emission_.ranges));
    const Intrinsic* state = instructions_.set_up(body, is_const(chunks, 1));
    emit_stmt(body);
    instructions_.tear_down(state);
    v_.b.CreateRetVoid();
  }
  if (failed())
    return make_error(DiagCode::unsupported, "kernel '{0}': {1}", kernel_.name, emission_.error);
  return result;
}

void KernelEmitter::emit_stmt(const Stmt& s) {
  if (failed()) return;
  switch (s->kind) {
    case StmtKind::sequence:
      for (const Stmt& child : s->body) emit_stmt(child);
      return;
    case StmtKind::loop: return emit_loop(s);
    case StmtKind::store: return emit_store(s);
    case StmtKind::if_then: {
      expressions_
          .forget();  // values of an earlier iteration of an expanded loop are not this one's
      Value* condition = expressions_.emit(resolved(s->condition));
      if (is_all_true(condition)) return emit_stmt(s->body[0]);
      if (is_all_false(condition)) return;
      if (Values::lanes(condition)) {
        Value* outer = lanes_.mask;
        lanes_.mask = v_.logical_and(lanes_.mask, condition);
        if (is_all_true(lanes_.mask)) lanes_.mask = outer;
        emit_stmt(s->body[0]);
        lanes_.mask = outer;
        return;
      }
      v_.branch(
          condition, [&]() -> Value* { return emit_stmt(s->body[0]), nullptr; },
          []() -> Value* { return nullptr; });
      return;
    }
    case StmtKind::block:
      if (!instructions_.emit(*s)) emit_stmt(s->body[0]);
      return;
    case StmtKind::prefetch: return emit_prefetch(*s);
    case StmtKind::signal:
    case StmtKind::wait:
      expressions_.forget();
      if (!emission_.environment) return fail("tokens are a device's: a CPU has none");
      return s->kind == StmtKind::signal ? emission_.environment->commit(v_)
                                         : emission_.environment->await(v_, s->count);
    case StmtKind::roles: return fail("roles are a device's: a CPU has none");
    case StmtKind::barrier:
      expressions_.forget();
      return emission_.environment ? emission_.environment->barrier(v_)
                                   : fail("barriers are a device's: a CPU has none");
  }
}

void KernelEmitter::emit_loop(const Stmt& s) {
  auto extent = as_const(s->extent);
  if (extent && *extent <= 0) return;
  loops_.push_back(s.get());
  if (s->loop_kind == LoopKind::bind)
    fail("loop '" + s->var + "' is bound to " + s->axis + ", which a CPU does not have");
  const bool parallel = !in_parallel_ && !is_const(chunks_here(), 1) && is_shared_out(kernel_, s);
  bool expand = s->loop_kind == LoopKind::unroll ||
                (s->loop_kind == LoopKind::vector && lanes_.count);
  if ((expand || s->loop_kind == LoopKind::vector) && !extent) {
    fail("loop '" + s->var + "' is " + loop_kind_name(s->loop_kind) +
         " but its extent is not constant");
  } else if (parallel) {
    emit_parallel(s);
  } else if (s->loop_kind == LoopKind::unroll && (emit_transpose(s) || emit_pairs(s))) {
  } else if (expand || (extent && *extent == 1)) {
    for (int64_t i = 0; i < *extent && !failed(); ++i) {
      function_.vars[s->var] = v_.i64(i);
      expanded_[s->var] = i;
      emit_stmt(s->body[0]);
    }
    expanded_.erase(s->var);
  } else if (s->loop_kind == LoopKind::vector) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < *extent; ++i) ramp.push_back(v_.b.getInt64(static_cast<uint64_t>(i)));
    function_.vars[s->var] = llvm::ConstantVector::get(ramp);
    lanes_.var = s->var;
    lanes_.count = static_cast<int>(*extent);
    emit_stmt(s->body[0]);
    lanes_.var.clear();
    lanes_.count = 0;
  } else if (shared_.loop == s.get()) {
    expressions_.forget();
    emit_shared(s);
  } else {
    expressions_.forget();
    Value* end = expressions_.emit(s->extent);
    if (Values::lanes(end)) fail("loop '" + s->var + "' has an extent that differs between lanes");
    else emit_serial(s, v_.i64(0), end);
  }
  function_.vars.erase(s->var);
  loops_.pop_back();
}

// do-while with an entry test where begin < end is not known.
void KernelEmitter::emit_serial(const Stmt& s, Value* begin, Value* end) {
  auto& b = v_.b;
  if (emission_.lines) emission_.at_line(emission_.lines->loop(s->var));
  auto* header = llvm::BasicBlock::Create(b.getContext(), "loop." + s->var, function_.value);
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "end." + s->var, function_.value);
  Value* any = b.CreateICmpSLT(begin, end);
  if (is_all_true(any)) b.CreateBr(header);
  else b.CreateCondBr(any, header, exit);
  auto* before = b.GetInsertBlock();
  b.SetInsertPoint(header);
  llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2, s->var);
  index->addIncoming(begin, before);
  function_.vars[s->var] = index;
  emit_stmt(s->body[0]);
  if (emission_.lines) emission_.at_line(emission_.lines->loop(s->var));
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
  expressions_.begin_statement();
  const BufferId id = s.buffer;
  if (kernel_.buffer(id).scope == "register") return;
  Access access = memory_.access_of(id, s.indices);
  if (access.lane_offsets)
    return fail("a prefetch of '" + kernel_.buffer(id).name + "' in a vector loop");
  llvm::Type* i32 = v_.b.getInt32Ty();
  Value* p = memory_.pointer(id, access, 0);
  v_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                       {p, llvm::ConstantInt::get(i32, 0),
                        llvm::ConstantInt::get(i32, static_cast<uint64_t>(s.count)),
                        llvm::ConstantInt::get(i32, 1)});
}

}  // namespace tw::codegen
