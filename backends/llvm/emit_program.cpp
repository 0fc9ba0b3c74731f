#include "backends/llvm/emit_program.h"

#include <algorithm>

#include "backends/llvm/emit_calls.h"
#include "runtime/tilewright.h"
#include "support/hash.h"

namespace tw::codegen {
namespace {

class ProgramEmitter : CallEmitter {
 public:
  ProgramEmitter(llvm::Module& module, const Program& program) : CallEmitter(module, program) {}

  void emit(const CodegenOptions& options, const std::string& cpu_features) {
    for (size_t number = 0; number < program_.regions.size(); ++number) emit_region(number);
    llvm::Function* program = emit_dispatch(true);
    llvm::Function* arena = emit_arena_bytes("tw_arena_bytes", program_.arena_bytes);
    llvm::Function* outputs = emit_dims("tw_output_dims", program_.outputs, false);
    llvm::Function* inputs = emit_dims("tw_input_dims", program_.inputs, false);
    llvm::Function* dims_of_run = emit_dims("tw_output_dims_of_run", program_.outputs, true);
    Constant* misfit = emit_misfit();
    std::vector<Constant*> devices = device_descriptions(options);
    std::vector<Constant*> names;
    for (const std::string& s : program_.symbols)
      names.push_back(text(symbol_name(options.symbol_names, s)));
    auto* manifest = new llvm::GlobalVariable(
        module_, b_.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage, nullptr, "tw_manifest");
    manifest->setVisibility(llvm::GlobalValue::HiddenVisibility);
    auto i32 = [&](size_t n) { return b_.getInt32(static_cast<uint32_t>(n)); };
    std::vector<Constant*> fields = {text(options.symbol),
                                     text(options.target_name),
                                     manifest,
                                     i32(program_.inputs.size()),
                                     i32(program_.outputs.size()),
                                     i32(program_.symbols.size()),
                                     i32(program_.calls.size()),
                                     tensor_infos(program_.inputs),
                                     tensor_infos(program_.outputs),
                                     array(b_.getPtrTy(), names),
                                     b_.getInt64(program_.weight_bytes),
                                     text(cpu_features),
                                     program,
                                     arena,
                                     outputs,
                                     inputs,
                                     array(device_type(), devices),
                                     b_.getInt64(devices.size()),
                                     b_.getInt64(host_calls()),
                                     i32(program_.data_symbols.size()),
                                     i32(static_cast<size_t>(program_.growable_buffers)),
                                     symbol_limits(),
                                     dims_of_run,
                                     misfit,
                                     options.weights_file.empty()
                                         ? llvm::ConstantPointerNull::get(b_.getPtrTy())
                                         : text(options.weights_file)};
    Constant* description = llvm::ConstantStruct::getAnon(fields);
    auto* model = new llvm::GlobalVariable(module_, description->getType(), true,
                                           llvm::GlobalValue::ExternalLinkage, description,
                                           "tw_description");
    model->setVisibility(llvm::GlobalValue::HiddenVisibility);
    if (options.path > 0) return;
    emit_models(*model, options.paths);
    emit_query(options.symbol);
  }

 private:
  llvm::StructType* device_type() {
    Type *p = b_.getPtrTy(), *n = b_.getInt64Ty();
    return llvm::StructType::get(p, p, p, n, p, n, n, n, p);  // tw_device_desc
  }

  // Devices that run something keep their place in the list. For all others only name and driver
  // are known.
  std::vector<Constant*> device_descriptions(const CodegenOptions& options) {
    std::vector<Constant*> list;
    for (size_t d = 0; d < program_.devices.size(); ++d) {
      const DeviceProgram& device = program_.devices[d];
      llvm::StructType* launch_type = llvm::StructType::get(b_.getPtrTy(), b_.getInt32Ty(),
                                                            b_.getInt32Ty());
      std::vector<Constant*> launches;
      for (size_t k = 0; k < device.launches.size(); ++k) {
        for (const DeviceLaunch& launch : device.launches[k])
          launches.push_back(llvm::ConstantStruct::get(
              launch_type,
              {text(launch.function), b_.getInt32(static_cast<uint32_t>(launch.buffers.size())),
               b_.getInt32(static_cast<uint32_t>(launch.symbols.size()))}));
      }
      const auto& [name, driver] = options.devices[d];
      auto* table = llvm::cast<llvm::GlobalVariable>(
          module_.getOrInsertGlobal("tw_" + driver + "_driver", b_.getInt8Ty()));
      table->setVisibility(llvm::GlobalValue::HiddenVisibility);
      list.push_back(llvm::ConstantStruct::get(
          device_type(),
          {table, text(name), text(device.code), b_.getInt64(device.code.size()),
           array(launch_type, launches), b_.getInt64(launches.size()),
           b_.getInt64(device.weights_offset), b_.getInt64(device.weight_bytes),
           emit_arena_bytes("tw_device_arena_bytes_" + std::to_string(d), device.arena_bytes)}));
    }
    return list;
  }

  bool is_known(const Expr& dim) const {
    return std::ranges::none_of(program_.data_symbols,
                                [&](const std::string& s) { return uses_var(dim, s); });
  }

  // void (i32 i, ptr symbols, ptr dims). Dims that are unknown before the run are -1, unless
  // `after` the run.
  llvm::Function* emit_dims(const std::string& name, const std::vector<TensorSpec>& tensors,
                            bool after) {
    llvm::Function* f = start(name, b_.getVoidTy(),
                              {b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()});
    Variables vars = load_symbols(f->getArg(1), after);
    auto* end = llvm::BasicBlock::Create(module_.getContext(), "end", f);
    auto* choice = b_.CreateSwitch(f->getArg(0), end, static_cast<unsigned>(tensors.size()));
    for (size_t t = 0; t < tensors.size(); ++t) {
      auto* block = llvm::BasicBlock::Create(module_.getContext(), "tensor", f);
      choice->addCase(b_.getInt32(static_cast<uint32_t>(t)), block);
      b_.SetInsertPoint(block);
      for (size_t d = 0; d < tensors[t].dims.size(); ++d)
        b_.CreateStore(after || is_known(tensors[t].dims[d]) ? number(tensors[t].dims[d], vars)
                                                             : b_.getInt64(~uint64_t{0}),
                       b_.CreateConstGEP1_64(b_.getInt64Ty(), f->getArg(2), d));
      b_.CreateBr(end);
    }
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
    return f;
  }

  // The descriptions of all programs of the library, with this one last
  void emit_models(llvm::GlobalVariable& own, int paths) {
    std::vector<Constant*> models;
    for (int path = paths - 1; path > 0; --path) {
      auto* model = new llvm::GlobalVariable(module_, b_.getInt8Ty(), true,
                                             llvm::GlobalValue::ExternalLinkage, nullptr,
                                             path_symbol("tw_description", path));
      model->setVisibility(llvm::GlobalValue::HiddenVisibility);
      models.push_back(model);
    }
    models.push_back(&own);
    models.push_back(llvm::ConstantPointerNull::get(b_.getPtrTy()));
    auto* type = llvm::ArrayType::get(b_.getPtrTy(), models.size());
    auto* table = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::ExternalLinkage,
                                           llvm::ConstantArray::get(type, models), "tw_models");
    table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }

  void emit_query(const std::string& symbol) {
    auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getInt32Ty()}, false);
    auto inner = module_.getOrInsertFunction("tw_serve", type);
    llvm::cast<llvm::Function>(inner.getCallee())
        ->setVisibility(llvm::GlobalValue::HiddenVisibility);
    for (const std::string& name : {"tw_" + symbol + "_query", std::string(TW_QUERY_SYMBOL)}) {
      llvm::Function* f = start(name, b_.getPtrTy(), {b_.getInt32Ty()});
      f->setLinkage(llvm::GlobalValue::ExternalLinkage);
      b_.CreateRet(b_.CreateCall(inner, {f->getArg(0)}));
    }
  }

  Constant* tensor_infos(const std::vector<TensorSpec>& tensors) {
    std::vector<Constant*> infos;
    llvm::StructType* type = llvm::StructType::get(b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(),
                                                   b_.getPtrTy());
    for (const TensorSpec& t : tensors) {
      std::vector<Constant*> dims;
      for (const Expr& d : t.dims) dims.push_back(b_.getInt64(static_cast<uint64_t>(described(d))));
      infos.push_back(llvm::ConstantStruct::get(
          type, {text(t.name), b_.getInt32(static_cast<uint32_t>(dtype_info(t.dtype).onnx)),
                 b_.getInt32(static_cast<uint32_t>(t.dims.size())), array(b_.getInt64Ty(), dims)}));
    }
    return array(type, infos);
  }

  // The dim in the form of tw_tensor_info: an extent, -1 - symbol, or "computed"
  int64_t described(const Expr& dim) const {
    if (auto value = as_const(dim)) return *value;
    for (size_t i = 0; i < program_.symbols.size(); ++i)
      if (is_var(dim, program_.symbols[i])) return -1 - static_cast<int64_t>(i);
    return TW_DIM_COMPUTED;
  }
};
}  // namespace

std::string path_symbol(const std::string& symbol, int path) {
  return path > 0 ? symbol + "." + std::to_string(path) : symbol;
}

void name_for_path(llvm::Module& module, int path) {
  for (llvm::GlobalValue& value : module.global_values()) {
    const llvm::StringRef name = value.getName();
    if (!value.hasLocalLinkage() && (name.starts_with("tw_k_") || name == "tw_description"))
      value.setName(path_symbol(name.str(), path));
  }
}

std::string kernel_symbol(const Kernel& kernel) {
  Kernel nameless = kernel;
  nameless.name = "k";
  return "tw_k_" + short_hash(print(nameless));
}

void emit_program(llvm::Module& module, const Program& program, const CodegenOptions& options,
                  const std::string& cpu_features) {
  ProgramEmitter(module, program).emit(options, cpu_features);
}
}  // namespace tw::codegen
