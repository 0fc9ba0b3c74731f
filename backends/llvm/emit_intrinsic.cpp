// Blocks that an instruction of the target computes: "llvm.name(c, a, b)" loads the operands as vectors, calls the LLVM intrinsic and stores its
// result. An operand shorter than the intrinsic's parameter is repeated. Where there is no such instruction, the block's loops are emitted.
#include <llvm/IR/Intrinsics.h>

#include "backends/llvm/kernel_emitter.h"
#include "ir/schedule/intrinsic.h"

namespace tw {

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// "name(a, b)" as name, a, b.
std::vector<std::string> words_of(const std::string& emit) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : emit) {
    if (c != '(' && c != ',' && c != ')') {
      word += c;
      continue;
    }
    words.push_back(trimmed(word));
    word.clear();
  }
  return words;
}

}  // namespace

const KernelEmitter::Instruction& KernelEmitter::instruction_of(const StmtNode& s) {
  const auto known = instructions_.find(&s);
  if (known != instructions_.end()) return known->second;
  Instruction& made = instructions_[&s];
  const Intrinsic* intrinsic = s.names.empty() ? nullptr : target_.find_intrinsic(s.names[0]);
  if (!intrinsic || !intrinsic->emit.starts_with("llvm.")) return made;
  Expected<Kernel> semantics = parse_kernel(intrinsic->semantics, intrinsic->name);
  if (!semantics) return fail("intrinsic '" + intrinsic->name + "': " + error_text(semantics.takeError())), made;
  Expected<IntrinsicMatch> match = match_intrinsic(*semantics, kernel_, s.body[0], ranges_);
  if (!match) return fail("block '" + s.label + "' is not what '" + intrinsic->name + "' does: " + error_text(match.takeError())), made;
  made.words = words_of(intrinsic->emit);
  for (const Buffer& parameter : semantics->buffers) {
    Operand operand{match->at(parameter.name).buffer, match->at(parameter.name).at, 1};
    for (const Expr& extent : parameter.shape) operand.count *= as_const(extent).value_or(0);
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
  Value* value = buffer.scope == "register" ? load_register(operand.buffer, access) : load_memory(operand.buffer, access, v_.storage_type(buffer.dtype));
  lane_count_ = 0;
  return value;
}

void KernelEmitter::store_operand(const Operand& operand, Value* value) {
  Access access = access_of(offset_form(kernel_.buffer(operand.buffer), operand.at, depths_));
  access.lane_stride = operand.count > 1 ? 1 : 0;
  lane_count_ = operand.count > 1 ? static_cast<int>(operand.count) : 0;
  if (kernel_.buffer(operand.buffer).scope == "register") store_register(operand.buffer, access, value);
  else store_memory(operand.buffer, access, value);
  lane_count_ = 0;
}

// The bits as another type, repeated when it is larger; null when neither fits.
Value* KernelEmitter::as_type(Value* value, llvm::Type* type) {
  auto& b = v_.b;
  const uint64_t has = value->getType()->getPrimitiveSizeInBits().getFixedValue(), wants = type->getPrimitiveSizeInBits().getFixedValue();
  if (has == 0 || wants % has != 0) return nullptr;
  if (wants > has) value = b.CreateVectorSplat(static_cast<unsigned>(wants / has), b.CreateBitCast(value, b.getIntNTy(static_cast<unsigned>(has))));
  return b.CreateBitCast(value, type);
}

void KernelEmitter::emit_region(const Stmt& s) {
  if (lane_count_ || mask_) return emit_stmt(s->body[0]);
  const Instruction& instruction = instruction_of(*s);
  if (!error_.empty() || instruction.words.empty()) return emit_stmt(s->body[0]);
  auto& b = v_.b;
  memo_.clear();
  memo_.emplace_back();
  const std::string& name = instruction.words[0];
  const llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(name);
  if (id == llvm::Intrinsic::not_intrinsic) return fail("LLVM has no intrinsic '" + name + "'");
  const auto result = instruction.operands.find(instruction.result);
  std::vector<Value*> arguments;
  for (size_t i = 1; i < instruction.words.size(); ++i) {
    const auto operand = instruction.operands.find(instruction.words[i]);
    if (operand == instruction.operands.end()) return fail("'" + instruction.words[i] + "' is no parameter of the intrinsic '" + s->names[0] + "'");
    arguments.push_back(load_operand(operand->second));
  }
  llvm::Type* out = v_.with_lanes(v_.storage_type(kernel_.buffer(result->second.buffer).dtype), static_cast<int>(result->second.count > 1 ? result->second.count : 0));
  llvm::FunctionType* type = nullptr;
  if (!llvm::Intrinsic::isOverloaded(id)) {
    type = llvm::Intrinsic::getType(b.getContext(), id);
    if (type->getNumParams() != arguments.size()) return fail("'" + name + "' takes " + std::to_string(type->getNumParams()) + " operands");
    for (size_t i = 0; i < arguments.size(); ++i) {
      arguments[i] = as_type(arguments[i], type->getParamType(static_cast<unsigned>(i)));
      if (!arguments[i]) return fail("operand '" + instruction.words[i + 1] + "' does not fit '" + name + "'");
    }
  } else {
    std::vector<llvm::Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    type = llvm::FunctionType::get(out, types, false);
  }
  Value* value = as_type(b.CreateCall(module_.getOrInsertFunction(name, type), arguments), out);
  if (!value) return fail("the result of '" + name + "' does not fit its operand");
  store_operand(result->second, value);
}

}  // namespace tw
