// Blocks that an instruction of the target computes: "llvm.name(c, a, b)" loads the operands as
// vectors, calls the LLVM intrinsic and stores its result. An operand shorter than the intrinsic's
// parameter is repeated, a longer one is handed over in parts. Where there is no such instruction,
// the block's loops are emitted. Of "... over 32", which 32 threads do together, each thread has an
// equal part of every operand.
#include <llvm/IR/Intrinsics.h>

#include "backends/llvm/instruction_emitter.h"
#include "ir/schedule/intrinsic.h"

namespace tw::codegen {

const InstructionEmitter::Instruction& InstructionEmitter::instruction_of(const StmtNode& s) {
  const auto known = instructions_.find(&s);
  if (known != instructions_.end()) return known->second;
  Instruction& made = instructions_[&s];
  const Intrinsic* intrinsic = s.names.empty() ? nullptr
                                               : emission_.target.find_intrinsic(s.names[0]);
  if (!intrinsic) return made;
  Expected<Kernel> semantics = parse_kernel(intrinsic->semantics, intrinsic->name);
  if (!semantics)
    return fail("intrinsic '" + intrinsic->name + "': " + error_text(semantics.takeError())), made;
  const IntrinsicCall call = intrinsic_call(*intrinsic);
  Expected<IntrinsicMatch> match = call.threads > 1 && emission_.environment
                                       ? operands_of_part(*semantics, s)
                                       : match_intrinsic(*semantics, kernel_, s.body[0],
                                                         emission_.ranges);
  if (!match)
    return fail("block '" + s.label + "' is not what '" + intrinsic->name +
                "' does: " + error_text(match.takeError())),
           made;
  if (call.threads > 1 && !emission_.environment) return made;
  made.intrinsic = intrinsic;
  made.words = call.words;
  for (const Buffer& parameter : semantics->buffers) {
    Operand operand{match->at(parameter.name).buffer, match->at(parameter.name).at, 1};
    for (const Expr& extent : parameter.shape) operand.count *= as_const(extent).value_or(0);
    operand.count /= call.threads;
    if (parameter.role == BufferRole::output) made.result = parameter.name;
    made.operands.emplace(parameter.name, std::move(operand));
  }
  return made;
}

void InstructionEmitter::note_operands(const StmtNode& s) {
  for (const auto& [name, operand] : instruction_of(s).operands)
    memory_.note_register_access(operand.buffer, operand.count);
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

// The bits as another type, repeated when it is larger; null when neither fits.
Value* InstructionEmitter::as_type(Value* value, llvm::Type* type) {
  auto& b = v_.b;
  const uint64_t has = value->getType()->getPrimitiveSizeInBits().getFixedValue(),
                 wants = type->getPrimitiveSizeInBits().getFixedValue();
  if (has == 0 || wants % has != 0) return nullptr;
  if (wants > has)
    value = b.CreateVectorSplat(static_cast<unsigned>(wants / has),
                                b.CreateBitCast(value, b.getIntNTy(static_cast<unsigned>(has))));
  return b.CreateBitCast(value, type);
}

// The parameters that follow, filled with the operand's bits from its beginning on. False: they do
// not fit.
bool InstructionEmitter::add_arguments(Value* operand, const llvm::FunctionType& type,
                                       std::vector<Value*>& arguments) {
  auto& b = v_.b;
  if (arguments.size() >= type.getNumParams()) return false;
  llvm::Type* first = type.getParamType(static_cast<unsigned>(arguments.size()));
  const uint64_t has = operand->getType()->getPrimitiveSizeInBits().getFixedValue(),
                 wants = first->getPrimitiveSizeInBits().getFixedValue();
  if (has <= wants || wants == 0 || has % wants != 0) {
    arguments.push_back(as_type(operand, first));
    return arguments.back() != nullptr;
  }
  Value* parts = b.CreateBitCast(
      operand, llvm::FixedVectorType::get(b.getIntNTy(static_cast<unsigned>(wants)),
                                          static_cast<unsigned>(has / wants)));
  for (uint64_t i = 0; i < has / wants; ++i) {
    if (arguments.size() >= type.getNumParams()) return false;
    arguments.push_back(as_type(b.CreateExtractElement(parts, i),
                                type.getParamType(static_cast<unsigned>(arguments.size()))));
    if (!arguments.back()) return false;
  }
  return true;
}

// A result in several registers as one vector.
Value* InstructionEmitter::joined(Value* result) {
  auto* parts = llvm::dyn_cast<llvm::StructType>(result->getType());
  if (!parts) return result;
  auto& b = v_.b;
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(parts->getElementType(0), parts->getNumElements()));
  for (unsigned i = 0; i < parts->getNumElements(); ++i)
    all = b.CreateInsertElement(all, b.CreateExtractValue(result, i), uint64_t{i});
  return all;
}

// Null: it does not fit, which is noted.
Value* InstructionEmitter::call_intrinsic(const Instruction& instruction,
                                          llvm::ArrayRef<Value*> operands, llvm::Type* out) {
  auto& b = v_.b;
  const std::string& name = instruction.words[0];
  const llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(name);
  if (id == llvm::Intrinsic::not_intrinsic)
    return fail("LLVM has no intrinsic '" + name + "'"), nullptr;
  std::vector<Value*> arguments;
  llvm::FunctionType* type = nullptr;
  if (!llvm::Intrinsic::isOverloaded(id)) {
    type = llvm::Intrinsic::getType(b.getContext(), id);
    for (size_t i = 0; i < operands.size(); ++i)
      if (!add_arguments(operands[i], *type, arguments))
        return fail("operand '" + instruction.words[i + 1] + "' does not fit '" + name + "'"),
               nullptr;
    if (type->getNumParams() != arguments.size())
      return fail("'" + name + "' takes " + std::to_string(type->getNumParams()) + " operands"),
             nullptr;
  } else {
    std::vector<llvm::Type*> types;
    for (Value* operand : operands)
      types.push_back(operand->getType()), arguments.push_back(operand);
    type = llvm::FunctionType::get(out, types, false);
  }
  Value* value = as_type(joined(b.CreateCall(module_.getOrInsertFunction(name, type), arguments)),
                         out);
  if (!value) fail("the result of '" + name + "' does not fit its operand");
  return value;
}

bool InstructionEmitter::emit(const StmtNode& s) {
  if (lanes_.count || lanes_.mask) return false;
  const Instruction& instruction = instruction_of(s);
  if (failed() || instruction.words.empty()) return false;
  expressions_.begin_statement();
  const auto result = instruction.operands.find(instruction.result);
  std::vector<Value*> operands;
  for (size_t i = 1; i < instruction.words.size(); ++i) {
    const auto operand = instruction.operands.find(instruction.words[i]);
    if (operand == instruction.operands.end())
      return fail("'" + instruction.words[i] + "' is no parameter of the intrinsic '" + s.names[0] +
                  "'"),
             true;
    operands.push_back(load_operand(operand->second));
  }
  llvm::Type* out = v_.with_lanes(
      v_.storage_type(kernel_.buffer(result->second.buffer).dtype),
      static_cast<int>(result->second.count > 1 ? result->second.count : 0));
  Value* value = nullptr;
  if (intrinsic_call(*instruction.intrinsic).threads > 1) {
    Expected<Value*> made = emission_.environment->together(v_, *instruction.intrinsic, operands);
    if (!made) return fail(error_text(made.takeError())), true;
    value = *made;
  }
  if (!value) value = call_intrinsic(instruction, operands, out);
  if (value) store_operand(result->second, value);
  return true;
}

}  // namespace tw::codegen
