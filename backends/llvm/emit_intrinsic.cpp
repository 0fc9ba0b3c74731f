// Blocks that an instruction of the target computes: "llvm.name(c, a, b)" loads the operands as
// vectors, calls the LLVM intrinsic and stores its result. An operand shorter than the intrinsic's
// parameter is repeated, a longer one is handed over in parts. Where there is no such instruction,
// the block's loops are emitted. Of "... over 32", which 32 threads do together, each thread has an
// equal part of every operand.
#include <llvm/IR/Intrinsics.h>

#include "backends/llvm/kernel_emitter.h"
#include "ir/schedule/intrinsic.h"

namespace tw {

const KernelEmitter::Instruction& KernelEmitter::instruction_of(const StmtNode& s) {
  const auto known = instructions_.find(&s);
  if (known != instructions_.end()) return known->second;
  Instruction& made = instructions_[&s];
  const Intrinsic* intrinsic = s.names.empty() ? nullptr : target_.find_intrinsic(s.names[0]);
  if (!intrinsic) return made;
  Expected<Kernel> semantics = parse_kernel(intrinsic->semantics, intrinsic->name);
  if (!semantics)
    return fail("intrinsic '" + intrinsic->name + "': " + error_text(semantics.takeError())), made;
  const IntrinsicCall call = intrinsic_call(*intrinsic);
  Expected<IntrinsicMatch> match = call.threads > 1 && around_
                                       ? operands_of_part(*semantics, s)
                                       : match_intrinsic(*semantics, kernel_, s.body[0], ranges_);
  if (!match)
    return fail("block '" + s.label + "' is not what '" + intrinsic->name +
                "' does: " + error_text(match.takeError())),
           made;
  if (call.threads > 1 && !around_) return made;
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

Value* KernelEmitter::load_operand(const Operand& operand) {
  const Access start = access_of(offset_form(kernel_.buffer(operand.buffer), operand.at, depths_));
  Access access = start;
  access.lane_stride = operand.count > 1 ? 1 : 0;
  lane_count_ = operand.count > 1 ? static_cast<int>(operand.count) : 0;
  const Buffer& buffer = kernel_.buffer(operand.buffer);
  Value* value = buffer.scope == "register"
                     ? load_register(operand.buffer, access)
                     : load_memory(operand.buffer, access, v_.storage_type(buffer.dtype));
  lane_count_ = 0;
  return value;
}

void KernelEmitter::store_operand(const Operand& operand, Value* value) {
  Access access = access_of(offset_form(kernel_.buffer(operand.buffer), operand.at, depths_));
  access.lane_stride = operand.count > 1 ? 1 : 0;
  lane_count_ = operand.count > 1 ? static_cast<int>(operand.count) : 0;
  if (kernel_.buffer(operand.buffer).scope == "register")
    store_register(operand.buffer, access, value);
  else store_memory(operand.buffer, access, value);
  lane_count_ = 0;
}

// The bits as another type, repeated when it is larger; null when neither fits.
Value* KernelEmitter::as_type(Value* value, llvm::Type* type) {
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
bool KernelEmitter::add_arguments(Value* operand, const llvm::FunctionType& type,
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
Value* KernelEmitter::joined(Value* result) {
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
Value* KernelEmitter::call_intrinsic(const Instruction& instruction,
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

void KernelEmitter::emit_region(const Stmt& s) {
  if (lane_count_ || mask_) return emit_stmt(s->body[0]);
  const Instruction& instruction = instruction_of(*s);
  if (!error_.empty() || instruction.words.empty()) return emit_stmt(s->body[0]);
  memo_.clear();
  memo_.emplace_back();
  const auto result = instruction.operands.find(instruction.result);
  std::vector<Value*> operands;
  for (size_t i = 1; i < instruction.words.size(); ++i) {
    const auto operand = instruction.operands.find(instruction.words[i]);
    if (operand == instruction.operands.end())
      return fail("'" + instruction.words[i] + "' is no parameter of the intrinsic '" +
                  s->names[0] + "'");
    operands.push_back(load_operand(operand->second));
  }
  llvm::Type* out = v_.with_lanes(
      v_.storage_type(kernel_.buffer(result->second.buffer).dtype),
      static_cast<int>(result->second.count > 1 ? result->second.count : 0));
  Value* value = nullptr;
  if (intrinsic_call(*instruction.intrinsic).threads > 1) {
    Expected<Value*> made = around_->together(v_, *instruction.intrinsic, operands);
    if (!made) return fail(error_text(made.takeError()));
    value = *made;
  }
  if (!value) value = call_intrinsic(instruction, operands, out);
  if (value) store_operand(result->second, value);
}

}  // namespace tw
