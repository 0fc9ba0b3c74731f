// Functions of a kernel, and parallel loops. Around a parallel loop there are only serial loops,
// whose variables become parameters too. The loop's body becomes `body(params.., outer variables..,
// begin, end)`. With more than one thread, a thunk `(arg, part, chunk)` unpacks the parameters and
// runs one chunk as one of the parts. Each part has an even share of the loop's iterations, or of
// all those of the loop inside it (ir/kernel/shared_loop.h), in a few chunks that other threads may
// take. A kernel that does little makes few parts, or none, and parts that do little are one chunk.
#include <set>

#include "backends/llvm/kernel_emitter.h"
#include "ir/kernel/shared_loop.h"

namespace tw::codegen {

using llvm::Type;

namespace {

constexpr int64_t kChunksOfPart = 8;
// The work of a chunk, in units of that which makes a part worth the fork and join
constexpr int64_t kChunkWork = 8;

}  // namespace

Expr KernelEmitter::parts_here() const {
  return most_parts_below(most_parts_, {loops_.begin(), loops_.end() - 1});
}

// The parameters are env, a pointer for each parameter buffer, workspace, the symbols as i64, and
// `integers` more i64 (for parallel bodies: outer variables, part, begin, end).
llvm::Function* KernelEmitter::start_function(const std::string& symbol, size_t integers,
                                              llvm::GlobalValue::LinkageTypes linkage) {
  auto& b = v_.b;
  std::vector<Type*> types = {b.getPtrTy()};
  for (const Buffer& buffer : kernel_.buffers)
    if (buffer.role != BufferRole::temp) types.push_back(b.getPtrTy());
  types.push_back(b.getPtrTy());
  types.insert(types.end(), kernel_.symbols.size() + integers, b.getInt64Ty());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                          linkage, symbol, module_);
  if (linkage == llvm::GlobalValue::ExternalLinkage)
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  unsigned i = 0;
  function->getArg(i++)->setName("env");
  std::set<std::string> shared;  // may lie in one place: LLVM gets no promise about them
  for (const Buffer& buffer : kernel_.buffers) {
    if (!buffer.in_place.empty()) shared.insert(buffer.name);
    shared.insert(buffer.in_place.begin(), buffer.in_place.end());
  }
  auto describe = [&](const std::string& name, uint64_t align, bool read_only) {
    llvm::Argument* a = function->getArg(i++);
    a->setName(name);
    if (!shared.contains(name)) a->addAttr(llvm::Attribute::NoAlias);
    if (read_only) a->addAttr(llvm::Attribute::ReadOnly);
    a->addAttr(llvm::Attribute::getWithAlignment(b.getContext(), llvm::Align(align)));
  };
  for (const Buffer& buffer : kernel_.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    uint64_t align = buffer.role == BufferRole::constant
                         ? 64
                         : static_cast<uint64_t>(dtype_bytes(buffer.dtype));
    describe(buffer.name, align, buffer.role != BufferRole::output);
  }
  describe("workspace", 64, false);
  for (const std::string& s : kernel_.symbols) function->getArg(i++)->setName(s);
  return function;
}

// Makes `function` the function in progress. Its workspace temps get their addresses; those of
// scope thread lie in slice `part` (null: the first).
void KernelEmitter::enter(llvm::Function* function, Value* part) {
  function_ = FunctionState();
  function_.value = function;
  unsigned i = 0;
  function_.env = function->getArg(i++);
  function_.buffers.assign(kernel_.buffers.size(), nullptr);
  for (size_t k = 0; k < kernel_.buffers.size(); ++k)
    if (kernel_.buffers[k].role != BufferRole::temp) function_.buffers[k] = function->getArg(i++);
  function_.workspace = function->getArg(i++);
  for (const std::string& s : kernel_.symbols) function_.vars[s] = function->getArg(i++);
  auto& b = v_.b;
  auto* entry = llvm::BasicBlock::Create(b.getContext(), "entry", function);  // stack slots only
  auto* body = llvm::BasicBlock::Create(b.getContext(), "body", function);
  b.SetInsertPoint(entry);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  if (emission_.lines) {
    emission_.lines->describe(*function);
    emission_.at_line(1);
  }
  expressions_.forget();
  if (emission_.environment)
    for (const auto& [name, range] : emission_.environment->variables())
      function_.vars[name] = emission_.environment->variable(v_, name);
  Value* slice = part ? b.CreateMul(part, expressions_.emit(emission_.layout.slice_bytes), "slice")
                      : v_.i64(0);
  for (size_t k = 0; k < kernel_.buffers.size(); ++k) {
    const BufferId id{static_cast<int32_t>(k)};
    if (emission_.environment && emission_.environment->holds(id))
      function_.buffers[k] = emission_.environment->buffer(v_, id);
    if (!emission_.layout.offsets[k].defined()) continue;
    Value* offset = expressions_.emit(emission_.layout.offsets[k]);
    if (kernel_.buffers[k].scope == "thread") offset = b.CreateAdd(offset, slice);
    function_.buffers[k] = b.CreateGEP(b.getInt8Ty(), function_.workspace, offset,
                                       kernel_.buffers[k].name);
  }
}

// void (ptr packed, i32 part, i32 chunk). The fields of `packed` are the body's parameters without
// part, begin and end, then those of Division. The chunks of a part begin with a row, but for the
// first, where chunks have a row or more.
llvm::Function* KernelEmitter::make_thunk(llvm::Function* body, llvm::StructType* packed) {
  auto& context = module_.getContext();
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getVoidTy(),
                                       {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}, false);
  auto* thunk = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                       body->getName() + ".thunk", module_);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", thunk));
  std::vector<Value*> fields;
  for (unsigned i = 0; i < packed->getNumElements(); ++i)
    fields.push_back(
        b.CreateLoad(packed->getElementType(i), b.CreateStructGEP(packed, thunk->getArg(0), i)));
  const size_t own = fields.size() - 4;
  Value *extent = fields[own], *row = fields[own + 1], *each = fields[own + 2],
        *chunks = fields[own + 3];
  fields.resize(own);
  Value* chunk = b.CreateZExt(thunk->getArg(2), b.getInt64Ty());
  auto bound = [&](Value* i) {
    Value* even = b.CreateUDiv(b.CreateMul(extent, i), chunks);
    Value* first = b.CreateICmpEQ(b.CreateURem(i, each), b.getInt64(0));
    return b.CreateSelect(first, even, b.CreateSub(even, b.CreateURem(even, row)));
  };
  fields.push_back(b.CreateZExt(thunk->getArg(1), b.getInt64Ty()));
  fields.push_back(bound(chunk));
  fields.push_back(bound(b.CreateAdd(chunk, b.getInt64(1))));
  b.CreateCall(body, fields);
  b.CreateRetVoid();
  return thunk;
}

// Adds the chunks of the parts. `row` becomes the number of iterations of the inner loop that is
// divided with it; 1: there is none, or chunks are smaller.
void KernelEmitter::divide_parts(Division& d, Value* rows, Value* row, Value* most) {
  auto& b = v_.b;
  const auto least = [&](Value* x, Value* y) {
    return b.CreateSelect(b.CreateICmpSLT(x, y), x, y);
  };
  const auto at_least_1 = [&](Value* x) {
    return b.CreateSelect(b.CreateICmpSGT(x, v_.i64(1)), x, v_.i64(1));
  };
  d.each = least(b.CreateUDiv(d.extent, d.parts),
                 b.CreateUDiv(most, b.CreateMul(d.parts, v_.i64(kChunkWork))));
  d.each = at_least_1(least(d.each, v_.i64(kChunksOfPart)));
  d.chunks = b.CreateMul(d.parts, d.each);
  d.row = at_least_1(b.CreateSelect(b.CreateICmpSGE(rows, d.chunks), row, v_.i64(1)));
}

Value* KernelEmitter::part_count(Value* extent, Value* most) {
  auto& b = v_.b;
  // env->threads is the i32 behind six pointers (tw_env in runtime/model.h).
  unsigned pointer_bytes = module_.getDataLayout().getPointerSize();
  Value* threads = b.CreateLoad(
      b.getInt32Ty(), b.CreateConstGEP1_64(b.getInt8Ty(), function_.env, 6 * pointer_bytes),
      "threads");
  Value* wide = b.CreateSExt(threads, b.getInt64Ty());
  if (!is_const(emission_.layout.slice_bytes, 0))
    wide = b.CreateSelect(b.CreateICmpSLT(wide, v_.i64(emission_.target.cores)), wide,
                          v_.i64(emission_.target.cores));
  Value* parts = b.CreateSelect(b.CreateICmpSLT(wide, extent), wide, extent);
  return b.CreateSelect(b.CreateICmpSLT(most, parts), most, parts);
}

void KernelEmitter::call_in_chunks(llvm::Function* body, std::vector<Value*> fields,
                                   const Division& division) {
  auto& b = v_.b;
  for (Value* field : {division.extent, division.row, division.each, division.chunks})
    fields.push_back(field);
  std::vector<Type*> types;
  for (Value* field : fields) types.push_back(field->getType());
  auto* packed = llvm::StructType::get(b.getContext(), types);
  llvm::IRBuilder<> at_entry(&function_.value->getEntryBlock(),
                             function_.value->getEntryBlock().begin());
  Value* slot = at_entry.CreateAlloca(packed, nullptr, "packed");
  for (unsigned i = 0; i < fields.size(); ++i)
    b.CreateStore(fields[i], b.CreateStructGEP(packed, slot, i));
  auto parallel_for = module_.getOrInsertFunction("tw_parallel_for", b.getVoidTy(), b.getPtrTy(),
                                                  b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(),
                                                  b.getInt32Ty());
  llvm::cast<llvm::Function>(parallel_for.getCallee())
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  b.CreateCall(parallel_for, {function_.env, make_thunk(body, packed), slot,
                              b.CreateTrunc(division.parts, b.getInt32Ty()),
                              b.CreateTrunc(division.chunks, b.getInt32Ty())});
}

void KernelEmitter::emit_parallel(const stmt::Loop& loop) {
  auto& b = v_.b;
  expressions_.forget();
  shared_ = {shared_loop(kernel_, loop), loop.var, nullptr, nullptr};
  std::vector<std::string> outer_vars;
  for (size_t i = 0; i + 1 < loops_.size(); ++i) outer_vars.push_back(loops_[i]->var);
  llvm::Function* body = start_function(symbol_ + ".parallel" + std::to_string(parallel_count_++),
                                        outer_vars.size() + 3, llvm::GlobalValue::InternalLinkage);
  std::vector<Value*> arguments;
  for (llvm::Argument& a : function_.value->args()) arguments.push_back(&a);
  for (const std::string& var : outer_vars) arguments.push_back(function_.vars.at(var));

  // Variables, as they must live until values are forgotten
  const Expr most = parts_here(), inner = shared_.loop ? shared_.loop->extent : Expr(1);
  Value *rows = expressions_.emit(loop.extent), *row = expressions_.emit(inner),
        *limit = expressions_.emit(most);
  Division divided;
  divided.extent = b.CreateMul(rows, row);
  divided.parts = part_count(divided.extent, limit);
  v_.branch(
      b.CreateICmpSGT(divided.parts, v_.i64(1)),
      [&]() -> Value* {
        divide_parts(divided, rows, row, limit);
        call_in_chunks(body, arguments, divided);
        return nullptr;
      },
      [&]() -> Value* {
        std::vector<Value*> whole = arguments;
        whole.push_back(v_.i64(0));
        whole.push_back(v_.i64(0));
        whole.push_back(divided.extent);
        b.CreateCall(body, whole);
        return nullptr;
      });

  emit_chunk(loop, body, outer_vars);
}

void KernelEmitter::emit_chunk(const stmt::Loop& loop, llvm::Function* body,
                               const std::vector<std::string>& outer_vars) {
  auto& b = v_.b;
  FunctionState outer = std::move(function_);
  llvm::IRBuilderBase::InsertPoint here = b.saveIP();
  in_parallel_ = true;
  unsigned count = static_cast<unsigned>(body->arg_size()),
           next = count - 3 - static_cast<unsigned>(outer_vars.size());
  enter(body, body->getArg(count - 3));
  for (const std::string& var : outer_vars) function_.vars[var] = body->getArg(next++);
  Value *begin = body->getArg(count - 2), *end = body->getArg(count - 1);
  if (shared_.loop) {  // the outer iterations that the chunk touches
    shared_.begin = begin;
    shared_.end = end;
    Value* inner = expressions_.emit(shared_.loop->extent);
    // An empty loop has no chunk; 1 only avoids the division by 0.
    inner = b.CreateSelect(b.CreateICmpEQ(inner, v_.i64(0)), v_.i64(1), inner);
    begin = b.CreateUDiv(begin, inner);
    end = b.CreateUDiv(b.CreateAdd(end, b.CreateSub(inner, v_.i64(1))), inner);
  }
  const Intrinsic* state = instructions_.set_up(loop.body, true);
  emit_serial(loop, begin, end);
  instructions_.tear_down(state);
  shared_ = {};
  b.CreateRetVoid();
  in_parallel_ = false;
  function_ = std::move(outer);
  b.restoreIP(here);
}

// Emits the part of the shared loop's present row that lies in this thread's chunk.
void KernelEmitter::emit_shared(const stmt::Loop& loop) {
  auto& b = v_.b;
  Value* extent = expressions_.emit(loop.extent);
  Value* row = b.CreateMul(function_.vars[shared_.outer], extent);
  Value *first = b.CreateSub(shared_.begin, row), *last = b.CreateSub(shared_.end, row);
  first = b.CreateSelect(b.CreateICmpSLT(first, v_.i64(0)), v_.i64(0), first);
  last = b.CreateSelect(b.CreateICmpSLT(extent, last), extent, last);
  emit_serial(loop, first, last);
}
}  // namespace tw::codegen
