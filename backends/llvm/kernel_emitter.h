// Turns one scheduled kernel into LLVM functions. Statements walk top-down; `vector` loops make
// expressions of their variable into lanes, `unroll` loops repeat the emission, and register
// buffers become one stack slot a value, which SROA makes SSA.
#pragma once
#include "backends/llvm/emission.h"
#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/instruction_emitter.h"
#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {

struct EmittedKernel {
  // Void (ptr env, ptr per parameter buffer.., ptr workspace, i64 per symbol..)
  llvm::Function* function = nullptr;
};

// Stands in front of the parts, which refer to it.
struct OwnedEmission {
  Emission emission;
};

class KernelEmitter : private OwnedEmission, private EmissionPart {
 public:
  // environment: null: none, as on a processor; must outlive it.
  KernelEmitter(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                const Target& target, const KernelEnvironment* environment = nullptr);
  // Defines `symbol`; parallel loops run on env's threads, in at most `chunks` parts; 1: one after
  // the other, and env is not read. Errors: what the kernel asks for that code generation does not
  // do (named), expansion beyond the limits.
  Expected<EmittedKernel> emit(const std::string& symbol, const Expr& chunks);
  // Emit gives instructions their lines; must outlive it
  void set_lines(const KernelLines* lines) { emission_.lines = lines; }

 private:
  // The loop inside the present parallel loop whose iterations are shared out too
  struct Shared {
    const stmt::Loop* loop = nullptr;
    std::string outer{};                     // the parallel loop's variable
    Value *begin = nullptr, *end = nullptr;  // of this chunk, counted over both loops
  };

  // kernel_emitter.cpp
  void analyse();
  void check_temps();
  void emit_stmt(const Stmt& s);
  void emit_if(const stmt::If& guard);
  void emit_loop(const LoopRef& loop);
  void emit_serial(const stmt::Loop& loop, Value* begin, Value* end);
  void emit_prefetch(const stmt::Prefetch& prefetch);
  // The device, for its tokens or barriers (`what`); null: there is none, which fails
  const KernelEnvironment* device_for(const char* what);
  // emit_store.cpp
  void emit_store(const stmt::Store& store);
  void emit_async(const stmt::Store& store);
  void emit_update(const stmt::Store& store, const Access& access);
  // emit_transpose.cpp; false: the loop is no such copy
  bool emit_transpose(const stmt::Loop& loop);
  bool emit_pairs(const stmt::Loop& loop);
  Value* first_reduce_iteration();
  Expr resolved(const Expr& condition);
  // emit_parallel.cpp
  llvm::Function* start_function(const std::string& symbol, size_t integers,
                                 llvm::GlobalValue::LinkageTypes linkage);
  void enter(llvm::Function* function, Value* chunk = nullptr);
  Expr chunks_here() const;  // of the loop that was entered last
  void emit_parallel(const stmt::Loop& loop);
  llvm::Value* chunk_count(llvm::Value* extent, const Expr& limit);
  // Calls the body on each chunk, on the pool's threads
  void call_in_chunks(llvm::Function* body, std::vector<llvm::Value*> fields, llvm::Value* extent,
                      llvm::Value* chunks);
  void emit_chunk(const stmt::Loop& loop, llvm::Function* body,
                  const std::vector<std::string>& outer_vars);
  void emit_shared(const stmt::Loop& loop);
  llvm::Function* make_thunk(llvm::Function* body, llvm::StructType* packed);

  ExpressionEmitter expressions_;
  MemoryEmitter memory_;
  InstructionEmitter instructions_;
  Shared shared_;
  Expr most_chunks_ = 1;
  std::string symbol_;
  std::vector<const stmt::Loop*> loops_;  // enclosing the present statement
  // Present values of the variables of expanded loops
  std::map<std::string, int64_t> expanded_;
  std::vector<Expr> resolved_;  // keeps alive those that are not of the kernel's body
  int64_t emitted_ = 0;
  int parallel_count_ = 0;
  bool in_parallel_ = false;
};

}  // namespace tw::codegen
