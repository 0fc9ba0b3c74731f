// Programs inside a program: the branches of If, and the bodies of loops
#include <algorithm>

#include "backends/llvm/emit_calls.h"
#include "runtime/tilewright.h"

namespace tw::codegen {

void CallEmitter::emit_region(size_t number) {
  const Program& region = program_.regions[number];
  const auto with_workspaces = [&](const Environment& at) {
    Environment inside = at;
    if (!program_.devices.empty()) inside.workspaces = env_field(at.env, EnvField::workspaces);
    return inside;
  };
  emit_in_parts(region_symbol(number),
                {0, region.calls.size(), region.steps, true,
                 [&](const Environment& at) { end_region(region, at.env); }},
                {region.symbols, region.data_symbols}, nullptr,
                [&](size_t call, const Environment& at) {
                  emit_any_call(region.calls[call], with_workspaces(at));
                });
}

void CallEmitter::end_region(const Program& region, Value* env) {
  for (size_t d = 0; d < program_.devices.size(); ++d) {
    const int device = static_cast<int>(d) + 1;
    bool used = false, sent = false;  // since the processor last waited
    for (const KernelCall& call : region.calls) {
      used |= call.device == device || call.from == device;
      if (call.is_transfer() && call.device == device) sent = true;
      if (call.is_transfer() && call.from == device) sent = false;
    }
    if (used)
      end_unless_ok(runtime("tw_device_region_ends",
                            {env, b_.getInt32(static_cast<uint32_t>(d)), b_.getInt32(sent)},
                            b_.getInt32Ty()));
  }
}

void CallEmitter::emit_host_call(const KernelCall& call, const Environment& at) {
  if (!call.function) return emit_call(call, at);
  if (!call.function->region) return emit_extern(call, at);
  for (size_t d = 0; d < program_.devices.size(); ++d)
    end_unless_ok(runtime("tw_device_regions", {at.env, b_.getInt32(static_cast<uint32_t>(d))},
                          b_.getInt32Ty()));
  if (call.function->region->loop) emit_loop(call, at);
  else emit_choice(call, at);
}

llvm::Value* CallEmitter::operand_table(const KernelCall& call,
                                        std::span<const ExternCall::View> views, size_t lead,
                                        const Environment& at) {
  Value* list = local(b_.getPtrTy(), std::max<size_t>(lead + views.size(), 1));
  for (size_t i = 0; i < views.size(); ++i)
    b_.CreateStore(
        handle(call.arguments[static_cast<size_t>(views[i].argument)], views[i].device, at),
        b_.CreateConstGEP1_64(b_.getPtrTy(), list, lead + i));
  return list;
}

llvm::Value* CallEmitter::in_workspace(const KernelCall& call, const Expr& offset, int device,
                                       const Environment& at) {
  if (device != 0)
    return handle({Place::arena, 0,
                   call.function->region->workspaces[static_cast<size_t>(device) - 1] + offset},
                  device, at);
  return address({call.workspace_buffer < 0 ? Place::arena : Place::growable, call.workspace_buffer,
                  call.workspace + offset},
                 at);
}

llvm::Value* CallEmitter::region_workspaces(const KernelCall& call, const Environment& at) {
  const std::vector<Expr>& offsets = call.function->region->workspaces;
  if (offsets.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  Value* list = local(b_.getInt64Ty(), offsets.size());
  for (size_t d = 0; d < offsets.size(); ++d)
    b_.CreateStore(device_offset({Place::arena, 0, offsets[d]}, static_cast<int>(d) + 1, at),
                   b_.CreateConstGEP1_64(b_.getInt64Ty(), list, d));
  return list;
}

llvm::Value* CallEmitter::region_symbols(const Program& region, const std::string& iteration,
                                         const Environment& at) {
  const size_t count = region.symbols.size() + region.data_symbols.size();
  Value* list = local(b_.getInt64Ty(), std::max<size_t>(count, 1));
  for (size_t i = 0; i < region.symbols.size(); ++i)
    if (region.symbols[i] != iteration)
      b_.CreateStore(number(var(region.symbols[i]), at.vars),
                     b_.CreateConstGEP1_64(b_.getInt64Ty(), list, i));
  return list;
}

void CallEmitter::emit_choice(const KernelCall& call, const Environment& at) {
  const ExternCall& f = *call.function;
  Value* condition = b_.CreateLoad(
      b_.getInt8Ty(), address(call.arguments[static_cast<size_t>(f.inputs[0].argument)], at));
  Value *outputs = operand_table(call, f.outputs, 0, at), *workspaces = region_workspaces(call, at);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, function);
  };
  llvm::BasicBlock *blocks[] = {block("then"), block("else")}, *end = block("end");
  b_.CreateCondBr(b_.CreateICmpNE(condition, b_.getInt8(0)), blocks[0], blocks[1]);
  size_t first = 1;
  for (size_t k = 0; k < 2; ++k) {
    const auto number = static_cast<size_t>(f.region->regions[k]);
    const Program& region = program_.regions[number];
    b_.SetInsertPoint(blocks[k]);
    Value* env = local(env_type_);
    b_.CreateStore(b_.CreateLoad(env_type_, at.env), env);
    const std::pair<EnvField, Value*> own[] = {
        {EnvField::inputs,
         operand_table(call, std::span(f.inputs).subspan(first, region.inputs.size()), 0, at)},
        {EnvField::outputs, outputs},
        {EnvField::arena, in_workspace(call, 0, 0, at)},
        {EnvField::workspaces, workspaces}};
    for (const auto& [field, value] : own) b_.CreateStore(value, env_place(env, field));
    b_.CreateStore(region_symbols(region, "", at), env_place(env, EnvField::symbols));
    // A region's calls are not timed.
    b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()),
                   env_place(env, EnvField::call_ns));
    end_unless_ok(b_.CreateCall(module_.getFunction(region_symbol(number)), {env}));
    b_.CreateBr(end);
    first += region.inputs.size();
  }
  b_.SetInsertPoint(end);
}

void CallEmitter::emit_loop(const KernelCall& call, const Environment& at) {
  const ExternCall& f = *call.function;
  const RegionCall& loop = *f.region;
  const auto body = static_cast<size_t>(loop.regions[0]),
             lead = static_cast<size_t>(loop.conditional ? 1 : 0),
             carried = static_cast<size_t>(loop.carried);
  const std::vector<std::string>& names = program_.regions[body].symbols;
  const size_t stacked = f.outputs.size() - carried - lead;
  const auto outputs = std::span(f.outputs);
  Value *null = llvm::ConstantPointerNull::get(b_.getPtrTy()),
        *symbols = region_symbols(program_.regions[body], loop.iteration, at);
  Value* rows = operand_table(call, outputs.subspan(carried, stacked), lead + carried, at);
  if (loop.conditional) b_.CreateStore(in_workspace(call, loop.condition, 0, at), rows);
  Value* spare = local(b_.getPtrTy(), std::max<size_t>(carried, 1));
  std::vector<Constant*> places;  // places of carried values
  for (size_t i = 0; i < carried; ++i) {
    places.push_back(b_.getInt32(static_cast<uint32_t>(outputs[i].device)));
    b_.CreateStore(in_workspace(call, loop.spare[i], outputs[i].device, at),
                   b_.CreateConstGEP1_64(b_.getPtrTy(), spare, i));
  }
  const auto iteration = static_cast<size_t>(std::find(names.begin(), names.end(), loop.iteration) -
                                             names.begin());
  auto operand = [&](const ExternCall::View& view) {
    return address(call.arguments[static_cast<size_t>(view.argument)], at);
  };
  auto count = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
  const std::vector<Value*> fields = {
      module_.getFunction(region_symbol(body)),
      loop.trip.defined() ? number(loop.trip, at.vars) : b_.getInt64(INT64_MAX),
      operand_table(call, std::span(f.inputs).subspan(lead), 0, at),
      rows,
      operand_table(call, outputs.first(carried), 0, at),
      spare,
      extents(loop.bytes, at.vars),
      extents(loop.growth, at.vars),
      in_workspace(call, 0, 0, at),
      symbols,
      iteration < names.size() ? b_.CreateConstGEP1_64(b_.getInt64Ty(), symbols, iteration) : null,
      loop.conditional ? operand(f.inputs[0]) : null,
      loop.conditional ? operand(f.outputs.back()) : null,
      count(carried),
      count(static_cast<size_t>(loop.sliced)),
      count(stacked),
      array(b_.getInt32Ty(), places),
      region_workspaces(call, at),
      program_.devices.empty() ? null : mover()};
  std::vector<Type*> types;
  for (Value* field : fields) types.push_back(field->getType());
  llvm::StructType* type = llvm::StructType::get(module_.getContext(), types);
  Value* description = local(type);
  store_fields(type, description, fields);
  auto callee = module_.getOrInsertFunction(
      "tw_loop", llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy()}, false));
  llvm::cast<llvm::Function>(callee.getCallee())
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  end_unless_ok(b_.CreateCall(callee, {at.env, description}));
}

llvm::Value* CallEmitter::mover() {
  Type *n = b_.getInt64Ty(), *i = b_.getInt32Ty();
  auto callee = module_.getOrInsertFunction(
      "tw_device_move",
      llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), i, n, n, n, i}, false));
  llvm::cast<llvm::Function>(callee.getCallee())
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return callee.getCallee();
}

}  // namespace tw::codegen
