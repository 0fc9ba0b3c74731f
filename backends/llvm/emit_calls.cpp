#include "backends/llvm/emit_calls.h"

#include <algorithm>

#include "backends/llvm/emit_program.h"
#include "ir/simplify.h"
#include "runtime/tilewright.h"

namespace tw::codegen {

llvm::Value* CallEmitter::address(const Operand& o, const Environment& at) {
  Value* base = nullptr;
  if (auto made = at.made.find({o.place, o.index}); made != at.made.end()) base = made->second;
  else switch (o.place) {
      case Place::growable:
        TW_UNREACHABLE("growable buffer {0} is used before it is made", o.index);
      case Place::input: base = nth_pointer(at.inputs, o.index); break;
      case Place::output: base = nth_pointer(at.outputs, o.index); break;
      case Place::arena: base = at.arena; break;
      case Place::weights: base = at.weights; break;
    }
  return is_const(o.offset, 0) ? base
                               : b_.CreateGEP(b_.getInt8Ty(), base, number(o.offset, at.vars));
}

llvm::Value* CallEmitter::device_offset(const Operand& o, int device, const Environment& at) {
  Value* offset = number(o.offset, at.vars);
  switch (o.place) {
    case Place::weights: return offset;
    case Place::growable: TW_UNREACHABLE("growable buffer {0} on a device", o.index);
    case Place::input:
    case Place::output:
      return b_.CreateAdd(
          offset,
          b_.CreatePtrToInt(nth_pointer(o.place == Place::input ? at.inputs : at.outputs, o.index),
                            b_.getInt64Ty()));
    case Place::arena:
      if (!at.workspaces) return offset;
      return b_.CreateAdd(
          offset,
          b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), at.workspaces,
                                                               static_cast<uint64_t>(device) - 1)));
  }
  TW_UNREACHABLE("bad place");
}

llvm::Value* CallEmitter::handle(const Operand& o, int device, const Environment& at) {
  return device == 0 ? address(o, at)
                     : b_.CreateIntToPtr(device_offset(o, device, at), b_.getPtrTy());
}

void CallEmitter::emit_call(const KernelCall& call, const Environment& at) {
  std::vector<Value*> arguments = {at.env};
  for (const Operand& o : call.arguments) arguments.push_back(address(o, at));
  arguments.push_back(address({call.workspace_buffer < 0 ? Place::arena : Place::growable,
                               call.workspace_buffer, call.workspace},
                              at));
  for (const Expr& s : call.symbols) arguments.push_back(number(s, at.vars));
  b_.CreateCall(kernel(call.kernel, arguments), arguments);
}

void CallEmitter::emit_step(const SizeStep& step, const Symbols& symbols, Environment& at) {
  const auto limit = [&](const Expr& e, int64_t none) {
    return e.defined() ? number(e, at.vars) : b_.getInt64(static_cast<uint64_t>(none));
  };
  switch (step.kind) {
    case SizeStep::Kind::read: {
      Value* element = b_.CreateAlignedLoad(
          b_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(step.dtype))), address(step.at, at),
          llvm::Align(1));
      Value* value = b_.CreateIntCast(element, b_.getInt64Ty(), is_signed_int(step.dtype));
      const auto index = static_cast<size_t>(step.symbol);
      Value* place = b_.CreateConstGEP1_64(b_.getInt64Ty(), at.symbols,
                                           symbols.given.size() + index);
      end_unless_ok(runtime("tw_symbol",
                            {at.env, place, value, limit(step.bound, INT64_MAX),
                             limit(step.equals, -1), text(step.what)},
                            b_.getInt32Ty()));
      at.vars[symbols.read[index]] = value;
      return;
    }
    case SizeStep::Kind::check: {
      const auto* equality = as_binary(step.equals, BinaryOp::eq);
      const Expr left = equality ? equality->a : Expr(0), right = equality ? equality->b : Expr(0);
      return end_unless_ok(
          runtime("tw_require",
                  {at.env, b_.CreateZExt(holds(step.equals, at.vars), b_.getInt32Ty()),
                   number(left, at.vars), number(right, at.vars), text(step.what)},
                  b_.getInt32Ty()));
    }
    case SizeStep::Kind::within: {
      return end_unless_ok(runtime(
          "tw_look",
          {at.env, address(step.at, at),
           b_.getInt32(static_cast<uint32_t>(dtype_bytes(step.dtype))), number(step.bytes, at.vars),
           limit(step.least, 1), limit(step.bound, 1), text(step.what)},
          b_.getInt32Ty()));
    }
    case SizeStep::Kind::grow: {
      const auto index = static_cast<uint32_t>(growable_number(step.at));
      Value* memory = at.growable ? b_.CreateConstGEP1_64(b_.getPtrTy(), at.growable, index)
                                  : local(b_.getPtrTy());
      end_unless_ok(runtime("tw_grow",
                            {at.env, b_.getInt32(index), counted(step.bytes, at.vars), memory},
                            b_.getInt32Ty()));
      at.made[{step.at.place, step.at.index}] = b_.CreateLoad(b_.getPtrTy(), memory);
      return;
    }
  }
}

Expr CallEmitter::bound(Expr e, const KernelCall& call) const {
  const Kernel& kernel = program_.kernels[static_cast<size_t>(call.kernel)];
  for (size_t s = 0; s < kernel.symbols.size(); ++s)
    e = substitute(e, kernel.symbols[s], call.symbols[s]);
  return simplify(e);
}

uint32_t CallEmitter::tensor_number(const Operand& o) const {
  if (o.place != Place::input && o.place != Place::output) return 0;
  return static_cast<uint32_t>(1 + o.index) +
         (o.place == Place::output ? static_cast<uint32_t>(program_.inputs.size()) : 0);
}

uint64_t CallEmitter::host_calls() const {
  const auto needs = [&](const KernelCall& call) {
    return call.is_transfer() ? tensor_number(host_side(call)) == 0 : call.device == 0;
  };
  return static_cast<uint64_t>(std::count_if(program_.calls.begin(), program_.calls.end(), needs));
}

llvm::Value* CallEmitter::copied_bytes(const KernelCall& call, const Environment& at) {
  const Buffer& copied = program_.kernels[static_cast<size_t>(call.kernel)].buffers.front();
  Expr bytes = dtype_bytes(copied.dtype);
  for (const Expr& extent : copied.shape) bytes = bytes * extent;
  return number(bound(bytes, call), at.vars);
}

void CallEmitter::emit_transfer(const KernelCall& call, const Environment& at) {
  const bool out = call.device == 0;
  const int device = std::max(call.device, call.from);
  // Numbers of tensors are the model's, and a region does not see the model's tensors.
  const uint32_t tensor = at.workspaces ? 0 : tensor_number(host_side(call));
  runtime(out ? "tw_device_read" : "tw_device_write",
          {at.env, b_.getInt32(static_cast<uint32_t>(device) - 1),
           device_offset(call.arguments[out ? 0 : 1], device, at), address(host_side(call), at),
           copied_bytes(call, at), b_.getInt32(tensor)});
}

void CallEmitter::emit_move(const KernelCall& call, const Environment& at) {
  runtime("tw_device_move",
          {at.env, b_.getInt32(static_cast<uint32_t>(call.device) - 1),
           device_offset(call.arguments[1], call.device, at),
           device_offset(call.arguments[0], call.device, at), copied_bytes(call, at),
           b_.getInt32(call.arguments[0].place == Place::weights)});
}

void CallEmitter::emit_launches(const KernelCall& call, const Environment& at) {
  const size_t device = static_cast<size_t>(call.device) - 1;
  const std::vector<DeviceLaunch>& launches =
      program_.devices[device].launches[static_cast<size_t>(call.kernel)];
  for (size_t l = 0; l < launches.size(); ++l) {
    const DeviceLaunch& launch = launches[l];
    std::vector<Value*> arguments;
    for (size_t d = 0; d < 3; ++d)
      arguments.push_back(
          number(bound(floor_div(launch.global[d], launch.local[d]), call), at.vars));
    for (const Expr& e : launch.local) arguments.push_back(number(bound(e, call), at.vars));
    for (int buffer : launch.buffers) {
      const Operand operand = buffer < 0 ? Operand{Place::arena, 0, call.workspace}
                                         : call.arguments[static_cast<size_t>(buffer)];
      arguments.push_back(b_.getInt64(operand.place == Place::weights));
      arguments.push_back(device_offset(operand, call.device, at));
    }
    for (int symbol : launch.symbols)
      arguments.push_back(number(call.symbols[static_cast<size_t>(symbol)], at.vars));
    Value* list = local(b_.getInt64Ty(), arguments.size());
    for (size_t a = 0; a < arguments.size(); ++a)
      b_.CreateStore(arguments[a], b_.CreateConstGEP1_64(b_.getInt64Ty(), list, a));
    runtime("tw_device_launch",
            {at.env, b_.getInt32(static_cast<uint32_t>(device)),
             b_.getInt32(first_launch(device, call.kernel) + static_cast<uint32_t>(l)), list});
  }
}

uint32_t CallEmitter::first_launch(size_t device, int kernel) const {
  size_t count = 0;
  for (int k = 0; k < kernel; ++k)
    count += program_.devices[device].launches[static_cast<size_t>(k)].size();
  return static_cast<uint32_t>(count);
}

llvm::Value* CallEmitter::views(const KernelCall& call, const std::vector<ExternCall::View>& list,
                                const Environment& at) {
  Value* table = local(view_type_, std::max<size_t>(list.size(), 1));
  for (size_t i = 0; i < list.size(); ++i) {
    const ExternCall::View& view = list[i];
    const bool present = view.argument >= 0;
    Value* entry = b_.CreateConstGEP1_64(view_type_, table, i);
    Value* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
    store_fields(view_type_, entry,
                 {present ? address(call.arguments[static_cast<size_t>(view.argument)], at) : null,
                  present ? extents(view.dims, at.vars) : null,
                  b_.getInt32(present ? static_cast<uint32_t>(view.dims.size()) : ~0u),
                  b_.getInt32(static_cast<uint32_t>(dtype_info(view.dtype).onnx))});
  }
  return table;
}

void CallEmitter::emit_extern(const KernelCall& call, const Environment& at) {
  const ExternCall& f = *call.function;
  std::vector<Constant*> ints, reals;
  for (int64_t v : f.ints) ints.push_back(b_.getInt64(static_cast<uint64_t>(v)));
  for (double v : f.reals) reals.push_back(llvm::ConstantFP::get(b_.getDoubleTy(), v));
  auto count = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
  Value *in = views(call, f.inputs, at), *out = views(call, f.outputs, at),
        *args = local(args_type_);
  Value* run = b_.CreateLoad(b_.getInt64Ty(), env_place(at.env, EnvField::run));
  store_fields(
      args_type_, args,
      {in, out, array(b_.getInt64Ty(), ints), array(b_.getDoubleTy(), reals),
       env_field(at.env, EnvField::error), env_field(at.env, EnvField::strings), text(f.what), run,
       count(f.inputs.size()), count(f.outputs.size()), count(ints.size()), count(reals.size())});
  auto callee = module_.getOrInsertFunction(
      "tw_op_" + f.function, llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy()}, false));
  llvm::cast<llvm::Function>(callee.getCallee())
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  end_unless_ok(b_.CreateCall(callee, {args}));
}

llvm::Function* CallEmitter::emit_calls(bool profiled, size_t begin, size_t end) {
  Value* before = nullptr;
  const auto clock = [&] {
    return b_.CreateCall(module_.getOrInsertFunction("tw_clock_ns", b_.getInt64Ty()));
  };
  const auto start_clock = [&](const Environment&) {
    if (profiled) before = clock();
  };
  // The steps behind the last call of a path belong to the next path.
  return emit_in_parts(
      profiled ? "tw_program_profiled" : "tw_program_plain",
      {begin, end, program_.steps, program_.fast_paths.empty()},
      {program_.symbols, program_.data_symbols}, start_clock, [&](size_t c, const Environment& at) {
        const KernelCall& call = program_.calls[c];
        emit_any_call(call, at);
        if (!profiled) return;
        const bool regions = call.function && call.function->region;
        for (size_t d = 0; d < program_.devices.size(); ++d)
          if (regions || call.device == static_cast<int>(d) + 1)
            runtime("tw_device_wait", {at.env, b_.getInt32(static_cast<uint32_t>(d))});
        Value* after = clock();
        runtime("tw_called", {at.env, b_.getInt32(static_cast<uint32_t>(c)), before, after});
        before = after;
      });
}

CallEmitter::Environment CallEmitter::environment(Value* env,
                                                  const std::vector<std::string>& names) {
  Value *inputs = env_field(env, EnvField::inputs), *outputs = env_field(env, EnvField::outputs),
        *arena = env_field(env, EnvField::arena), *weights = env_field(env, EnvField::weights);
  return {env, inputs, outputs, arena, weights, env_field(env, EnvField::symbols), names};
}

void CallEmitter::emit_any_call(const KernelCall& call, const Environment& at) {
  if (call.is_transfer()) emit_transfer(call, at);
  else if (call.moves) emit_move(call, at);
  else if (call.device) emit_launches(call, at);
  else emit_host_call(call, at);
}

llvm::Function* CallEmitter::emit_in_parts(const std::string& name, const Calls& calls,
                                           const Symbols& symbols, const BeginPart& begin_part,
                                           const EmitCall& emit_one) {
  const auto& [begin, end, steps, steps_behind, at_end] = calls;
  auto step = std::ranges::lower_bound(steps, begin, {}, &SizeStep::before);
  const auto emit = [&](size_t first, size_t last, Environment& at) {
    if (begin_part) begin_part(at);
    at.vars = load_symbols(at.names, at.symbols);
    const auto steps_before = [&](size_t call) {
      for (; step != steps.end() && step->before == call; ++step) emit_step(*step, symbols, at);
    };
    for (size_t c = first; c < last; ++c) {
      end_if_cancelled(at.env);
      steps_before(c);
      emit_one(c, at);
    }
    if (last == end && steps_behind) steps_before(end);
    if (last == end && at_end) at_end(at);
  };
  if (end - begin <= kCallsAPart) {
    llvm::Function* f = start(name, b_.getInt32Ty(), {b_.getPtrTy()});
    Environment at = environment(f->getArg(0), symbols.given);
    emit(begin, end, at);
    b_.CreateRet(b_.getInt32(TW_OK));
    return f;
  }
  // Later parts find the numbers that a part has read in the context's symbols, and addresses of
  // growable buffers in a table of the enclosing function.
  std::vector<llvm::Function*> parts;
  std::vector<std::string> names = symbols.given;
  names.resize(symbols.given.size() + symbols.read.size());
  Environment last{};
  for (size_t first = begin; first < end; first += kCallsAPart) {
    llvm::Function* part = parts.emplace_back(
        start(name + "_part", b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy()}));
    Environment at = environment(part->getArg(0), names);
    at.growable = part->getArg(1);
    for (const auto& [place, address] : last.made)
      at.made[place] = b_.CreateLoad(
          b_.getPtrTy(),
          b_.CreateConstGEP1_64(
              b_.getPtrTy(), at.growable,
              static_cast<uint64_t>(growable_number({place.first, place.second, 0}))));
    emit(first, std::min(end, first + kCallsAPart), at);
    b_.CreateRet(b_.getInt32(TW_OK));
    for (size_t i = 0; i < symbols.read.size(); ++i)
      if (at.vars.contains(symbols.read[i])) names[symbols.given.size() + i] = symbols.read[i];
    last = std::move(at);
  }
  llvm::Function* f = start(name, b_.getInt32Ty(), {b_.getPtrTy()});
  Value* growable = local(b_.getPtrTy(),
                          static_cast<size_t>(program_.growable_buffers) + program_.outputs.size());
  for (llvm::Function* part : parts) end_unless_ok(b_.CreateCall(part, {f->getArg(0), growable}));
  b_.CreateRet(b_.getInt32(TW_OK));
  return f;
}

llvm::FunctionCallee CallEmitter::kernel(int index, const std::vector<Value*>& arguments) {
  std::vector<Type*> types;
  for (Value* a : arguments) types.push_back(a->getType());
  std::string& symbol = kernel_symbols_[index];
  if (symbol.empty()) symbol = kernel_symbol(program_.kernels[static_cast<size_t>(index)]);
  auto callee = module_.getOrInsertFunction(symbol,
                                            llvm::FunctionType::get(b_.getVoidTy(), types, false));
  llvm::cast<llvm::Function>(callee.getCallee())
      ->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return callee;
}

}  // namespace tw::codegen
