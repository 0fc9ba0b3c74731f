#include "backends/llvm/emit_program.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <span>

#include "ir/simplify.h"
#include "runtime/tilewright.h"

namespace tw {
namespace {

using llvm::Constant;
using llvm::Type;
using llvm::Value;
using Variables = std::map<std::string, Value*, std::less<>>;

class ProgramEmitter {
 public:
  ProgramEmitter(llvm::Module& module, const Program& program) : module_(module), program_(program), b_(module.getContext()) {
    Type* p = b_.getPtrTy();
    env_type_ = llvm::StructType::create({p, p, p, p, p, p, b_.getInt32Ty(), b_.getInt32Ty(), p, p, p, p, b_.getInt64Ty()}, "tw_env");
    view_type_ = llvm::StructType::create({p, p, b_.getInt32Ty(), b_.getInt32Ty()}, "tw_view");
    args_type_ = llvm::StructType::create({p, p, p, p, p, b_.getInt64Ty(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt32Ty()}, "tw_op_args");
  }

  void emit(const CodegenOptions& options, const std::string& cpu_features) {
    for (size_t number = 0; number < program_.regions.size(); ++number) emit_region(number);
    llvm::Function* program = emit_dispatch();
    llvm::Function* arena = emit_arena_bytes("tw_arena_bytes", program_.arena_bytes);
    llvm::Function* outputs = emit_dims("tw_output_dims", program_.outputs, false);
    llvm::Function* inputs = emit_dims("tw_input_dims", program_.inputs, false);
    llvm::Function* dims_of_run = emit_dims("tw_output_dims_of_run", program_.outputs, true);
    std::vector<Constant*> devices = device_descriptions(options);
    std::vector<Constant*> names;
    std::vector<Constant*> limits;
    for (const std::string& s : program_.symbols) {
      const SymbolLimits range = limits_of(program_.limits, s);
      names.push_back(text(interface_name(s)));
      for (const int64_t limit : {range.least, range.most}) limits.push_back(b_.getInt64(static_cast<uint64_t>(limit)));
    }
    auto* manifest = new llvm::GlobalVariable(module_, b_.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage, nullptr, "tw_manifest");
    manifest->setVisibility(llvm::GlobalValue::HiddenVisibility);
    auto i32 = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    std::vector<Constant*> fields = {
        text(program_.name), text(options.target_name), manifest,
        i32(program_.inputs.size()), i32(program_.outputs.size()), i32(program_.symbols.size()), i32(program_.calls.size()),
        tensor_infos(program_.inputs), tensor_infos(program_.outputs), array(b_.getPtrTy(), names),
        b_.getInt64(program_.weight_bytes), text(cpu_features), program, arena, outputs, inputs,
        array(device_type(), devices), b_.getInt64(devices.size()), b_.getInt64(host_calls()),
        i32(program_.data_symbols.size()), i32(static_cast<size_t>(program_.rooms)), array(b_.getInt64Ty(), limits), dims_of_run};
    Constant* description = llvm::ConstantStruct::getAnon(fields);
    auto* model = new llvm::GlobalVariable(module_, description->getType(), true, llvm::GlobalValue::ExternalLinkage, description, "tw_model");
    model->setVisibility(llvm::GlobalValue::HiddenVisibility);
    emit_query(options.symbol);
  }

 private:
  // Integer expressions of symbols; what division by zero gives is no one's business, so it acts as by one.
  Value* number(const Expr& e, const Variables& vars) {
    switch (e->kind) {
      case ExprKind::int_imm: return b_.getInt64(static_cast<uint64_t>(e->int_value));
      case ExprKind::var: {
        auto found = vars.find(e->name);
        TW_CHECK(found != vars.end(), "the program uses the unknown symbol '{0}'", e->name);
        return found->second;
      }
      case ExprKind::binary: return binary_number(e->binary, number(e->args[0], vars), number(e->args[1], vars));
      case ExprKind::select: return b_.CreateSelect(number(e->args[0], vars), number(e->args[1], vars), number(e->args[2], vars));
      case ExprKind::unary: {
        Value* x = number(e->args[0], vars);
        if (e->unary == UnaryOp::neg) return b_.CreateNeg(x);
        if (e->unary == UnaryOp::logical_not) return b_.CreateNot(x);
        break;
      }
      case ExprKind::cast:
        if (e->type == DType::i64) return b_.CreateZExtOrTrunc(number(e->args[0], vars), b_.getInt64Ty());
        break;
      case ExprKind::load: case ExprKind::float_imm: break;
    }
    TW_UNREACHABLE("not an expression of symbols: {0}", to_string(e));
  }

  Value* binary_number(BinaryOp op, Value* x, Value* y) {
    auto guarded = [&] { return b_.CreateSelect(b_.CreateICmpEQ(y, b_.getInt64(0)), b_.getInt64(1), y); };
    auto floor_rest = [&](Value* divisor) {
      Value* rest = b_.CreateSRem(x, divisor);
      Value* wrong = b_.CreateAnd(b_.CreateICmpNE(rest, b_.getInt64(0)), b_.CreateICmpSLT(b_.CreateXor(rest, divisor), b_.getInt64(0)));
      return b_.CreateSelect(wrong, b_.CreateAdd(rest, divisor), rest);
    };
    switch (op) {
      case BinaryOp::add: return b_.CreateAdd(x, y);
      case BinaryOp::sub: return b_.CreateSub(x, y);
      case BinaryOp::mul: return b_.CreateMul(x, y);
      case BinaryOp::div: return b_.CreateSDiv(x, guarded());
      case BinaryOp::mod: return b_.CreateSRem(x, guarded());
      case BinaryOp::floor_mod: return floor_rest(guarded());
      case BinaryOp::floor_div: {
        Value* divisor = guarded();
        return b_.CreateSDiv(b_.CreateSub(x, floor_rest(divisor)), divisor);
      }
      case BinaryOp::min: return b_.CreateSelect(b_.CreateICmpSLT(x, y), x, y);
      case BinaryOp::max: return b_.CreateSelect(b_.CreateICmpSGT(x, y), x, y);
      case BinaryOp::lt: return b_.CreateICmpSLT(x, y);
      case BinaryOp::le: return b_.CreateICmpSLE(x, y);
      case BinaryOp::eq: return b_.CreateICmpEQ(x, y);
      case BinaryOp::ne: return b_.CreateICmpNE(x, y);
      case BinaryOp::logical_and: case BinaryOp::bit_and: return b_.CreateAnd(x, y);
      case BinaryOp::logical_or: case BinaryOp::bit_or: return b_.CreateOr(x, y);
      case BinaryOp::logical_xor: case BinaryOp::bit_xor: return b_.CreateXor(x, y);
      case BinaryOp::shl: return b_.CreateShl(x, y);
      case BinaryOp::shr: return b_.CreateAShr(x, y);
      case BinaryOp::pow: break;
    }
    TW_UNREACHABLE("operator {0} in an expression of symbols", op_name(op));
  }

  // The model's symbols, then those made from data; of which only a run that has ended knows all.
  Variables load_symbols(Value* symbols, bool data = false) {
    std::vector<std::string> names = program_.symbols;
    if (data) names.insert(names.end(), program_.data_symbols.begin(), program_.data_symbols.end());
    return load_symbols(names, symbols);
  }
  Variables load_symbols(const std::vector<std::string>& names, Value* symbols) {
    Variables vars;
    for (size_t i = 0; i < names.size(); ++i)
      vars[names[i]] = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), symbols, i), names[i]);
    return vars;
  }

  llvm::Function* start(const std::string& name, Type* result, llvm::ArrayRef<Type*> parameters) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false), llvm::GlobalValue::InternalLinkage, name, module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
    return f;
  }

  Value* env_field(Value* env, unsigned index) { return b_.CreateLoad(b_.getPtrTy(), b_.CreateStructGEP(env_type_, env, index)); }

  struct Environment {
    Value *env, *inputs, *outputs, *arena, *weights;
    Variables vars;
    std::map<std::pair<Place, int>, Value*> made{};     // outputs of unknown size, and rooms
  };

  // Where an operand lies in the processor's memory.
  Value* address(const Operand& o, const Environment& at) {
    Value* base = nullptr;
    if (auto made = at.made.find({o.place, o.index}); made != at.made.end()) base = made->second;
    else switch (o.place) {
      case Place::room: TW_UNREACHABLE("room {0} is used before it is made", o.index);
      case Place::input: base = nth_pointer(at.inputs, o.index); break;
      case Place::output: base = nth_pointer(at.outputs, o.index); break;
      case Place::arena: base = at.arena; break;
      case Place::weights: base = at.weights; break;
    }
    return is_const(o.offset, 0) ? base : b_.CreateGEP(b_.getInt8Ty(), base, number(o.offset, at.vars));
  }

  void emit_call(const KernelCall& call, const Environment& at) {
    std::vector<Value*> arguments = {at.env};
    for (const Operand& o : call.arguments) arguments.push_back(address(o, at));
    arguments.push_back(address({call.workspace_room < 0 ? Place::arena : Place::room, call.workspace_room, call.workspace}, at));
    for (const Expr& s : call.symbols) arguments.push_back(number(s, at.vars));
    b_.CreateCall(kernel(call.kernel, arguments), arguments);
  }

  Value* runtime(const char* function, const std::vector<Value*>& arguments, Type* result = nullptr) {
    std::vector<Type*> types;
    for (Value* a : arguments) types.push_back(a->getType());
    return b_.CreateCall(module_.getOrInsertFunction(function, llvm::FunctionType::get(result ? result : b_.getVoidTy(), types, false)), arguments);
  }

  void emit_step(const SizeStep& step, Environment& at) {
    const auto limit = [&](const Expr& e, int64_t none) { return e.defined() ? number(e, at.vars) : b_.getInt64(static_cast<uint64_t>(none)); };
    switch (step.kind) {
      case SizeStep::Kind::read: {
        Value* element = b_.CreateAlignedLoad(b_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(step.dtype))), address(step.at, at), llvm::Align(1));
        Value* value = b_.CreateIntCast(element, b_.getInt64Ty(), is_signed_int(step.dtype));
        end_unless_ok(runtime("tw_symbol", {at.env, b_.getInt32(static_cast<uint32_t>(step.symbol)), value, limit(step.bound, INT64_MAX), limit(step.equals, -1), text(step.what)},
                              b_.getInt32Ty()));
        at.vars[program_.data_symbols[static_cast<size_t>(step.symbol)]] = value;
        return;
      }
      case SizeStep::Kind::check: {
        return end_unless_ok(runtime("tw_require", {at.env, b_.CreateZExt(number(step.equals, at.vars), b_.getInt32Ty()), text(step.what)}, b_.getInt32Ty()));
      }
      case SizeStep::Kind::room: {
        const int index = step.at.index + (step.at.place == Place::output ? program_.rooms : 0);
        Value* memory = local(b_.getPtrTy());
        end_unless_ok(runtime("tw_room", {at.env, b_.getInt32(static_cast<uint32_t>(index)), number(step.bytes, at.vars), memory}, b_.getInt32Ty()));
        at.made[{step.at.place, step.at.index}] = b_.CreateLoad(b_.getPtrTy(), memory);
        return;
      }
    }
  }

  // The kernel's symbols as the call binds them.
  Expr bound(Expr e, const KernelCall& call) const {
    const Kernel& kernel = program_.kernels[static_cast<size_t>(call.kernel)];
    for (size_t s = 0; s < kernel.symbols.size(); ++s) e = substitute(e, kernel.symbols[s], call.symbols[s]);
    return simplify(e);
  }

  // Of a transfer: the side that is not the device's.
  static const Operand& host_side(const KernelCall& call) { return call.arguments[call.device == 0 ? 1 : 0]; }

  // As runtime/model.h counts tensors: 0 is none.
  uint32_t tensor_number(const Operand& o) const {
    if (o.place != Place::input && o.place != Place::output) return 0;
    return static_cast<uint32_t>(1 + o.index) + (o.place == Place::output ? static_cast<uint32_t>(program_.inputs.size()) : 0);
  }

  // Calls that need the processor between what devices do.
  uint64_t host_calls() const {
    const auto needs = [&](const KernelCall& call) { return call.is_transfer() ? tensor_number(host_side(call)) == 0 : call.device == 0; };
    return static_cast<uint64_t>(std::count_if(program_.calls.begin(), program_.calls.end(), needs));
  }

  void emit_transfer(const KernelCall& call, const Environment& at) {
    const Buffer& copied = program_.kernels[static_cast<size_t>(call.kernel)].buffers.front();
    Expr bytes = dtype_bytes(copied.dtype);
    for (const Expr& extent : copied.shape) bytes = bytes * extent;
    const bool out = call.device == 0;
    const Operand& there = call.arguments[out ? 0 : 1];
    runtime(out ? "tw_device_read" : "tw_device_write",
            {at.env, b_.getInt32(static_cast<uint32_t>(std::max(call.device, call.from)) - 1), number(there.offset, at.vars),
             address(host_side(call), at), number(bound(bytes, call), at.vars), b_.getInt32(tensor_number(host_side(call)))});
  }

  // As runtime/model.h says the arguments of tw_device_launch.
  void emit_launches(const KernelCall& call, const Environment& at) {
    const size_t device = static_cast<size_t>(call.device) - 1;
    const std::vector<DeviceLaunch>& launches = program_.devices[device].launches[static_cast<size_t>(call.kernel)];
    for (size_t l = 0; l < launches.size(); ++l) {
      const DeviceLaunch& launch = launches[l];
      std::vector<Value*> arguments;
      for (size_t d = 0; d < 3; ++d) arguments.push_back(number(bound(floor_div(launch.global[d], launch.local[d]), call), at.vars));
      for (const Expr& e : launch.local) arguments.push_back(number(bound(e, call), at.vars));
      for (int buffer : launch.buffers) {
        const Operand operand = buffer < 0 ? Operand{Place::arena, 0, call.workspace} : call.arguments[static_cast<size_t>(buffer)];
        arguments.push_back(b_.getInt64(operand.place == Place::weights));
        arguments.push_back(number(operand.offset, at.vars));
      }
      for (int symbol : launch.symbols) arguments.push_back(number(call.symbols[static_cast<size_t>(symbol)], at.vars));
      Value* list = local(b_.getInt64Ty(), arguments.size());
      for (size_t a = 0; a < arguments.size(); ++a) b_.CreateStore(arguments[a], b_.CreateConstGEP1_64(b_.getInt64Ty(), list, a));
      runtime("tw_device_launch", {at.env, b_.getInt32(static_cast<uint32_t>(device)), b_.getInt32(first_launch(device, call.kernel) + static_cast<uint32_t>(l)), list});
    }
  }

  // Launches of a device are numbered kernel by kernel.
  uint32_t first_launch(size_t device, int kernel) const {
    size_t count = 0;
    for (int k = 0; k < kernel; ++k) count += program_.devices[device].launches[static_cast<size_t>(k)].size();
    return static_cast<uint32_t>(count);
  }

  // Memory of the running function, allotted once.
  Value* local(Type* type, size_t count = 1) {
    llvm::BasicBlock& first = b_.GetInsertBlock()->getParent()->getEntryBlock();
    return llvm::IRBuilder<>(&first, first.begin()).CreateAlloca(type, b_.getInt64(count));
  }

  // Extents of a view: a constant where they are known.
  Value* extents(const std::vector<Expr>& dims, const Variables& vars) {
    std::vector<Constant*> known;
    for (const Expr& dim : dims)
      if (const auto value = as_const(dim)) known.push_back(b_.getInt64(static_cast<uint64_t>(*value)));
    if (known.size() == dims.size()) return array(b_.getInt64Ty(), known);
    Value* list = local(b_.getInt64Ty(), dims.size());
    for (size_t d = 0; d < dims.size(); ++d) b_.CreateStore(number(dims[d], vars), b_.CreateConstGEP1_64(b_.getInt64Ty(), list, d));
    return list;
  }

  Value* views(const KernelCall& call, const std::vector<ExternCall::View>& list, const Environment& at) {
    Value* table = local(view_type_, std::max<size_t>(list.size(), 1));
    for (size_t i = 0; i < list.size(); ++i) {
      const ExternCall::View& view = list[i];
      const bool present = view.argument >= 0;
      Value* entry = b_.CreateConstGEP1_64(view_type_, table, i);
      Value* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
      store_fields(view_type_, entry, {present ? address(call.arguments[static_cast<size_t>(view.argument)], at) : null, present ? extents(view.dims, at.vars) : null,
                                       b_.getInt32(present ? static_cast<uint32_t>(view.dims.size()) : ~0u),
                                       b_.getInt32(static_cast<uint32_t>(dtype_info(view.dtype).onnx))});
    }
    return table;
  }

  void store_fields(llvm::StructType* type, Value* to, const std::vector<Value*>& values) {
    for (unsigned i = 0; i < values.size(); ++i) b_.CreateStore(values[i], b_.CreateStructGEP(type, to, i));
  }

  // A function of runtime/ops, as ops.h says its arguments; a status other than TW_OK ends the program.
  void emit_extern(const KernelCall& call, const Environment& at) {
    const ExternCall& f = *call.function;
    std::vector<Constant*> ints, reals;
    for (int64_t v : f.ints) ints.push_back(b_.getInt64(static_cast<uint64_t>(v)));
    for (double v : f.reals) reals.push_back(llvm::ConstantFP::get(b_.getDoubleTy(), v));
    auto count = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    Value *in = views(call, f.inputs, at), *out = views(call, f.outputs, at), *args = local(args_type_);
    Value* run = b_.CreateLoad(b_.getInt64Ty(), b_.CreateStructGEP(env_type_, at.env, 12));
    store_fields(args_type_, args, {in, out, array(b_.getInt64Ty(), ints), array(b_.getDoubleTy(), reals), env_field(at.env, 11), run,
                                    count(f.inputs.size()), count(f.outputs.size()), count(ints.size()), count(reals.size())});
    auto callee = module_.getOrInsertFunction("tw_op_" + f.function, llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy()}, false));
    llvm::cast<llvm::Function>(callee.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    end_unless_ok(b_.CreateCall(callee, {args}));
  }

  static std::string region_symbol(size_t number) { return "tw_region_" + std::to_string(number); }

  // i32 (ptr env): the calls of a region, on what the call that runs it gives it.
  void emit_region(size_t number) {
    const Program& region = program_.regions[number];
    llvm::Function* f = start(region_symbol(number), b_.getInt32Ty(), {b_.getPtrTy()});
    Value* env = f->getArg(0);
    Environment at{env, env_field(env, 0), env_field(env, 1), env_field(env, 2), env_field(env, 3), load_symbols(region.symbols, env_field(env, 4))};
    auto step = region.steps.begin();
    for (size_t c = 0; c < region.calls.size(); ++c) {
      for (; step != region.steps.end() && step->before == c; ++step) emit_step(*step, at);
      emit_host_call(region.calls[c], at);
    }
    b_.CreateRet(b_.getInt32(TW_OK));
  }

  void emit_host_call(const KernelCall& call, const Environment& at) {
    if (!call.function) emit_call(call, at);
    else if (!call.function->region) emit_extern(call, at);
    else if (call.function->region->loop) emit_loop(call, at);
    else emit_choice(call, at);
  }

  // The addresses of a call's operands, behind `lead` free places.
  Value* operand_table(const KernelCall& call, std::span<const ExternCall::View> views, size_t lead, const Environment& at) {
    Value* list = local(b_.getPtrTy(), std::max<size_t>(lead + views.size(), 1));
    for (size_t i = 0; i < views.size(); ++i)
      b_.CreateStore(address(call.arguments[static_cast<size_t>(views[i].argument)], at), b_.CreateConstGEP1_64(b_.getPtrTy(), list, lead + i));
    return list;
  }

  Value* in_workspace(const KernelCall& call, const Expr& offset, const Environment& at) {
    return address({call.workspace_room < 0 ? Place::arena : Place::room, call.workspace_room, call.workspace + offset}, at);
  }

  // The values of a region's symbols; a loop writes its turn itself.
  Value* region_symbols(const Program& region, const std::string& turn, const Environment& at) {
    Value* list = local(b_.getInt64Ty(), std::max<size_t>(region.symbols.size(), 1));
    for (size_t i = 0; i < region.symbols.size(); ++i)
      if (region.symbols[i] != turn) b_.CreateStore(number(var(region.symbols[i]), at.vars), b_.CreateConstGEP1_64(b_.getInt64Ty(), list, i));
    return list;
  }

  // One of two regions, by a bool.
  void emit_choice(const KernelCall& call, const Environment& at) {
    const ExternCall& f = *call.function;
    Value* condition = b_.CreateLoad(b_.getInt8Ty(), address(call.arguments[static_cast<size_t>(f.inputs[0].argument)], at));
    Value* outputs = operand_table(call, f.outputs, 0, at);
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, function); };
    llvm::BasicBlock *blocks[] = {block("then"), block("else")}, *end = block("end");
    b_.CreateCondBr(b_.CreateICmpNE(condition, b_.getInt8(0)), blocks[0], blocks[1]);
    size_t first = 1;
    for (size_t k = 0; k < 2; ++k) {
      const auto number = static_cast<size_t>(f.region->regions[k]);
      const Program& region = program_.regions[number];
      b_.SetInsertPoint(blocks[k]);
      Value* env = local(env_type_);
      b_.CreateStore(b_.CreateLoad(env_type_, at.env), env);
      Value* own[] = {operand_table(call, std::span(f.inputs).subspan(first, region.inputs.size()), 0, at), outputs, in_workspace(call, 0, at)};
      for (unsigned field = 0; field < 3; ++field) b_.CreateStore(own[field], b_.CreateStructGEP(env_type_, env, field));
      b_.CreateStore(region_symbols(region, "", at), b_.CreateStructGEP(env_type_, env, 4));
      b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), b_.CreateStructGEP(env_type_, env, 8));   // no times of its calls
      end_unless_ok(b_.CreateCall(module_.getFunction(region_symbol(number)), {env}));
      b_.CreateBr(end);
      first += region.inputs.size();
    }
    b_.SetInsertPoint(end);
  }

  // By tw_loop of the runtime, which runtime/control.h tells about.
  void emit_loop(const KernelCall& call, const Environment& at) {
    const ExternCall& f = *call.function;
    const RegionCall& loop = *f.region;
    const auto body = static_cast<size_t>(loop.regions[0]), lead = static_cast<size_t>(loop.conditional ? 1 : 0), carried = static_cast<size_t>(loop.carried);
    const std::vector<std::string>& names = program_.regions[body].symbols;
    const size_t stacked = f.outputs.size() - carried - lead;
    const auto outputs = std::span(f.outputs);
    Value *null = llvm::ConstantPointerNull::get(b_.getPtrTy()), *symbols = region_symbols(program_.regions[body], loop.turn, at);
    Value* rows = operand_table(call, outputs.subspan(carried, stacked), lead + carried, at);
    if (loop.conditional) b_.CreateStore(in_workspace(call, loop.condition, at), rows);
    Value* spare = local(b_.getPtrTy(), std::max<size_t>(carried, 1));
    for (size_t i = 0; i < carried; ++i) b_.CreateStore(in_workspace(call, loop.spare[i], at), b_.CreateConstGEP1_64(b_.getPtrTy(), spare, i));
    const auto turn = static_cast<size_t>(std::find(names.begin(), names.end(), loop.turn) - names.begin());
    auto operand = [&](const ExternCall::View& view) { return address(call.arguments[static_cast<size_t>(view.argument)], at); };
    auto count = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    const std::vector<Value*> fields = {
        module_.getFunction(region_symbol(body)), loop.trip.defined() ? number(loop.trip, at.vars) : b_.getInt64(INT64_MAX),
        operand_table(call, std::span(f.inputs).subspan(lead), 0, at), rows, operand_table(call, outputs.first(carried), 0, at), spare,
        extents(loop.bytes, at.vars), extents(loop.growth, at.vars), in_workspace(call, 0, at), symbols,
        turn < names.size() ? b_.CreateConstGEP1_64(b_.getInt64Ty(), symbols, turn) : null,
        loop.conditional ? operand(f.inputs[0]) : null, loop.conditional ? operand(f.outputs.back()) : null,
        count(carried), count(static_cast<size_t>(loop.sliced)), count(stacked)};
    std::vector<Type*> types;
    for (Value* field : fields) types.push_back(field->getType());
    llvm::StructType* type = llvm::StructType::get(module_.getContext(), types);
    Value* description = local(type);
    store_fields(type, description, fields);
    auto callee = module_.getOrInsertFunction("tw_loop", llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy()}, false));
    llvm::cast<llvm::Function>(callee.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    end_unless_ok(b_.CreateCall(callee, {at.env, description}));
  }

  void end_unless_ok(Value* status) {
    llvm::Function* f = b_.GetInsertBlock()->getParent();
    auto* failed = llvm::BasicBlock::Create(module_.getContext(), "failed", f);
    auto* next = llvm::BasicBlock::Create(module_.getContext(), "next", f);
    b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(TW_OK)), next, failed);
    b_.SetInsertPoint(failed);
    b_.CreateRet(status);
    b_.SetInsertPoint(next);
  }

  // i32 (ptr env): every call in order; profiled, with the nanoseconds of each stored to env->call_ns.
  // Of the calls that stand together in [begin, end).
  llvm::Function* emit_calls(bool profiled, size_t begin, size_t end) {
    llvm::Function* f = start(profiled ? "tw_program_profiled" : "tw_program_plain", b_.getInt32Ty(), {b_.getPtrTy()});
    Value* env = f->getArg(0);
    Value *inputs = env_field(env, 0), *outputs = env_field(env, 1), *arena = env_field(env, 2), *weights = env_field(env, 3);
    Value* symbols = env_field(env, 4);
    Value* call_ns = profiled ? env_field(env, 8) : nullptr;
    auto clock = [&] { return b_.CreateCall(module_.getOrInsertFunction("tw_clock_ns", b_.getInt64Ty())); };
    Value* before = profiled ? clock() : nullptr;
    Environment at{env, inputs, outputs, arena, weights, load_symbols(symbols)};
    auto step = program_.steps.begin();
    const auto steps_before = [&](size_t call) {
      for (; step != program_.steps.end() && step->before == call; ++step) emit_step(*step, at);
    };
    for (size_t c = begin; c < end; ++c) {
      const KernelCall& call = program_.calls[c];
      steps_before(c);
      if (call.is_transfer()) emit_transfer(call, at);
      else if (call.device) emit_launches(call, at);
      else emit_host_call(call, at);
      if (profiled && call.device) runtime("tw_device_wait", {env, b_.getInt32(static_cast<uint32_t>(call.device) - 1)});
      if (!profiled) continue;
      Value* after = clock();
      b_.CreateStore(b_.CreateSub(after, before), b_.CreateConstGEP1_64(b_.getInt64Ty(), call_ns, c));
      before = after;
    }
    steps_before(end);
    b_.CreateRet(b_.getInt32(TW_OK));
    return f;
  }

  Value* nth_pointer(Value* table, int index) {
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), table, static_cast<uint64_t>(index)));
  }

  llvm::FunctionCallee kernel(int index, const std::vector<Value*>& arguments) {
    std::vector<Type*> types;
    for (Value* a : arguments) types.push_back(a->getType());
    auto callee = module_.getOrInsertFunction(kernel_symbol(static_cast<size_t>(index)), llvm::FunctionType::get(b_.getVoidTy(), types, false));
    llvm::cast<llvm::Function>(callee.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return callee;
  }

  // The calls for the run's sizes, with the clock or without. Times of calls that are not made are 0.
  llvm::Function* emit_dispatch() {
    std::vector<std::pair<const FastPath*, std::array<llvm::Function*, 2>>> ways;
    for (auto path = program_.fast_paths.rbegin(); path != program_.fast_paths.rend(); ++path)
      ways.push_back({&*path, {emit_calls(false, path->begin, path->end), emit_calls(true, path->begin, path->end)}});
    const size_t end = program_.fast_paths.empty() ? program_.calls.size() : program_.fast_paths.front().begin;
    ways.push_back({nullptr, {emit_calls(false, 0, end), emit_calls(true, 0, end)}});
    llvm::Function* f = start("tw_program", b_.getInt32Ty(), {b_.getPtrTy()});
    const auto block = [&](const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, f); };
    Value* call_ns = env_field(f->getArg(0), 8);
    const Variables vars = load_symbols(env_field(f->getArg(0), 4));
    for (const auto& [path, calls] : ways) {
      llvm::BasicBlock* other = nullptr;
      if (path) {
        Value* fits = b_.getTrue();
        for (const auto& [symbol, size] : path->sizes) fits = b_.CreateAnd(fits, b_.CreateICmpEQ(vars.at(symbol), b_.getInt64(static_cast<uint64_t>(size))));
        llvm::BasicBlock* taken = block("taken");
        other = block("other");
        b_.CreateCondBr(fits, taken, other);
        b_.SetInsertPoint(taken);
      }
      llvm::BasicBlock *yes = block("profiled"), *no = block("plain");
      b_.CreateCondBr(b_.CreateIsNotNull(call_ns), yes, no);
      b_.SetInsertPoint(no);
      b_.CreateRet(b_.CreateCall(calls[0], {f->getArg(0)}));
      b_.SetInsertPoint(yes);
      if (!program_.fast_paths.empty()) b_.CreateMemSet(call_ns, b_.getInt8(0), program_.calls.size() * sizeof(uint64_t), llvm::MaybeAlign(8));
      b_.CreateRet(b_.CreateCall(calls[1], {f->getArg(0)}));
      if (other) b_.SetInsertPoint(other);
    }
    return f;
  }

  llvm::Function* emit_arena_bytes(const std::string& name, const Expr& bytes) {
    llvm::Function* f = start(name, b_.getInt64Ty(), {b_.getPtrTy()});
    b_.CreateRet(number(bytes, load_symbols(f->getArg(0))));
    return f;
  }

  llvm::StructType* device_type() {
    Type *p = b_.getPtrTy(), *n = b_.getInt64Ty();
    return llvm::StructType::get(p, p, p, n, p, n, n, n, p);   // tw_device_desc
  }

  // Devices that run something keep their place in the list; the others are there by name and driver alone.
  std::vector<Constant*> device_descriptions(const CodegenOptions& options) {
    std::vector<Constant*> list;
    for (size_t d = 0; d < program_.devices.size(); ++d) {
      const DeviceProgram& device = program_.devices[d];
      llvm::StructType* launch_type = llvm::StructType::get(b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty());
      std::vector<Constant*> launches;
      for (size_t k = 0; k < device.launches.size(); ++k) {
        for (const DeviceLaunch& launch : device.launches[k])
          launches.push_back(llvm::ConstantStruct::get(launch_type, {text(launch.function), b_.getInt32(static_cast<uint32_t>(launch.buffers.size())),
                                                                     b_.getInt32(static_cast<uint32_t>(launch.symbols.size()))}));
      }
      const auto& [name, driver] = options.devices[d];
      auto* table = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal("tw_" + driver + "_driver", b_.getInt8Ty()));
      table->setVisibility(llvm::GlobalValue::HiddenVisibility);
      list.push_back(llvm::ConstantStruct::get(device_type(), {table, text(name), text(device.code), b_.getInt64(device.code.size()), array(launch_type, launches),
          b_.getInt64(launches.size()), b_.getInt64(device.weights_offset), b_.getInt64(device.weight_bytes),
          emit_arena_bytes("tw_device_arena_bytes_" + std::to_string(d), device.arena_bytes)}));
    }
    return list;
  }

  bool is_known(const Expr& dim) const {
    return std::ranges::none_of(program_.data_symbols, [&](const std::string& s) { return uses_var(dim, s); });
  }

  // void (i32 i, ptr symbols, ptr dims). Dims that are not known before the run are -1, unless it is over.
  llvm::Function* emit_dims(const std::string& name, const std::vector<TensorSpec>& tensors, bool after) {
    llvm::Function* f = start(name, b_.getVoidTy(), {b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()});
    Variables vars = load_symbols(f->getArg(1), after);
    auto* end = llvm::BasicBlock::Create(module_.getContext(), "end", f);
    auto* choice = b_.CreateSwitch(f->getArg(0), end, static_cast<unsigned>(tensors.size()));
    for (size_t t = 0; t < tensors.size(); ++t) {
      auto* block = llvm::BasicBlock::Create(module_.getContext(), "tensor", f);
      choice->addCase(b_.getInt32(static_cast<uint32_t>(t)), block);
      b_.SetInsertPoint(block);
      for (size_t d = 0; d < tensors[t].dims.size(); ++d)
        b_.CreateStore(after || is_known(tensors[t].dims[d]) ? number(tensors[t].dims[d], vars) : b_.getInt64(~uint64_t{0}), b_.CreateConstGEP1_64(b_.getInt64Ty(), f->getArg(2), d));
      b_.CreateBr(end);
    }
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
    return f;
  }

  void emit_query(const std::string& symbol) {
    auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getInt32Ty()}, false);
    auto inner = module_.getOrInsertFunction("tw_query", type);
    llvm::cast<llvm::Function>(inner.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    llvm::Function* f = start("tw_" + symbol + "_query", b_.getPtrTy(), {b_.getInt32Ty()});
    f->setLinkage(llvm::GlobalValue::ExternalLinkage);
    b_.CreateRet(b_.CreateCall(inner, {f->getArg(0)}));
  }

  Constant* global(Constant* value, uint64_t align) {
    auto* g = new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, "tw_data");
    g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    if (align) g->setAlignment(llvm::Align(align));
    return g;
  }
  Constant* text(const std::string& s) { return global(llvm::ConstantDataArray::getString(module_.getContext(), s), 1); }
  Constant* array(Type* element, const std::vector<Constant*>& values) {
    if (values.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    return global(llvm::ConstantArray::get(llvm::ArrayType::get(element, values.size()), values), 0);
  }

  Constant* tensor_infos(const std::vector<TensorSpec>& tensors) {
    std::vector<Constant*> infos;
    llvm::StructType* type = llvm::StructType::get(b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getPtrTy());
    for (const TensorSpec& t : tensors) {
      std::vector<Constant*> dims;
      for (const Expr& d : t.dims) dims.push_back(b_.getInt64(static_cast<uint64_t>(described(d))));
      infos.push_back(llvm::ConstantStruct::get(type, {text(t.name), b_.getInt32(static_cast<uint32_t>(dtype_info(t.dtype).onnx)),
                                                       b_.getInt32(static_cast<uint32_t>(t.dims.size())), array(b_.getInt64Ty(), dims)}));
    }
    return array(type, infos);
  }

  // As tw_tensor_info says it: an extent, -1 - symbol, or "computed".
  int64_t described(const Expr& dim) const {
    if (auto value = as_const(dim)) return *value;
    if (dim->kind == ExprKind::var)
      for (size_t i = 0; i < program_.symbols.size(); ++i)
        if (program_.symbols[i] == dim->name) return -1 - static_cast<int64_t>(i);
    return TW_DIM_COMPUTED;
  }

  llvm::Module& module_;
  const Program& program_;
  llvm::IRBuilder<> b_;
  llvm::StructType *env_type_, *view_type_, *args_type_;   // as runtime/model.h and runtime/ops/ops.h have them
};
}  // namespace

std::string kernel_symbol(size_t index) { return "tw_k_" + std::to_string(index); }

void emit_program(llvm::Module& module, const Program& program, const CodegenOptions& options, const std::string& cpu_features) {
  ProgramEmitter(module, program).emit(options, cpu_features);
}
}  // namespace tw
