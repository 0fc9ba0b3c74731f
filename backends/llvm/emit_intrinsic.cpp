// Blocks that an instruction of the target computes. Operands are loaded as vectors, the calls of
// `emit` are written (backends/llvm/emit_writer.h), and the result is stored. Where the target has
// no such instruction, the block's loops are emitted. An `emit` "... over 32" is executed by 32
// threads together, and each thread has an equal part of every operand.
#include "backends/estimate/multiply_adds.h"
#include "backends/llvm/emit_writer.h"
#include "backends/llvm/instruction_emitter.h"
#include "ir/kernel/shared_loop.h"
#include "ir/kernel/work.h"
#include "ir/schedule/intrinsic.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {

const InstructionEmitter::Instruction& InstructionEmitter::instruction_of(
    const stmt::Block& block) {
  const auto known = instructions_.find(&block);
  if (known != instructions_.end()) return known->second;
  Instruction& made = instructions_[&block];
  const Intrinsic* intrinsic = emission_.target.find_intrinsic(block.intrinsic);
  if (!intrinsic) return made;
  Expected<std::shared_ptr<const Kernel>> parsed = semantics_of(*intrinsic);
  if (!parsed)
    return fail("intrinsic '" + intrinsic->name + "': " + error_text(parsed.takeError())), made;
  const Kernel* semantics = parsed->get();
  const int64_t threads = intrinsic->emit.threads;
  Expected<IntrinsicMatch> match = threads > 1 && emission_.environment
                                       ? operands_of_part(*semantics, block)
                                       : match_intrinsic(*intrinsic, *semantics, kernel_,
                                                         block.body, emission_.ranges);
  if (!match)
    return fail("block '" + block.name + "' is not what '" + intrinsic->name +
                "' does: " + error_text(match.takeError())),
           made;
  if (threads > 1 && !emission_.environment) return made;
  made.intrinsic = intrinsic;
  for (const Buffer& parameter : semantics->buffers) {
    Operand operand{match->at(parameter.name).buffer, match->at(parameter.name).at, 1};
    const size_t place = made.parameters.size();
    operand.in_tiles = place < intrinsic->scopes.size() && intrinsic->scopes[place] == kTileScope;
    for (const Expr& extent : parameter.shape) operand.count *= as_const(extent).value_or(0);
    operand.count /= threads;
    if (parameter.role == BufferRole::output) made.result = parameter.name;
    made.parameters.push_back(parameter.name);
    made.operands.emplace(parameter.name, std::move(operand));
  }
  return made;
}

void InstructionEmitter::note_operands(const stmt::Block& block) {
  for (const auto& [name, operand] : instruction_of(block).operands) {
    memory_.note_register_access(operand.buffer, operand.count);
    if (operand.in_tiles) memory_.note_tiles(operand.buffer, operand.count);
  }
}

template <class Fn>
auto InstructionEmitter::with_lanes_of(const Operand& operand, const Fn& fn) {
  Access access = memory_.access_of(operand.buffer, operand.at);
  access.lane_stride = operand.count > 1 ? 1 : 0;
  lanes_.count = operand.count > 1 ? static_cast<int>(operand.count) : 0;
  struct End {
    Lanes& lanes;
    ~End() { lanes.count = 0; }
  } end{lanes_};
  return fn(access);
}

Value* InstructionEmitter::load_operand(const Operand& operand) {
  return with_lanes_of(
      operand, [&](const Access& access) { return memory_.load_raw(operand.buffer, access); });
}

void InstructionEmitter::store_operand(const Operand& operand, Value* value) {
  with_lanes_of(operand,
                [&](const Access& access) { memory_.store_raw(operand.buffer, access, value); });
}

// Finds the instructions with setup and teardown in the statement. Loops that threads share are
// skipped, as they are functions of their own.
void InstructionEmitter::find_states(const Stmt& s, bool in_parallel,
                                     std::vector<const Intrinsic*>& found) const {
  if (!in_parallel && is_shared_out(kernel_, s)) return;
  const auto* block = as<stmt::Block>(s);
  const Intrinsic* intrinsic = block ? emission_.target.find_intrinsic(block->intrinsic) : nullptr;
  if (intrinsic && !intrinsic->setup.empty()) found.push_back(intrinsic);
  for (const Stmt& child : children(s)) find_states(child, in_parallel, found);
}

const Intrinsic* InstructionEmitter::set_up(const Stmt& s, bool in_parallel) {
  std::vector<const Intrinsic*> found;
  find_states(s, in_parallel, found);
  if (found.empty()) return nullptr;
  for (const Intrinsic* other : found)
    if (other->setup.text() != found[0]->setup.text())
      fail("'" + found[0]->name + "' and '" + other->name + "' are set up in different ways");
  write_around(found[0]->setup);
  return found[0];
}

void InstructionEmitter::tear_down(const Intrinsic* state) {
  if (state) write_around(state->teardown);
}

void InstructionEmitter::write_around(const EmitCalls& emit) {
  EmitWriter writer(v_.b, module_);
  const EmitWriter::Operands none{};
  if (Error error = writer.write(emit, none, v_.b.getVoidTy()).takeError())
    fail(error_text(std::move(error)));
}

// Notes the products for estimates, because the call is opaque to LLVM.
void InstructionEmitter::note_work(const Intrinsic& intrinsic, Value* result) {
  Expected<std::shared_ptr<const Kernel>> semantics = semantics_of(intrinsic);
  if (!semantics) return fail(error_text(semantics.takeError()));
  llvm::Instruction* last = result ? llvm::dyn_cast<llvm::Instruction>(result) : nullptr;
  for (llvm::Instruction& i : llvm::reverse(*v_.b.GetInsertBlock()))
    if (llvm::isa<llvm::CallBase>(i)) {
      last = &i;
      break;
    }
  if (last) note_multiply_adds(*last, as_const(count_work(**semantics).flops).value_or(0) / 2);
}

bool InstructionEmitter::emit(const stmt::Block& block) {
  const Instruction& instruction = instruction_of(block);
  if (failed() || !instruction.intrinsic) return false;
  if (lanes_.count || lanes_.mask)
    return fail("block '" + block.name + "' of '" + block.intrinsic + "' is in a vector loop"),
           true;
  expressions_.begin_statement();
  const EmitCalls& emit = instruction.intrinsic->emit;
  const Operand& result = instruction.operands.at(instruction.result);
  const auto value_of = [&](const std::string& name) {
    const Operand& operand = instruction.operands.at(name);
    if (operand.in_tiles)
      return static_cast<Value*>(v_.b.getInt8(static_cast<uint8_t>(
          memory_.tile(operand.buffer, memory_.access_of(operand.buffer, operand.at)))));
    Value* value = load_operand(operand);
    llvm::Type* element = operand_element(v_.b.getContext(), kernel_.buffer(operand.buffer).dtype);
    return value->getType()->getScalarType() == element
               ? value
               : v_.b.CreateBitCast(value, v_.with_lanes(element, Values::lanes(value)));
  };
  const auto address_of = [&](const std::string& name) -> Value* {
    const Operand& operand = instruction.operands.at(name);
    if (kernel_.buffer(operand.buffer).scope != "register")
      return memory_.pointer(operand.buffer, memory_.access_of(operand.buffer, operand.at), 0);
    fail("'" + block.intrinsic + "' takes the address of '" + name + "', which is in registers");
    return llvm::PoisonValue::get(v_.b.getPtrTy());
  };
  llvm::Type* out = v_.with_lanes(v_.storage_type(kernel_.buffer(result.buffer).dtype),
                                  static_cast<int>(result.count > 1 ? result.count : 0));
  Value* value = nullptr;
  if (emit.threads > 1) {
    std::vector<Value*> operands;
    for (const std::string& parameter : instruction.parameters)
      operands.push_back(value_of(parameter));
    Expected<Value*> made = emission_.environment->together(v_, *instruction.intrinsic, operands);
    if (!made) return fail(error_text(made.takeError())), true;
    value = *made ? v_.b.CreateBitCast(*made, out) : nullptr;
  }
  if (!value) {
    EmitWriter writer(v_.b, module_);
    Expected<Value*> made = writer.write(emit, {value_of, address_of}, out);
    if (!made) return fail(error_text(made.takeError())), true;
    value = *made;
    note_work(*instruction.intrinsic, value);
  }
  if (value) store_operand(result, value);
  else expressions_.forget();  // the instruction has changed memory behind the emitter's back
  return true;
}

}  // namespace tw::codegen
