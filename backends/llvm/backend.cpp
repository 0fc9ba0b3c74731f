// The CPU backend. KernelEmitter compiles kernels, each in a context and object of its own;
// emit_program compiles the model's program.
#include "backends/backend.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBufferRef.h>

#include <map>

#include "backends/estimate/kernel_estimate.h"
#include "backends/estimate/multiply_adds.h"
#include "backends/llvm/codegen.h"
#include "backends/llvm/emit_calls.h"
#include "backends/llvm/emit_core.h"
#include "backends/llvm/emit_program.h"
#include "backends/llvm/emit_writer.h"
#include "backends/llvm/kernel_emitter.h"
#include "backends/llvm/target_machine.h"
#include "ir/freestanding.h"
#include "runtime/embedded.h"
#include "support/hash.h"
#include "support/parallel.h"

namespace tw::codegen {
namespace {

enum class Stage { object, llvm_text, assembly };

int64_t code_bytes(const std::string& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "object"));
  TW_CHECK(bool(file), "the code generator wrote no object file: {0}",
           llvm::toString(file.takeError()));
  int64_t bytes = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections())
    if (section.isText()) bytes += static_cast<int64_t>(section.getSize());
  return bytes;
}

// The parts of a tw_env that parallel loops read (runtime/model.h): the pool, which is a
// tw_parallel here, behind five pointers; then the number of threads, which a tw_parallel has
// behind two pointers.
constexpr uint64_t kEnvPool = 5, kEnvWords = 7, kParallelThreads = 2;

llvm::Value* make_env(llvm::IRBuilder<>& b, llvm::Value* parallel) {
  llvm::Value* env = b.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), kEnvWords), nullptr, "env");
  b.CreateStore(parallel, b.CreateConstGEP1_64(b.getPtrTy(), env, kEnvPool));
  llvm::Value* threads = b.CreateLoad(
      b.getInt32Ty(), b.CreateConstGEP1_64(b.getPtrTy(), parallel, kParallelThreads), "threads");
  b.CreateStore(threads, b.CreateConstGEP1_64(b.getPtrTy(), env, kEnvPool + 1));
  return env;
}

// void (ptr loop, i32 part): runs the part's chunks. `loop` holds fn, its argument, and the numbers
// of parts and of chunks.
llvm::Function* define_run_part(llvm::Module& module, llvm::StructType* loop_type) {
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "run_part",
                                          module);
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(module.getContext(), name, function);
  };
  llvm::BasicBlock *entry = block("entry"), *next = block("next"), *body = block("body"),
                   *done = block("done");
  b.SetInsertPoint(entry);
  llvm::Value* part = function->getArg(1);
  std::vector<llvm::Value*> fields;
  for (unsigned i = 0; i < loop_type->getNumElements(); ++i)
    fields.push_back(b.CreateLoad(loop_type->getElementType(i),
                                  b.CreateStructGEP(loop_type, function->getArg(0), i)));
  llvm::Value *fn = fields[0], *arg = fields[1], *parts = fields[2], *chunks = fields[3];
  const auto bound = [&](llvm::Value* i) { return b.CreateUDiv(b.CreateMul(chunks, i), parts); };
  llvm::Value *first = bound(part), *end = bound(b.CreateAdd(part, b.getInt32(1)));
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::PHINode* chunk = b.CreatePHI(b.getInt32Ty(), 2, "chunk");
  chunk->addIncoming(first, entry);
  b.CreateCondBr(b.CreateICmpULT(chunk, end), body, done);
  b.SetInsertPoint(body);
  auto* chunk_type = llvm::FunctionType::get(b.getVoidTy(),
                                             {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}, false);
  b.CreateCall(chunk_type, fn, {arg, part, chunk});
  chunk->addIncoming(b.CreateAdd(chunk, b.getInt32(1)), body);
  b.CreateBr(next);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return function;
}

// Defines the function that parallel loops call, if there are any: it runs the parts on the
// caller's pool.
void define_parallel_for(llvm::Module& module) {
  llvm::Function* function = module.getFunction("tw_parallel_for");
  if (!function) return;
  function->setLinkage(llvm::GlobalValue::InternalLinkage);
  function->setVisibility(llvm::GlobalValue::DefaultVisibility);
  llvm::IRBuilder<> b(module.getContext());
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  llvm::Value* parallel = b.CreateLoad(
      b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), function->getArg(0), kEnvPool), "parallel");
  llvm::Value* run = b.CreateLoad(b.getPtrTy(), parallel, "run");
  llvm::Value* pool = b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), parallel, 1),
                                   "pool");
  auto* loop_type = llvm::StructType::get(b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(),
                                          b.getInt32Ty());
  llvm::Value* loop = b.CreateAlloca(loop_type, nullptr, "loop");
  for (unsigned i = 0; i < 4; ++i)
    b.CreateStore(function->getArg(i + 1), b.CreateStructGEP(loop_type, loop, i));
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt32Ty()}, false);
  b.CreateCall(type, run, {pool, define_run_part(module, loop_type), loop, function->getArg(3)});
  b.CreateRetVoid();
}

// Adds void <name>(ptr buffers, ptr workspace, ptr symbols), which calls the kernel's function.
// With `parallel` it has a fourth parameter, a tw_parallel.
void add_entry(llvm::Module& module, const Kernel& kernel, llvm::Function* function,
               bool parallel) {
  llvm::IRBuilder<> b(module.getContext());
  std::vector<llvm::Type*> parameters(parallel ? 4 : 3, b.getPtrTy());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), parameters, false);
  auto* entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kernel.name,
                                       module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", entry));
  std::vector<Value*> arguments = {parallel ? make_env(b, entry->getArg(3))
                                            : llvm::ConstantPointerNull::get(b.getPtrTy())};
  if (parallel) define_parallel_for(module);
  uint64_t i = 0;
  for (const Buffer& buffer : kernel.buffers)
    if (buffer.role != BufferRole::temp)
      arguments.push_back(
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), entry->getArg(0), i++)));
  arguments.push_back(entry->getArg(1));
  for (uint64_t s = 0; s < kernel.symbols.size(); ++s)
    arguments.push_back(
        b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), entry->getArg(2), s)));
  b.CreateCall(function, arguments);
  b.CreateRetVoid();
}

// Everything that an object follows from, but the program that generates it
std::string store_key(const llvm::Module& module, const llvm::TargetMachine& machine) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::WriteBitcodeToFile(module, out);
  out << '\0' << machine.getTargetTriple().str() << '\0' << machine.getTargetCPU() << '\0'
      << machine.getTargetFeatureString();
  return sha256_hex(bytes.str());
}

// An object behind the numbers of its report, in a line of text
std::string stored_form(const std::string& object, const KernelReport& report) {
  return llvm::formatv("{0} {1} {2}\n", report.code_bytes, report.spills, report.reloads).str() +
         object;
}

// Leaves the object alone in `stored`, and puts the numbers into the report. False: it has no such
// form.
bool read_stored(std::string& stored, KernelReport& report) {
  const size_t end = stored.find('\n');
  if (end == std::string::npos) return false;
  llvm::SmallVector<llvm::StringRef> numbers;
  llvm::StringRef(stored).take_front(end).split(numbers, ' ');
  if (numbers.size() != 3 || numbers[0].getAsInteger(10, report.code_bytes) ||
      numbers[1].getAsInteger(10, report.spills) || numbers[2].getAsInteger(10, report.reloads))
    return false;
  stored.erase(0, end + 1);
  report.stored = true;
  return true;
}

class LlvmBackend : public Backend {
 public:
  LlvmBackend(Target target, CpuTraits traits, CpuTraits baseline)
      : target_(std::move(target)), traits_(std::move(traits)), baseline_(std::move(baseline)) {}

  Error supports(const Kernel& kernel) const override {
    llvm::LLVMContext context;
    llvm::Module module(kernel.name, context);
    TW_ASSIGN(auto machine, make_target_machine(target_.triple, traits_));
    module.setDataLayout(machine->createDataLayout());
    return KernelEmitter(module, traits_, kernel, target_).emit("tw_kernel", 2).takeError();
  }

  Expected<ObjectCode> compile(const Program& program,
                               const CodegenOptions& options) const override;

  Expected<std::string> compile_kernel(const Kernel& kernel, bool parallel) const override {
    return standalone(kernel, Stage::object, parallel);
  }

  Expected<KernelEstimate> estimate(const Kernel& kernel, ProcessorModel model) const override;
  std::vector<std::string> estimated_alike() const override;

  Expected<std::string> disassemble(const Kernel& kernel, const std::string& stage) const override {
    if (stage == "llvm") return standalone(kernel, Stage::llvm_text);
    if (stage == "asm") return standalone(kernel, Stage::assembly);
    return make_error(DiagCode::invalid_argument,
                      "no stage '{0}' of code generation; there are llvm and asm", stage);
  }

 private:
  Expected<std::string> standalone(const Kernel& kernel, Stage stage, bool parallel = false) const;
  Expected<std::string> member(const Program& program, size_t index, const CodegenOptions& options,
                               llvm::TargetMachine& machine, KernelReport& report) const;
  Expected<std::string> program_object(const Program& program, const CodegenOptions& options) const;

  Target target_;
  CpuTraits traits_, baseline_;
};

Expected<std::string> LlvmBackend::standalone(const Kernel& kernel, Stage stage,
                                              bool parallel) const {
  llvm::LLVMContext context;
  llvm::Module module(kernel.name, context);
  TW_ASSIGN(auto machine, make_target_machine(target_.triple, traits_));
  module.setDataLayout(machine->createDataLayout());
  KernelEmitter emitter(module, traits_, kernel, target_);
  std::optional<KernelLines> lines;
  if (stage == Stage::assembly) emitter.set_lines(&lines.emplace(kernel));
  TW_ASSIGN(EmittedKernel emitted,
            emitter.emit("tw_kernel", parallel ? most_parts(count_work(kernel), target_,
                                                            CodegenOptions().chunk_ns)
                                               : Expr(1)));
  emitted.function->setLinkage(llvm::GlobalValue::InternalLinkage);
  emitted.function->setVisibility(llvm::GlobalValue::DefaultVisibility);
  add_entry(module, kernel, emitted.function, parallel);
  prepare_module(module, *machine, traits_);
  TW_TRY(run_passes(module, *machine));
  if (stage == Stage::llvm_text) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }
  TW_ASSIGN(std::string code, generate_code(module, *machine, stage == Stage::assembly, nullptr));
  return lines ? lines->annotated(code, machine->getMCAsmInfo()->getCommentString().str())
               : std::move(code);
}

Expected<KernelEstimate> LlvmBackend::estimate(const Kernel& kernel, ProcessorModel model) const {
  llvm::LLVMContext context;
  llvm::Module module(kernel.name, context);
  TW_ASSIGN(const auto machine, make_target_machine(target_.triple, traits_));
  module.setDataLayout(machine->createDataLayout());
  TW_ASSIGN(const EmittedKernel emitted,
            KernelEmitter(module, traits_, kernel, target_).emit("tw_kernel", 1));
  prepare_module(module, *machine, traits_);
  TW_TRY(run_passes(module, *machine));
  TW_ASSIGN(const BlockRuns runs, count_block_runs(*emitted.function));
  TW_ASSIGN(BlockCycles cycles,
            BlockCycles::create(*machine, target_.cpu, traits_.features, model));
  const std::map<std::string, double> multiply_adds = count_multiply_adds(*emitted.function);
  KernelEstimate out;
  TW_TRY(guarded(module, nullptr, [&] {
    return with_machine_code(module, *machine, runs,
                             [&](const std::vector<MachineBlock>& blocks) -> Error {
                               TW_ASSIGN(out, estimate_blocks(blocks, runs, multiply_adds, cycles));
                               return Error::success();
                             });
  }));
  return out;
}

std::vector<std::string> LlvmBackend::estimated_alike() const {
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = make_target_machine(target_.triple,
                                                                               traits_);
  if (!machine) return {};
  return processors_alike(**machine, target_.cpu);
}

// Compiles one kernel of a program, under its program symbol.
Expected<std::string> LlvmBackend::member(const Program& program, size_t index,
                                          const CodegenOptions& options,
                                          llvm::TargetMachine& machine,
                                          KernelReport& report) const {
  const Kernel& kernel = program.kernels[index];
  const std::string symbol = kernel_symbol(kernel);
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  const Expr parts = is_freestanding(target_.triple)
                         ? Expr(1)
                         : most_parts(index < program.work.size() ? program.work[index]
                                                                  : count_work(kernel),
                                      target_, options.chunk_ns);
  module.setDataLayout(machine.createDataLayout());
  TW_TRY(KernelEmitter(module, traits_, kernel, target_).emit(symbol, parts).takeError());
  if (options.path > 0) name_for_path(module, options.path);
  prepare_module(module, machine, traits_);
  report.name = kernel.name;
  const std::string key = options.store ? store_key(module, machine) : "";
  if (options.store)
    if (std::optional<std::string> known = options.store->find(key))
      if (read_stored(*known, report)) return *std::move(known);
  TW_TRY(run_passes(module, machine));
  TW_ASSIGN(std::string object, generate_code(module, machine, false, &report));
  report.code_bytes = code_bytes(object);
  if (options.store) options.store->keep(key, stored_form(object, report));
  return object;
}

Expected<std::string> LlvmBackend::program_object(const Program& program,
                                                  const CodegenOptions& options) const {
  llvm::LLVMContext context;
  llvm::Module module("tw_program", context);
  TW_ASSIGN(auto machine, make_target_machine(target_.triple, baseline_));
  module.setDataLayout(machine->createDataLayout());
  std::string features;
  for (const std::string& f : traits_.checked) features += (features.empty() ? "" : ",") + f;
  if (is_freestanding(target_.triple)) emit_core(module, program, options.symbol);
  else emit_program(module, program, options, features);
  if (options.path > 0) name_for_path(module, options.path);
  prepare_module(module, *machine, baseline_);
  TW_TRY(run_passes(module, *machine));
  // If jumps are padded, the assembler repeats a section until nothing moves. So the parts of long
  // programs get sections of their own.
  machine->Options.FunctionSections = !is_freestanding(target_.triple) &&
                                      program.calls.size() > kCallsAPart;
  return generate_code(module, *machine, false, nullptr);
}

Expected<ObjectCode> LlvmBackend::compile(const Program& program,
                                          const CodegenOptions& options) const {
  if (runtime_object(target_.triple).empty())
    return make_error(DiagCode::unsupported, "there is no runtime for the target '{0}'",
                      target_.triple);
  if (is_freestanding(target_.triple)) TW_TRY(check_freestanding(program));
  size_t count = program.kernels.size();
  const std::vector<bool> here = kernels_of(program, 0);
  std::map<std::string, size_t> symbols;  // equal kernels have one object
  std::vector<size_t> equal_to(count);
  for (size_t i = 0; i < count; ++i)
    equal_to[i] = here[i] ? symbols.try_emplace(kernel_symbol(program.kernels[i]), i).first->second
                          : i;
  ObjectCode code;
  code.objects.resize(count + 1);
  code.kernels.resize(count);
  TW_TRY(parallel_for(options.jobs, count + 1, [&](size_t i) -> Error {
    if (i < count && (!here[i] || equal_to[i] != i)) return Error::success();
    if (i == count) {
      TW_ASSIGN(code.objects[i], program_object(program, options));
      return Error::success();
    }
    TW_ASSIGN(const auto machine, make_target_machine(target_.triple, traits_));
    TW_ASSIGN(code.objects[i], member(program, i, options, *machine, code.kernels[i]));
    return Error::success();
  }));
  for (size_t i = 0; i < count; ++i)
    if (equal_to[i] != i) {
      code.kernels[i] = code.kernels[equal_to[i]];
      code.kernels[i].name = program.kernels[i].name;
    }
  std::erase(code.objects, "");
  if (options.path > 0) return code;
  code.objects.emplace_back(runtime_object(target_.triple));
  code.objects.emplace_back(operators_object(target_.triple));
  return code;
}

Error check_intrinsic(const Intrinsic& intrinsic, const Target& target, const CpuTraits& traits) {
  if (intrinsic.emit.threads > 1)
    return make_error(DiagCode::unsupported, "a processor's threads do nothing together");
  for (const std::string& feature : intrinsic.features)
    if (!std::ranges::count(traits.usable, feature))
      return make_error(DiagCode::unsupported,
                        "a library cannot ask for the feature '{0}' where it runs", feature);
  llvm::LLVMContext context;
  llvm::Module module(intrinsic.name, context);
  TW_ASSIGN(auto machine, make_target_machine(target.triple, traits));
  module.setDataLayout(machine->createDataLayout());
  TW_TRY(try_emit(intrinsic, module));
  prepare_module(module, *machine, traits);
  return generate_code(module, *machine, false, nullptr).takeError();
}

// Writes every instruction that a description declares once, and generates its code.
Error check_intrinsics(const Target& target, const CpuTraits& traits) {
  std::vector<Diag> problems;
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (intrinsic.shipped) continue;
    if (Error error = check_intrinsic(intrinsic, target, traits)) {
      Diag problem{DiagCode::unsupported,
                   "intrinsic '" + intrinsic.name + "': emit '" + intrinsic.emit.text() + "': ",
                   intrinsic.emit.at,
                   {}};
      for (Diag& diag : take_diags(std::move(error))) {
        problem.message += diag.message;
        problem.notes.insert(problem.notes.end(), diag.notes.begin(), diag.notes.end());
      }
      problems.push_back(std::move(problem));
    }
  }
  return make_error(std::move(problems));
}
}  // namespace

}  // namespace tw::codegen

namespace tw {

Expected<std::unique_ptr<Backend>> make_backend(const Target& target) {
  TW_ASSIGN(CpuTraits traits, cpu_traits(target));
  TW_ASSIGN(CpuTraits baseline, baseline_traits(target));
  TW_TRY(codegen::check_intrinsics(target, traits));
  return std::make_unique<codegen::LlvmBackend>(target, std::move(traits), std::move(baseline));
}

}  // namespace tw
