// Blocks that an instruction of the target computes.
#pragma once
#include <unordered_map>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {

class InstructionEmitter : private EmissionPart {
 public:
  InstructionEmitter(Emission& emission, ExpressionEmitter& expressions, MemoryEmitter& memory)
      : EmissionPart(emission), expressions_(expressions), memory_(memory) {}

  // Tells `memory` of the operands of the block.
  void note_operands(const StmtNode& s);
  // False: the block's loops are to be emitted.
  bool emit(const StmtNode& s);

 private:
  struct Operand {
    BufferId buffer;
    std::vector<Expr> at;  // of the first of
    int64_t count = 0;     // elements
  };
  struct Instruction {  // no words: the block's loops are emitted
    const Intrinsic* intrinsic = nullptr;
    std::vector<std::string> words;  // LLVM's intrinsic and its operands
    std::string result;
    std::map<std::string, Operand> operands;
  };
  const Instruction& instruction_of(const StmtNode& s);
  // In the lanes that its elements are
  template <class Fn>
  auto with_lanes_of(const Operand& operand, const Fn& fn);
  Value* load_operand(const Operand& operand);
  void store_operand(const Operand& operand, Value* value);
  Value* as_type(Value* value, llvm::Type* type);
  bool add_arguments(Value* operand, const llvm::FunctionType& type,
                     std::vector<Value*>& arguments);
  Value* joined(Value* result);
  Value* call_intrinsic(const Instruction& instruction, llvm::ArrayRef<Value*> operands,
                        llvm::Type* out);

  ExpressionEmitter& expressions_;
  MemoryEmitter& memory_;
  std::unordered_map<const StmtNode*, Instruction> instructions_;  // by block
};

}  // namespace tw::codegen
