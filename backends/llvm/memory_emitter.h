// Loads and stores of a kernel's buffers, in memory and in registers
#pragma once
#include <optional>
#include <unordered_map>

#include "backends/llvm/emission.h"

namespace tw::codegen {

class ExpressionEmitter;

// The elements of one load or store, for the present values of the loops
struct Access {
  int64_t constant = 0;
  Value* dynamic = nullptr;  // i64; null: 0
  int64_t lane_stride = 0;
  Value* lane_offsets = nullptr;  // <L x i64>: lanes that are not a ramp
};

class MemoryEmitter : private EmissionPart {
 public:
  MemoryEmitter(Emission& emission, ExpressionEmitter& expressions)
      : EmissionPart(emission), expressions_(expressions) {}

  // Notes an access to a register buffer. A slot has as many lanes as the common divisor of all
  // accesses along its innermost elements.
  void note_register_access(BufferId id, int64_t lanes);
  // Called after all accesses: no slot may reach beyond the buffer's end.
  void close_register_slots(BufferId id);

  // Notes a buffer in tile registers of `elements` each. Only instructions that take a tile's
  // number access it.
  void note_tiles(BufferId id, int64_t elements);
  // Chooses the registers, after all buffers are noted.
  void place_tiles();
  // The number of the register that begins with the element
  int64_t tile(BufferId id, const Access& access);

  // Cached by the address of the load, store or comparison, which lives long enough
  const IndexForm& form_of(const void* key, BufferId buffer, const std::vector<Expr>& indices);
  // The comparison's right side minus its left side
  const IndexForm& difference_form(const expr::Binary& comparison);
  Access access_of(const IndexForm& form);
  Access access_of(BufferId buffer, const std::vector<Expr>& indices);

  Value* load(BufferId id, const Access& access);
  void store(BufferId id, const Access& access, Value* value);
  // The next two use values as they are stored.
  Value* load_raw(BufferId id, const Access& access);
  void store_raw(BufferId id, const Access& access, Value* value);
  Value* load_memory(BufferId id, const Access& access, llvm::Type* type);
  void store_memory(BufferId id, const Access& access, Value* value);

  Value* pointer(BufferId id, const Access& access, int64_t lane);
  llvm::Align alignment(BufferId id, const Access& access, int64_t extra) const;
  int64_t elements(BufferId id) const;  // -1: the shape is not constant

 private:
  Value* load_repeated(BufferId id, const Access& access, llvm::Type* type);
  Value* load_table(BufferId id, const Access& access, llvm::Type* type);
  Value* look_up(Value* table, Value* places);
  Value* look_up_each(Value* table, Value* places);
  Value* load_register(BufferId id, const Access& access);
  void store_register(BufferId id, const Access& access, Value* value);
  std::optional<std::vector<int64_t>> register_elements(BufferId id, const Access& access);
  llvm::AllocaInst* register_slot(BufferId id, int64_t slot);
  int64_t slot_lanes(BufferId id) const;
  bool in_registers(BufferId id) const;
  Value* base_of(BufferId id);
  Value* lane_pointers(BufferId id, const Access& access);
  Value* any_lane();

  ExpressionEmitter& expressions_;
  std::unordered_map<const void*, IndexForm> forms_;
  // Lanes of a register slot by buffer index; 0: scalars
  std::map<int32_t, int64_t> slot_lanes_;
  std::map<std::pair<int32_t, int64_t>, llvm::AllocaInst*> slots_;
  struct Tiles {
    int64_t first = 0, elements = 0;  // first register, and elements in each
  };
  std::map<int32_t, Tiles> tiles_;  // by buffer index
  std::map<int32_t, Value*> stack_;
  std::map<int32_t, llvm::Function*> owners_;  // functions that own register and stack buffers
};

}  // namespace tw::codegen
