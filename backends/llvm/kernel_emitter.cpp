#include "backends/llvm/kernel_emitter.h"

#include "ir/kernel/guards.h"
#include "ir/kernel/shared_loop.h"
#include "ir/kernel/stack_limits.h"
#include "ir/schedule/interleave.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {
namespace {

// The body with simplified expressions, so that offsets are sums of few terms
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

// Finds depths and ranges of all loops. The width of a register buffer's slots is the common
// divisor of the vector loops along its innermost elements.
void KernelEmitter::analyse() {
  for (const std::string& s : kernel_.symbols) emission_.ranges[s] = symbol_range(s);
  if (emission_.environment)
    emission_.ranges.insert(emission_.environment->variables().begin(),
                            emission_.environment->variables().end());
  std::function<void(const Stmt&, int, const stmt::Loop*)> walk = [&](const Stmt& s, int depth,
                                                                      const stmt::Loop* lanes) {
    if (const auto* loop = as<stmt::Loop>(s)) {
      emission_.depths[loop->var] = ++depth;
      emission_.ranges[loop->var] = {0, loop->extent - 1};
      if (loop->kind == LoopKind::vector && !lanes) lanes = loop;
    }
    auto note = [&](BufferId id, const std::vector<Expr>& indices) {
      if (!lanes || kernel_.buffer(id).scope != "register") return;
      for (const IndexTerm& t : offset_form(kernel_.buffer(id), indices, emission_.depths).terms) {
        bool ramp = t.factors.size() == 1 && is_var(t.factors[0], lanes->var) && t.coefficient == 1;
        auto extent = as_const(lanes->extent);
        if (ramp && extent) memory_.note_register_access(id, *extent);
      }
    };
    if (const auto* block = as<stmt::Block>(s)) instructions_.note_operands(*block);
    if (const auto* store = as<stmt::Store>(s)) {
      note(store->buffer, store->indices);
      for (const Expr& e : {store->value, store->where, store->init})
        if (e.defined())
          visit(e, [&](const Expr& n) {
            if (const auto* load = as<expr::Load>(n)) note(load->buffer, load->indices);
          });
    }
    for (const Stmt& child : children(s)) walk(child, depth, lanes);
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

Expected<EmittedKernel> KernelEmitter::emit(const std::string& symbol, const Expr& parts) {
  most_parts_ = parts;
  symbol_ = symbol;
  analyse();
  EmittedKernel result;
  if (!failed()) {
    result.function = start_function(symbol, 0, llvm::GlobalValue::ExternalLinkage);
    enter(result.function);
    const Stmt body = hoist_guards(simplified(kernel_.body, emission_.ranges));
    const Intrinsic* state = instructions_.set_up(body, is_const(parts, 1));
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
  match(
      s,
      [&](const stmt::Sequence& sequence) {
        for (const Stmt& child : sequence.body) emit_stmt(child);
      },
      [&](const stmt::Loop&) { emit_loop(LoopRef(s)); },
      [&](const stmt::Store& store) { emit_store(store); },
      [&](const stmt::If& guard) { emit_if(guard); },
      [&](const stmt::Block& block) {
        if (!instructions_.emit(block)) emit_stmt(block.body);
      },
      [&](const stmt::Prefetch& prefetch) { emit_prefetch(prefetch); },
      [&](const stmt::Signal&) {
        if (const KernelEnvironment* device = device_for("tokens")) device->commit(v_);
      },
      [&](const stmt::Wait& wait) {
        if (const KernelEnvironment* device = device_for("tokens")) device->await(v_, wait.count);
      },
      [&](const stmt::Roles&) { fail("roles are a device's: a CPU has none"); },
      [&](const stmt::Barrier&) {
        if (const KernelEnvironment* device = device_for("barriers")) device->barrier(v_);
      });
}

const KernelEnvironment* KernelEmitter::device_for(const char* what) {
  expressions_.forget();
  if (!emission_.environment) fail(std::string(what) + " are a device's: a CPU has none");
  return emission_.environment;
}

void KernelEmitter::emit_if(const stmt::If& guard) {
  expressions_.forget();  // values of an earlier iteration of an expanded loop are wrong here
  Value* condition = expressions_.emit(resolved(guard.condition));
  if (is_all_true(condition)) return emit_stmt(guard.body);
  if (is_all_false(condition)) return;
  if (Values::lanes(condition)) {
    Value* outer = lanes_.mask;
    lanes_.mask = v_.logical_and(lanes_.mask, condition);
    if (is_all_true(lanes_.mask)) lanes_.mask = outer;
    emit_stmt(guard.body);
    lanes_.mask = outer;
    return;
  }
  v_.branch(
      condition, [&]() -> Value* { return emit_stmt(guard.body), nullptr; },
      []() -> Value* { return nullptr; });
}

void KernelEmitter::emit_loop(const LoopRef& loop) {
  auto extent = as_const(loop->extent);
  if (extent && *extent <= 0) return;
  loops_.push_back(&*loop);
  if (loop->kind == LoopKind::bind)
    fail("loop '" + loop->var + "' is bound to " + loop->axis + ", which a CPU does not have");
  const bool parallel = !in_parallel_ && !is_const(parts_here(), 1) && is_shared_out(kernel_, loop);
  bool expand = loop->kind == LoopKind::unroll || (loop->kind == LoopKind::vector && lanes_.count);
  if ((expand || loop->kind == LoopKind::vector) && !extent) {
    fail("loop '" + loop->var + "' is " + loop_kind_name(loop->kind) +
         " but its extent is not constant");
  } else if (parallel) {
    emit_parallel(*loop);
  } else if (loop->kind == LoopKind::unroll && (emit_transpose(*loop) || emit_pairs(*loop))) {
  } else if (expand || (extent && *extent == 1)) {
    for (int64_t i = 0; i < *extent && !failed(); ++i) {
      function_.vars[loop->var] = v_.i64(i);
      expanded_[loop->var] = i;
      emit_stmt(loop->body);
    }
    expanded_.erase(loop->var);
  } else if (loop->kind == LoopKind::vector) {
    std::vector<llvm::Constant*> ramp;
    for (int64_t i = 0; i < *extent; ++i) ramp.push_back(v_.b.getInt64(static_cast<uint64_t>(i)));
    function_.vars[loop->var] = llvm::ConstantVector::get(ramp);
    lanes_.var = loop->var;
    lanes_.count = static_cast<int>(*extent);
    emit_stmt(loop->body);
    lanes_.var.clear();
    lanes_.count = 0;
  } else if (shared_.loop == &*loop) {
    expressions_.forget();
    emit_shared(*loop);
  } else {
    expressions_.forget();
    Value* end = expressions_.emit(loop->extent);
    if (Values::lanes(end))
      fail("loop '" + loop->var + "' has an extent that differs between lanes");
    else emit_serial(*loop, v_.i64(0), end);
  }
  function_.vars.erase(loop->var);
  loops_.pop_back();
}

// Emits a do-while loop, with a test in front unless begin < end is known.
void KernelEmitter::emit_serial(const stmt::Loop& loop, Value* begin, Value* end) {
  auto& b = v_.b;
  if (emission_.lines) emission_.at_line(emission_.lines->loop(loop.var));
  auto* header = llvm::BasicBlock::Create(b.getContext(), "loop." + loop.var, function_.value);
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "end." + loop.var, function_.value);
  Value* any = b.CreateICmpSLT(begin, end);
  if (is_all_true(any)) b.CreateBr(header);
  else b.CreateCondBr(any, header, exit);
  auto* before = b.GetInsertBlock();
  b.SetInsertPoint(header);
  llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2, loop.var);
  index->addIncoming(begin, before);
  function_.vars[loop.var] = index;
  emit_stmt(loop.body);
  if (emission_.lines) emission_.at_line(emission_.lines->loop(loop.var));
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

// Emits a hint for one address, that of lane 0.
void KernelEmitter::emit_prefetch(const stmt::Prefetch& prefetch) {
  expressions_.begin_statement();
  const BufferId id = prefetch.buffer;
  if (kernel_.buffer(id).scope == "register") return;
  Access access = memory_.access_of(id, prefetch.indices);
  if (access.lane_offsets)
    return fail("a prefetch of '" + kernel_.buffer(id).name + "' in a vector loop");
  llvm::Type* i32 = v_.b.getInt32Ty();
  Value* p = memory_.pointer(id, access, 0);
  v_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                       {p, llvm::ConstantInt::get(i32, 0),
                        llvm::ConstantInt::get(i32, static_cast<uint64_t>(prefetch.locality)),
                        llvm::ConstantInt::get(i32, 1)});
}

}  // namespace tw::codegen
