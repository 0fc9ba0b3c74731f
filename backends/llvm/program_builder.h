// The parts of which functions of a model's program are built: numbers from expressions of symbols,
// fields of the environment, calls of the runtime, constants.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tw::codegen {

// The fields of tw_env (runtime/model.h), in order
enum class EnvField : unsigned {
  inputs,
  outputs,
  arena,
  weights,
  symbols,
  pool,
  threads,
  asynchronous,
  call_ns,
  devices,
  places,
  error,
  run,
  state,
  context,
  strings,
  workspaces
};

class ProgramBuilder {
 protected:
  using Constant = llvm::Constant;
  using Type = llvm::Type;
  using Value = llvm::Value;
  using Variables = std::map<std::string, Value*, std::less<>>;

  ProgramBuilder(llvm::Module& module, const Program& program);

  // Emits an integer expression of symbols. Division by zero may give any number, so it acts as by
  // one. `wraps` becomes true (an i1) where a sum, difference or product of the chosen value needs
  // more than 64 bits.
  Value* number(const Expr& e, const Variables& vars, Value** wraps = nullptr);
  // Emits a number of bytes; -1: more than can be counted.
  Value* counted(const Expr& bytes, const Variables& vars);
  // True where the condition holds; false where a number in it wraps.
  Value* holds(const Expr& condition, const Variables& vars);
  // Loads the model's symbols, then those made from data (`data`), which are all known only after a
  // run.
  Variables load_symbols(Value* symbols, bool data = false);
  Variables load_symbols(const std::vector<std::string>& names, Value* symbols);
  // Starts a new function of the module, into which the builder writes.
  llvm::Function* start(const std::string& name, Type* result, llvm::ArrayRef<Type*> parameters);
  Value* env_place(Value* env, EnvField field) {
    return b_.CreateStructGEP(env_type_, env, static_cast<unsigned>(field));
  }
  Value* env_field(Value* env, EnvField field) {  // loads a pointer
    return b_.CreateLoad(b_.getPtrTy(), env_place(env, field));
  }
  // Calls a function of the runtime.
  Value* runtime(const char* function, const std::vector<Value*>& arguments,
                 Type* result = nullptr);
  // Memory in the running function's frame
  Value* local(Type* type, size_t count = 1);
  // Extents of a view, as a constant if they are known
  Value* extents(const std::vector<Expr>& dims, const Variables& vars);
  void store_fields(llvm::StructType* type, Value* to, const std::vector<Value*>& values);
  // Makes the function return a status other than TW_OK.
  void end_unless_ok(Value* status);
  // Makes the function return TW_E_CANCELLED where another thread has cancelled the run.
  void end_if_cancelled(Value* env);
  Value* nth_pointer(Value* table, int index);
  // Constants of the module; an empty array is null.
  Constant* global(Constant* value, uint64_t align);
  Constant* text(const std::string& s) {
    return global(llvm::ConstantDataArray::getString(module_.getContext(), s), 1);
  }
  Constant* array(Type* element, const std::vector<Constant*>& values);

  llvm::Module& module_;
  const Program& program_;
  llvm::IRBuilder<> b_;
  // Structs of runtime/model.h and runtime/ops/ops.h
  llvm::StructType *env_type_, *view_type_, *args_type_;

 private:
  Value* binary_number(BinaryOp op, Value* x, Value* y, Value** wraps);
  Value* arithmetic(BinaryOp op, Value* x, Value* y, Value** wraps);
};

}  // namespace tw::codegen
