#include "backends/llvm/emit_writer.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <charconv>

#include "ir/schedule/intrinsic.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {
namespace {

constexpr std::string_view kEach = "each.";

uint64_t bits(const llvm::Type* type) { return type->getPrimitiveSizeInBits().getFixedValue(); }

// The bits as another type, repeated when that is larger; null when neither fits
Value* as_type(llvm::IRBuilder<>& b, Value* value, llvm::Type* type) {
  const uint64_t has = bits(value->getType()), wants = bits(type);
  if (has == 0 || wants == 0 || wants % has != 0) return nullptr;
  if (wants > has)
    value = b.CreateVectorSplat(static_cast<unsigned>(wants / has),
                                b.CreateBitCast(value, b.getIntNTy(static_cast<unsigned>(has))));
  return b.CreateBitCast(value, type);
}

// Joins a result in several registers into one vector; null: their types differ.
Value* joined(llvm::IRBuilder<>& b, Value* result) {
  auto* parts = llvm::dyn_cast<llvm::StructType>(result->getType());
  if (!parts) return result;
  for (llvm::Type* part : parts->elements())
    if (part != parts->getElementType(0) || part->isVectorTy()) return nullptr;
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(parts->getElementType(0), parts->getNumElements()));
  for (unsigned i = 0; i < parts->getNumElements(); ++i)
    all = b.CreateInsertElement(all, b.CreateExtractValue(result, i), uint64_t{i});
  return all;
}

// The type of a word in LLVM's mangled names: "i32", "v16f32"; null: another word
llvm::Type* named_type(llvm::LLVMContext& context, std::string_view word) {
  unsigned lanes = 0;
  if (word.starts_with("v")) {
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), lanes);
    if (error != std::errc() || lanes == 0) return nullptr;
    word.remove_prefix(static_cast<size_t>(end - word.data()));
  }
  llvm::Type* type = word == "f16"    ? llvm::Type::getHalfTy(context)
                     : word == "bf16" ? llvm::Type::getBFloatTy(context)
                     : word == "f32"  ? llvm::Type::getFloatTy(context)
                     : word == "f64"  ? llvm::Type::getDoubleTy(context)
                     : word == "p0"   ? llvm::PointerType::get(context, 0)
                     : word == "p3"   ? llvm::PointerType::get(context, 3)
                                      : nullptr;
  unsigned width = 0;
  if (!type && word.starts_with("i")) {
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), width);
    if (error == std::errc() && end == word.data() + word.size() && width > 0 && width <= 64)
      type = llvm::IntegerType::get(context, width);
  }
  return type && lanes ? llvm::FixedVectorType::get(type, lanes) : type;
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (size_t at = 0, end; at <= name.size(); at = end + 1) {
    end = std::min(name.find('.', at), name.size());
    words.push_back(name.substr(at, end - at));
  }
  return words;
}

// The number of types that an overloaded intrinsic's name must contain
size_t overloaded_types(llvm::Intrinsic::ID id) {
  llvm::SmallVector<llvm::Intrinsic::IITDescriptor> table;
  llvm::Intrinsic::getIntrinsicInfoTableEntries(id, table);
  size_t count = 0;
  for (const auto& entry : table)
    if (entry.Kind == llvm::Intrinsic::IITDescriptor::Argument &&
        entry.getArgumentKind() != llvm::Intrinsic::IITDescriptor::AK_MatchType)
      count = std::max<size_t>(count, entry.getArgumentNumber() + 1);
  return count;
}

}  // namespace

Expected<llvm::Function*> EmitWriter::declaration(const std::string& name) {
  using namespace llvm::Intrinsic;
  const ID id = lookupIntrinsicID(name);
  if (id == not_intrinsic)
    return make_error(DiagCode::unsupported, "LLVM has no intrinsic '{0}'", name);
  if (!isOverloaded(id)) return getOrInsertDeclaration(&module_, id);
  const std::string base = getBaseName(id).str();
  std::vector<llvm::Type*> types;
  if (name.size() > base.size())
    for (const std::string_view word : words_of(std::string_view(name).substr(base.size() + 1)))
      types.push_back(named_type(b.getContext(), word));
  if (types.size() != overloaded_types(id) || std::ranges::count(types, nullptr))
    return make_error(DiagCode::unsupported,
                      "'{0}' is LLVM's '{1}' for {2} types, which its name must end with", name,
                      base, overloaded_types(id));
  return getOrInsertDeclaration(&module_, id, types);
}

Value* EmitWriter::data(const std::vector<uint8_t>& bytes) {
  llvm::Constant* array = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef(bytes));
  auto* global = new llvm::GlobalVariable(module_, array->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, array, "data");
  global->setAlignment(llvm::Align(64));
  return global;
}

Value* EmitWriter::value_of(const EmitCalls::Operand& operand) {
  const auto known = values_.find(operand.name);
  return known == values_.end() ? operands_->value(operand.name) : known->second;
}

// Fills the parameters that follow with the operand's bits, from the beginning on.
Error EmitWriter::add_arguments(const EmitCalls::Call& call, const EmitCalls::Operand& operand,
                                const llvm::FunctionType& type, std::vector<Value*>& arguments) {
  const auto next = static_cast<unsigned>(arguments.size());
  if (next >= type.getNumParams())
    return make_error(DiagCode::unsupported, "'{0}' takes {1} operands", call.callee,
                      type.getNumParams());
  const auto misfit = [&] {
    return make_error(DiagCode::unsupported, "operand '{0}' does not fit '{1}'",
                      operand.name.empty() ? std::to_string(operand.number) : operand.name,
                      call.callee);
  };
  llvm::Type* first = type.getParamType(next);
  if (operand.kind == EmitCalls::OperandKind::number) {
    if (!first->isIntegerTy()) return misfit();
    arguments.push_back(llvm::ConstantInt::getSigned(first, operand.number));
    return Error::success();
  }
  if (operand.kind != EmitCalls::OperandKind::value) {
    if (!first->isPointerTy()) return misfit();
    arguments.push_back(operand.kind == EmitCalls::OperandKind::bytes
                            ? data(operand.bytes)
                            : b.CreateAddrSpaceCast(operands_->address(operand.name), first));
    return Error::success();
  }
  Value* value = value_of(operand);
  if (value->getType() == first) return arguments.push_back(value), Error::success();
  const uint64_t has = bits(value->getType()), wants = bits(first);
  if (has <= wants || wants == 0 || has % wants != 0) {
    arguments.push_back(as_type(b, value, first));
    return arguments.back() ? Error::success() : misfit();
  }
  Value* parts = b.CreateBitCast(
      value, llvm::FixedVectorType::get(b.getIntNTy(static_cast<unsigned>(wants)),
                                        static_cast<unsigned>(has / wants)));
  for (uint64_t i = 0; i < has / wants; ++i) {
    if (arguments.size() >= type.getNumParams()) return misfit();
    arguments.push_back(as_type(b, b.CreateExtractElement(parts, i),
                                type.getParamType(static_cast<unsigned>(arguments.size()))));
    if (!arguments.back()) return misfit();
  }
  return Error::success();
}

Expected<Value*> EmitWriter::intrinsic(const EmitCalls::Call& call) {
  TW_ASSIGN(llvm::Function * callee, declaration(call.callee));
  const llvm::FunctionType& type = *callee->getFunctionType();
  std::vector<Value*> arguments;
  for (const EmitCalls::Operand& operand : call.operands)
    TW_TRY(add_arguments(call, operand, type, arguments));
  if (arguments.size() != type.getNumParams())
    return make_error(DiagCode::unsupported, "'{0}' takes {1} operands", call.callee,
                      type.getNumParams());
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (callee->hasParamAttribute(i, llvm::Attribute::ImmArg) &&
        !llvm::isa<llvm::ConstantInt>(arguments[i]))
      return make_error(DiagCode::unsupported, "operand {0} of '{1}' must be a number", i + 1,
                        call.callee);
  Value* result = joined(b, b.CreateCall(callee, arguments));
  if (!result)
    return make_error(DiagCode::unsupported, "the results of '{0}' are not alike", call.callee);
  return result;
}

// Applies an intrinsic of one element to every element of a vector.
Expected<Value*> EmitWriter::each(const EmitCalls::Call& call) {
  TW_ASSIGN(llvm::Function * callee, declaration(call.callee.substr(kEach.size())));
  const llvm::FunctionType& type = *callee->getFunctionType();
  Value* x = call.operands.size() == 1 && call.operands[0].kind == EmitCalls::OperandKind::value
                 ? value_of(call.operands[0])
                 : nullptr;
  if (!x || type.getNumParams() != 1 || type.getParamType(0) != x->getType()->getScalarType() ||
      !llvm::VectorType::isValidElementType(type.getReturnType()))
    return make_error(DiagCode::unsupported, "'{0}' takes one operand, whose elements it takes",
                      call.callee);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return b.CreateCall(callee, {x});
  Value* all = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(type.getReturnType(), vector->getNumElements()));
  for (uint64_t i = 0; i < vector->getNumElements(); ++i)
    all = b.CreateInsertElement(all, b.CreateCall(callee, {b.CreateExtractElement(x, i)}), i);
  return all;
}

// An operand narrower than the result is repeated until it fills the result's register.
Expected<Value*> EmitWriter::assembly(const EmitCalls::Call& call, llvm::Type* out) {
  std::vector<Value*> arguments;
  std::vector<llvm::Type*> types;
  for (const EmitCalls::Operand& operand : call.operands) {
    Value* value = operand.kind == EmitCalls::OperandKind::address
                       ? operands_->address(operand.name)
                   : operand.kind == EmitCalls::OperandKind::bytes  ? data(operand.bytes)
                   : operand.kind == EmitCalls::OperandKind::number ? b.getInt64(operand.number)
                                                                    : value_of(operand);
    llvm::Type* type = value->getType();
    if (operand.kind == EmitCalls::OperandKind::value && bits(type) < bits(out)) {
      llvm::Type* element = type->getScalarType();
      type = llvm::FixedVectorType::get(element, static_cast<unsigned>(bits(out) / bits(element)));
      value = as_type(b, value, type);
      if (!value)
        return make_error(DiagCode::unsupported,
                          "operand '{0}' does not fill the result's register", operand.name);
    }
    arguments.push_back(value);
    types.push_back(type);
  }
  const bool stores = !call.constraints.starts_with("=");
  auto* type = llvm::FunctionType::get(stores ? b.getVoidTy() : out, types, false);
  if (Error wrong = llvm::InlineAsm::verify(type, call.constraints))
    return make_error(DiagCode::unsupported, "constraints \"{0}\": {1}", call.constraints,
                      llvm::toString(std::move(wrong)));
  return b.CreateCall(
      llvm::InlineAsm::get(type, call.assembly, call.constraints, /*hasSideEffects=*/stores),
      arguments);
}

// Puts the vector's elements in front of others that nobody reads.
Expected<Value*> EmitWriter::widened(const EmitCalls::Call& call, Value* x, llvm::Type* to) {
  const auto* has = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const auto* wants = llvm::dyn_cast<llvm::FixedVectorType>(to);
  if (!has || !wants || has->getElementType() != wants->getElementType() ||
      has->getNumElements() >= wants->getNumElements())
    return make_error(DiagCode::unsupported, "the operand of '{0}' does not fit it", call.callee);
  llvm::SmallVector<int, 32> places(wants->getNumElements(), llvm::PoisonMaskElem);
  for (unsigned i = 0; i < has->getNumElements(); ++i) places[i] = static_cast<int>(i);
  return b.CreateShuffleVector(x, places);
}

// The operations are add, sub and mul of two operands of one type; sext.TYPE, zext.TYPE and
// trunc.TYPE of integers; widen.TYPE of vectors.
Expected<Value*> EmitWriter::operation(const EmitCalls::Call& call) {
  const auto unknown = [&] {
    return make_error({DiagCode::unsupported,
                       "no code is known for '" + call.callee + "'",
                       {},
                       {"known here: intrinsics of LLVM (llvm.name, each.llvm.name), asm, add, "
                        "sub, mul, sext.TYPE, zext.TYPE, "
                        "trunc.TYPE, widen.TYPE with a TYPE such as v16i32"}});
  };
  std::vector<Value*> x;
  for (const EmitCalls::Operand& operand : call.operands) {
    if (operand.kind != EmitCalls::OperandKind::value) return unknown();
    x.push_back(value_of(operand));
  }
  const std::vector<std::string_view> words = words_of(call.callee);
  if (words.size() == 2 && x.size() == 1) {
    llvm::Type* to = named_type(b.getContext(), words[1]);
    if (to && words[0] == "widen") return widened(call, x[0], to);
    const auto cast = words[0] == "sext"    ? llvm::Instruction::SExt
                      : words[0] == "zext"  ? llvm::Instruction::ZExt
                      : words[0] == "trunc" ? llvm::Instruction::Trunc
                                            : llvm::Instruction::BitCast;
    if (!to || cast == llvm::Instruction::BitCast) return unknown();
    if (!llvm::CastInst::castIsValid(cast, x[0]->getType(), to))
      return make_error(DiagCode::unsupported, "the operand of '{0}' does not fit it", call.callee);
    return b.CreateCast(cast, x[0], to);
  }
  const bool known = call.callee == "add" || call.callee == "sub" || call.callee == "mul";
  if (!known || x.size() != 2) return unknown();
  Value* second = as_type(b, x[1], x[0]->getType());
  if (!second)
    return make_error(DiagCode::unsupported, "the operands of '{0}' have different sizes",
                      call.callee);
  const bool real = x[0]->getType()->isFPOrFPVectorTy();
  const auto op = call.callee == "add"   ? real ? llvm::Instruction::FAdd : llvm::Instruction::Add
                  : call.callee == "sub" ? real ? llvm::Instruction::FSub : llvm::Instruction::Sub
                  : real                 ? llvm::Instruction::FMul
                                         : llvm::Instruction::Mul;
  return b.CreateBinOp(op, x[0], second);
}

Expected<Value*> EmitWriter::call(const EmitCalls::Call& call, llvm::Type* out) {
  if (call.callee == "asm") return assembly(call, out);
  if (call.callee.starts_with("llvm.")) return intrinsic(call);
  if (call.callee.starts_with(kEach)) return each(call);
  return operation(call);
}

Expected<Value*> EmitWriter::write(const EmitCalls& emit, const Operands& operands,
                                   llvm::Type* out) {
  operands_ = &operands;
  values_.clear();
  Value* last = nullptr;
  for (const EmitCalls::Call& one : emit.calls) {
    TW_ASSIGN(last, call(one, out));
    if (one.value.empty()) continue;
    if (last->getType()->isVoidTy())
      return make_error(DiagCode::unsupported, "'{0}' has no result", one.callee);
    values_[one.value] = last;
  }
  if (!last || last->getType()->isVoidTy() || out->isVoidTy()) return nullptr;
  Value* result = as_type(b, last, out);
  if (!result)
    return make_error(DiagCode::unsupported,
                      "the result of '{0}' is not as large as the accumulator",
                      emit.calls.back().callee);
  return result;
}

llvm::Type* operand_element(llvm::LLVMContext& context, DType t) {
  llvm::Type* real = is_float(t) ? named_type(context, dtype_name(t)) : nullptr;
  return real ? real : llvm::IntegerType::get(context, static_cast<unsigned>(8 * dtype_bytes(t)));
}

Error try_emit(const Intrinsic& intrinsic, llvm::Module& module) {
  TW_ASSIGN(const std::shared_ptr<const Kernel> semantics, semantics_of(intrinsic));
  llvm::IRBuilder<> b(module.getContext());
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
      llvm::GlobalValue::InternalLinkage, intrinsic.name, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  const auto type_of = [&](const Buffer& parameter) {
    int64_t count = 1;
    for (const Expr& extent : parameter.shape) count *= as_const(extent).value_or(1);
    llvm::Type* element = operand_element(b.getContext(), parameter.dtype);
    return count == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  };
  const auto parameter = [&](const std::string& name) {
    return semantics->buffer(*semantics->find_buffer(name));
  };
  const auto in_tiles = [&](const std::string& name) {
    const auto at = static_cast<size_t>(semantics->find_buffer(name)->index);
    return at < intrinsic.scopes.size() && intrinsic.scopes[at] == kTileScope;
  };
  const EmitWriter::Operands operands{
      [&](const std::string& name) -> Value* {
        if (in_tiles(name)) return b.getInt8(0);
        return b.CreateLoad(type_of(parameter(name)), function->getArg(0));
      },
      [&](const std::string&) -> Value* { return function->getArg(0); }};
  llvm::Type* out = b.getVoidTy();
  bool stores = false;  // true: the calls themselves store the result
  for (const Buffer& buffer : semantics->buffers)
    if (buffer.role == BufferRole::output) {
      out = type_of(buffer);
      stores = in_tiles(buffer.name);
      for (const EmitCalls::Call& call : intrinsic.emit.calls)
        for (const EmitCalls::Operand& operand : call.operands)
          stores |= operand.name == buffer.name && operand.kind == EmitCalls::OperandKind::address;
    }
  EmitWriter writer(b, module);
  for (const EmitCalls* around : {&intrinsic.setup, &intrinsic.teardown})
    TW_TRY(writer.write(*around, operands, b.getVoidTy()).takeError());
  TW_ASSIGN(Value * result, writer.write(intrinsic.emit, operands, out));
  if (!result && !stores) return make_error(DiagCode::unsupported, "nothing gives the accumulator");
  if (result) b.CreateStore(result, function->getArg(0));
  b.CreateRetVoid();
  return Error::success();
}

}  // namespace tw::codegen
