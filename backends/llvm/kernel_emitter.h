// Turns one scheduled kernel into LLVM functions. It walks statements top-down. `vector` loops turn
// expressions of their variable into lanes, `unroll` loops repeat the emission, and register
// buffers become one stack slot for each value, which SROA turns into SSA values.
#pragma once
#include "backends/llvm/emission.h"
#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/instruction_emitter.h"
#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {

struct EmittedKernel {
  // void (ptr env, a ptr for each parameter buffer.., ptr workspace, an i64 for each symbol..)
  llvm::Function* function = nullptr;
};

// A base class, so that it exists before the parts, which refer to it
struct OwnedEmission {
  Emission emission;
};

class KernelEmitter : private OwnedEmission, private EmissionPart {
 public:
  // `environment` is null on a processor; otherwise it must outlive this.
  KernelEmitter(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                const Target& target, const KernelEnvironment* environment = nullptr);
  // Defines `symbol`. Parallel loops run on env's threads, in at most `parts` parts; with 1 they
  // are plain loops, and env is not read. Errors: a construct of the kernel that code generation
  // does not support (with its name), expansion beyond the limits.
  Expected<EmittedKernel> emit(const std::string& symbol, const Expr& parts);
  // Gives instructions line numbers; `lines` must outlive this.
  void set_lines(const KernelLines* lines) { emission_.lines = lines; }

 private:
  // The loop inside the present parallel loop whose iterations are divided too
  struct Shared {
    const stmt::Loop* loop = nullptr;
    std::string outer{};                     // the parallel loop's variable
    Value *begin = nullptr, *end = nullptr;  // range of this chunk, counted over both loops
  };

  // How a parallel loop is divided when it is entered: `extent` iterations into `parts`, one for a
  // thread, and each part into `each` chunks. `row`: chunks begin with a multiple of so many.
  struct Division {
    Value *extent = nullptr, *parts = nullptr, *each = nullptr, *chunks = nullptr, *row = nullptr;
  };

  // kernel_emitter.cpp
  void analyse();
  void check_temps();
  void emit_stmt(const Stmt& s);
  void emit_if(const stmt::If& guard);
  void emit_loop(const LoopRef& loop);
  void emit_serial(const stmt::Loop& loop, Value* begin, Value* end);
  void emit_prefetch(const stmt::Prefetch& prefetch);
  // The device, for its tokens or barriers (`what`); null: none, and an error is recorded
  const KernelEnvironment* device_for(const char* what);
  // emit_store.cpp
  void emit_store(const stmt::Store& store);
  void emit_async(const stmt::Store& store);
  void emit_update(const stmt::Store& store, const Access& access);
  // emit_transpose.cpp; false: the loop has another form
  bool emit_transpose(const stmt::Loop& loop);
  bool emit_pairs(const stmt::Loop& loop);
  Value* first_reduce_iteration();
  Expr resolved(const Expr& condition);
  // emit_parallel.cpp
  llvm::Function* start_function(const std::string& symbol, size_t integers,
                                 llvm::GlobalValue::LinkageTypes linkage);
  void enter(llvm::Function* function, Value* part = nullptr);
  Expr parts_here() const;  // most parts of the loop entered last
  void emit_parallel(const stmt::Loop& loop);
  void divide_parts(Division& division, Value* rows, Value* row, Value* most);
  llvm::Value* part_count(llvm::Value* extent, llvm::Value* most);
  // Calls the body on each chunk, on the pool's threads.
  void call_in_chunks(llvm::Function* body, std::vector<llvm::Value*> fields,
                      const Division& division);
  void emit_chunk(const stmt::Loop& loop, llvm::Function* body,
                  const std::vector<std::string>& outer_vars);
  void emit_shared(const stmt::Loop& loop);
  llvm::Function* make_thunk(llvm::Function* body, llvm::StructType* packed);

  ExpressionEmitter expressions_;
  MemoryEmitter memory_;
  InstructionEmitter instructions_;
  Shared shared_;
  Expr most_parts_ = 1;
  std::string symbol_;
  std::vector<const stmt::Loop*> loops_;  // loops around the present statement
  // Present values of the variables of expanded loops
  std::map<std::string, int64_t> expanded_;
  std::vector<Expr> resolved_;  // keeps expressions alive that are not in the kernel's body
  int64_t emitted_ = 0;
  int parallel_count_ = 0;
  bool in_parallel_ = false;
};

}  // namespace tw::codegen
