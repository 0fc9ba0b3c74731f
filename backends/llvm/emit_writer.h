// Writes an instruction's `emit` as LLVM code: intrinsics by name, inline assembly, and a few of
// LLVM's own operations.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <string>

#include "ir/dtype.h"
#include "ir/intrinsic.h"
#include "support/diag.h"

namespace tw::codegen {

using llvm::Value;

class EmitWriter {
 public:
  EmitWriter(llvm::IRBuilder<>& builder, llvm::Module& module) : b(builder), module_(module) {}

  // Gives access to the operands: a parameter's elements as a vector, or the address of its first
  // element.
  struct Operands {
    std::function<Value*(const std::string& parameter)> value, address;
  };
  // Returns the last call's value as `out`; null where the accumulator is passed by address.
  // Errors: names that LLVM does not know, operands and results that do not fit.
  Expected<Value*> write(const EmitCalls& emit, const Operands& operands, llvm::Type* out);

 private:
  Expected<Value*> call(const EmitCalls::Call& call, llvm::Type* out);
  Expected<Value*> intrinsic(const EmitCalls::Call& call);
  Expected<Value*> each(const EmitCalls::Call& call);
  Expected<Value*> assembly(const EmitCalls::Call& call, llvm::Type* out);
  Expected<Value*> operation(const EmitCalls::Call& call);
  Expected<Value*> widened(const EmitCalls::Call& call, Value* x, llvm::Type* to);
  Expected<llvm::Function*> declaration(const std::string& name);
  Error add_arguments(const EmitCalls::Call& call, const EmitCalls::Operand& operand,
                      const llvm::FunctionType& type, std::vector<Value*>& arguments);
  Value* value_of(const EmitCalls::Operand& operand);
  Value* data(const std::vector<uint8_t>& bytes);

  llvm::IRBuilder<>& b;
  llvm::Module& module_;
  const Operands* operands_ = nullptr;
  std::map<std::string, Value*> values_;  // values of earlier calls
};

// The element type that calls see: LLVM's type for small floats where it has one
llvm::Type* operand_element(llvm::LLVMContext& context, DType t);

// Writes the instruction into a function that nobody calls, to get the errors of `write`.
Error try_emit(const Intrinsic& intrinsic, llvm::Module& module);

}  // namespace tw::codegen
