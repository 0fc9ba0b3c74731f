// Emits blocks that an instruction of the target computes.
#pragma once
#include <unordered_map>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"

namespace tw::codegen {

class InstructionEmitter : private EmissionPart {
 public:
  InstructionEmitter(Emission& emission, ExpressionEmitter& expressions, MemoryEmitter& memory)
      : EmissionPart(emission), expressions_(expressions), memory_(memory) {}

  // Tells `memory` about the operands of the block.
  void note_operands(const stmt::Block& block);
  // False: the caller must emit the block's loops.
  bool emit(const stmt::Block& block);
  // Writes the setup that the statement needs in the present function. Null: none. `in_parallel`:
  // the statement is part of a parallel loop.
  const Intrinsic* set_up(const Stmt& s, bool in_parallel);
  void tear_down(const Intrinsic* state);

 private:
  struct Operand {
    BufferId buffer;
    std::vector<Expr> at;  // indices of its first element
    int64_t count = 0;     // number of its elements
    bool in_tiles = false;
  };
  struct Instruction {
    const Intrinsic* intrinsic = nullptr;  // null: the block's loops are emitted
    std::string result;
    std::vector<std::string> parameters;
    std::map<std::string, Operand> operands;
  };
  const Instruction& instruction_of(const stmt::Block& block);
  // Runs `fn` with lanes for the operand's elements.
  template <class Fn>
  auto with_lanes_of(const Operand& operand, const Fn& fn);
  Value* load_operand(const Operand& operand);
  void store_operand(const Operand& operand, Value* value);
  void find_states(const Stmt& s, bool in_parallel, std::vector<const Intrinsic*>& found) const;
  void write_around(const EmitCalls& emit);
  void note_work(const Intrinsic& intrinsic, Value* result);

  ExpressionEmitter& expressions_;
  MemoryEmitter& memory_;
  std::unordered_map<const stmt::Block*, Instruction> instructions_;
};

}  // namespace tw::codegen
