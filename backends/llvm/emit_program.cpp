#include "backends/llvm/emit_program.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>

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
    env_type_ = llvm::StructType::create({p, p, p, p, p, p, b_.getInt32Ty(), b_.getInt32Ty(), p}, "tw_env");
  }

  void emit(const CodegenOptions& options, const std::string& cpu_features) {
    llvm::Function* program = emit_dispatch(emit_calls(false), emit_calls(true));
    llvm::Function* arena = emit_arena_bytes("tw_arena_bytes", program_.arena_bytes);
    llvm::Function* outputs = emit_dims("tw_output_dims", program_.outputs);
    llvm::Function* inputs = emit_dims("tw_input_dims", program_.inputs);
    std::vector<Constant*> devices = device_descriptions(options);
    std::vector<Constant*> names;
    for (const std::string& s : program_.symbols) names.push_back(text(s));
    auto* manifest = new llvm::GlobalVariable(module_, b_.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage, nullptr, "tw_manifest");
    manifest->setVisibility(llvm::GlobalValue::HiddenVisibility);
    auto i32 = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    std::vector<Constant*> fields = {
        text(program_.name), text(options.target_name), manifest,
        i32(program_.inputs.size()), i32(program_.outputs.size()), i32(program_.symbols.size()), i32(program_.calls.size()),
        tensor_infos(program_.inputs), tensor_infos(program_.outputs), array(b_.getPtrTy(), names),
        b_.getInt64(program_.weight_bytes), text(cpu_features), program, arena, outputs, inputs,
        array(device_type(), devices), b_.getInt64(devices.size()), b_.getInt64(host_calls())};
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

  Variables load_symbols(Value* symbols) {
    Variables vars;
    for (size_t i = 0; i < program_.symbols.size(); ++i)
      vars[program_.symbols[i]] = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), symbols, i), program_.symbols[i]);
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
    const Variables& vars;
  };

  // Where an operand lies in the processor's memory.
  Value* address(const Operand& o, const Environment& at) {
    Value* base = nullptr;
    switch (o.place) {
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
    arguments.push_back(b_.CreateGEP(b_.getInt8Ty(), at.arena, number(call.workspace, at.vars)));
    for (const Expr& s : call.symbols) arguments.push_back(number(s, at.vars));
    b_.CreateCall(kernel(call.kernel, arguments), arguments);
  }

  void runtime(const char* function, const std::vector<Value*>& arguments) {
    std::vector<Type*> types;
    for (Value* a : arguments) types.push_back(a->getType());
    b_.CreateCall(module_.getOrInsertFunction(function, llvm::FunctionType::get(b_.getVoidTy(), types, false)), arguments);
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
      llvm::IRBuilder<> entry(&b_.GetInsertBlock()->getParent()->getEntryBlock(), b_.GetInsertBlock()->getParent()->getEntryBlock().begin());
      Value* list = entry.CreateAlloca(b_.getInt64Ty(), b_.getInt64(arguments.size()));
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

  // void (ptr env): every call in order; profiled, with the nanoseconds of each stored to env->call_ns.
  llvm::Function* emit_calls(bool profiled) {
    llvm::Function* f = start(profiled ? "tw_program_profiled" : "tw_program_plain", b_.getVoidTy(), {b_.getPtrTy()});
    Value* env = f->getArg(0);
    Value *inputs = env_field(env, 0), *outputs = env_field(env, 1), *arena = env_field(env, 2), *weights = env_field(env, 3);
    Variables vars = load_symbols(env_field(env, 4));
    Value* call_ns = profiled ? env_field(env, 8) : nullptr;
    auto clock = [&] { return b_.CreateCall(module_.getOrInsertFunction("tw_clock_ns", b_.getInt64Ty())); };
    Value* before = profiled ? clock() : nullptr;
    const Environment at{env, inputs, outputs, arena, weights, vars};
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const KernelCall& call = program_.calls[c];
      if (call.is_transfer()) emit_transfer(call, at);
      else if (call.device) emit_launches(call, at);
      else emit_call(call, at);
      if (profiled && call.device) runtime("tw_device_wait", {env, b_.getInt32(static_cast<uint32_t>(call.device) - 1)});
      if (!profiled) continue;
      Value* after = clock();
      b_.CreateStore(b_.CreateSub(after, before), b_.CreateConstGEP1_64(b_.getInt64Ty(), call_ns, c));
      before = after;
    }
    b_.CreateRetVoid();
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

  llvm::Function* emit_dispatch(llvm::Function* plain, llvm::Function* profiled) {
    llvm::Function* f = start("tw_program", b_.getVoidTy(), {b_.getPtrTy()});
    auto* yes = llvm::BasicBlock::Create(module_.getContext(), "profiled", f);
    auto* no = llvm::BasicBlock::Create(module_.getContext(), "plain", f);
    b_.CreateCondBr(b_.CreateIsNotNull(env_field(f->getArg(0), 8)), yes, no);
    for (auto [block, callee] : {std::pair(yes, profiled), std::pair(no, plain)}) {
      b_.SetInsertPoint(block);
      b_.CreateCall(callee, {f->getArg(0)});
      b_.CreateRetVoid();
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

  // void (i32 i, ptr symbols, ptr dims)
  llvm::Function* emit_dims(const std::string& name, const std::vector<TensorSpec>& tensors) {
    llvm::Function* f = start(name, b_.getVoidTy(), {b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()});
    Variables vars = load_symbols(f->getArg(1));
    auto* end = llvm::BasicBlock::Create(module_.getContext(), "end", f);
    auto* choice = b_.CreateSwitch(f->getArg(0), end, static_cast<unsigned>(tensors.size()));
    for (size_t t = 0; t < tensors.size(); ++t) {
      auto* block = llvm::BasicBlock::Create(module_.getContext(), "tensor", f);
      choice->addCase(b_.getInt32(static_cast<uint32_t>(t)), block);
      b_.SetInsertPoint(block);
      for (size_t d = 0; d < tensors[t].dims.size(); ++d)
        b_.CreateStore(number(tensors[t].dims[d], vars), b_.CreateConstGEP1_64(b_.getInt64Ty(), f->getArg(2), d));
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
  llvm::StructType* env_type_;
};
}  // namespace

std::string kernel_symbol(size_t index) { return "tw_k_" + std::to_string(index); }

void emit_program(llvm::Module& module, const Program& program, const CodegenOptions& options, const std::string& cpu_features) {
  ProgramEmitter(module, program).emit(options, cpu_features);
}
}  // namespace tw
