#include "backends/llvm/program_builder.h"

#include "runtime/model.h"

namespace tw::codegen {

ProgramBuilder::ProgramBuilder(llvm::Module& module, const Program& program)
    : module_(module), program_(program), b_(module.getContext()) {
  Type* p = b_.getPtrTy();
  env_type_ = llvm::StructType::create(
      {p, p, p, p, p, p, b_.getInt32Ty(), b_.getInt32Ty(), p, p, p, p, b_.getInt64Ty(), p, p, p, p},
      "tw_env");
  view_type_ = llvm::StructType::create({p, p, b_.getInt32Ty(), b_.getInt32Ty()}, "tw_view");
  args_type_ = llvm::StructType::create({p, p, p, p, p, p, p, b_.getInt64Ty(), b_.getInt32Ty(),
                                         b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt32Ty()},
                                        "tw_op_args");
}

llvm::Value* ProgramBuilder::counted(const Expr& bytes, const Variables& vars) {
  Value *wraps = b_.getFalse(), *value = number(bytes, vars, &wraps);
  return b_.CreateSelect(wraps, b_.getInt64(~uint64_t{0}), value);
}

llvm::Value* ProgramBuilder::holds(const Expr& condition, const Variables& vars) {
  Value *wraps = b_.getFalse(), *value = number(condition, vars, &wraps);
  if (!value->getType()->isIntegerTy(1))
    value = b_.CreateICmpNE(value, llvm::ConstantInt::get(value->getType(), 0));
  return b_.CreateAnd(value, b_.CreateNot(wraps));
}

llvm::Value* ProgramBuilder::number(const Expr& e, const Variables& vars, Value** wraps) {
  const auto no_number = [&]() -> Value* {
    TW_UNREACHABLE("not an expression of symbols: {0}", to_string(e));
  };
  return match(
      e,
      [&](const expr::Int& known) -> Value* {
        return b_.getInt64(static_cast<uint64_t>(known.value));
      },
      [&](const expr::Var& var) {
        auto found = vars.find(var.name);
        TW_CHECK(found != vars.end(), "the program uses the unknown symbol '{0}'", var.name);
        return found->second;
      },
      [&](const expr::Binary& binary) {
        Value *x = number(binary.a, vars, wraps), *y = number(binary.b, vars, wraps);
        return binary_number(binary.op, x, y, wraps);
      },
      [&](const expr::Select& select) {
        Value *first = b_.getFalse(), *second = b_.getFalse();  // the other branch may wrap
        Value *condition = number(select.condition, vars, wraps),
              *x = number(select.then, vars, wraps ? &first : nullptr),
              *y = number(select.otherwise, vars, wraps ? &second : nullptr);
        if (wraps) *wraps = b_.CreateOr(*wraps, b_.CreateSelect(condition, first, second));
        return b_.CreateSelect(condition, x, y);
      },
      [&](const expr::Unary& unary) {
        Value* x = number(unary.a, vars, wraps);
        if (unary.op == UnaryOp::neg) return arithmetic(BinaryOp::sub, b_.getInt64(0), x, wraps);
        return unary.op == UnaryOp::logical_not ? b_.CreateNot(x) : no_number();
      },
      [&](const expr::Cast& cast) {
        return e->type == DType::i64
                   ? b_.CreateZExtOrTrunc(number(cast.a, vars, wraps), b_.getInt64Ty())
                   : no_number();
      },
      [&](const expr::Load&) { return no_number(); },
      [&](const expr::Float&) { return no_number(); });
}

llvm::Value* ProgramBuilder::arithmetic(BinaryOp op, Value* x, Value* y, Value** wraps) {
  if (!wraps)
    return op == BinaryOp::add   ? b_.CreateAdd(x, y)
           : op == BinaryOp::sub ? b_.CreateSub(x, y)
                                 : b_.CreateMul(x, y);
  const llvm::Intrinsic::ID id = op == BinaryOp::add   ? llvm::Intrinsic::sadd_with_overflow
                                 : op == BinaryOp::sub ? llvm::Intrinsic::ssub_with_overflow
                                                       : llvm::Intrinsic::smul_with_overflow;
  Value* both = b_.CreateBinaryIntrinsic(id, x, y);
  *wraps = b_.CreateOr(*wraps, b_.CreateExtractValue(both, 1));
  return b_.CreateExtractValue(both, 0);
}

llvm::Value* ProgramBuilder::binary_number(BinaryOp op, Value* x, Value* y, Value** wraps) {
  auto guarded = [&] {
    return b_.CreateSelect(b_.CreateICmpEQ(y, b_.getInt64(0)), b_.getInt64(1), y);
  };
  auto floor_rest = [&](Value* divisor) {
    Value* rest = b_.CreateSRem(x, divisor);
    Value* wrong = b_.CreateAnd(b_.CreateICmpNE(rest, b_.getInt64(0)),
                                b_.CreateICmpSLT(b_.CreateXor(rest, divisor), b_.getInt64(0)));
    return b_.CreateSelect(wrong, b_.CreateAdd(rest, divisor), rest);
  };
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul: return arithmetic(op, x, y, wraps);
    case BinaryOp::div: return b_.CreateSDiv(x, guarded());
    case BinaryOp::mod: return b_.CreateSRem(x, guarded());
    case BinaryOp::floor_mod: return floor_rest(guarded());
    case BinaryOp::floor_div: {
      Value* divisor = guarded();
      return b_.CreateSDiv(b_.CreateSub(x, floor_rest(divisor)), divisor);
    }
    case BinaryOp::min: return b_.CreateSelect(b_.CreateICmpSLT(x, y), x, y);
    case BinaryOp::max: return b_.CreateSelect(b_.CreateICmpSGT(x, y), x, y);
    case BinaryOp::lt: return b_.CreateICmpSLT(x, y);
    case BinaryOp::le: return b_.CreateICmpSLE(x, y);
    case BinaryOp::eq: return b_.CreateICmpEQ(x, y);
    case BinaryOp::ne: return b_.CreateICmpNE(x, y);
    case BinaryOp::logical_and:
    case BinaryOp::bit_and: return b_.CreateAnd(x, y);
    case BinaryOp::logical_or:
    case BinaryOp::bit_or: return b_.CreateOr(x, y);
    case BinaryOp::logical_xor:
    case BinaryOp::bit_xor: return b_.CreateXor(x, y);
    case BinaryOp::shl: return b_.CreateShl(x, y);
    case BinaryOp::shr: return b_.CreateAShr(x, y);
    case BinaryOp::pow: break;
  }
  TW_UNREACHABLE("operator {0} in an expression of symbols", op_name(op));
}

ProgramBuilder::Variables ProgramBuilder::load_symbols(Value* symbols, bool data) {
  std::vector<std::string> names = program_.symbols;
  if (data) names.insert(names.end(), program_.data_symbols.begin(), program_.data_symbols.end());
  return load_symbols(names, symbols);
}

ProgramBuilder::Variables ProgramBuilder::load_symbols(const std::vector<std::string>& names,
                                                       Value* symbols) {
  Variables vars;
  for (size_t i = 0; i < names.size(); ++i)
    vars[names[i]] = b_.CreateLoad(b_.getInt64Ty(),
                                   b_.CreateConstGEP1_64(b_.getInt64Ty(), symbols, i), names[i]);
  return vars;
}

llvm::Function* ProgramBuilder::start(const std::string& name, Type* result,
                                      llvm::ArrayRef<Type*> parameters) {
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                   llvm::GlobalValue::InternalLinkage, name, module_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
  return f;
}

llvm::Value* ProgramBuilder::runtime(const char* function, const std::vector<Value*>& arguments,
                                     Type* result) {
  std::vector<Type*> types;
  for (Value* a : arguments) types.push_back(a->getType());
  return b_.CreateCall(
      module_.getOrInsertFunction(
          function, llvm::FunctionType::get(result ? result : b_.getVoidTy(), types, false)),
      arguments);
}

llvm::Value* ProgramBuilder::local(Type* type, size_t count) {
  llvm::BasicBlock& first = b_.GetInsertBlock()->getParent()->getEntryBlock();
  return llvm::IRBuilder<>(&first, first.begin()).CreateAlloca(type, b_.getInt64(count));
}

llvm::Value* ProgramBuilder::extents(const std::vector<Expr>& dims, const Variables& vars) {
  std::vector<Constant*> known;
  for (const Expr& dim : dims)
    if (const auto value = as_const(dim))
      known.push_back(b_.getInt64(static_cast<uint64_t>(*value)));
  if (known.size() == dims.size()) return array(b_.getInt64Ty(), known);
  Value* list = local(b_.getInt64Ty(), dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    b_.CreateStore(number(dims[d], vars), b_.CreateConstGEP1_64(b_.getInt64Ty(), list, d));
  return list;
}

void ProgramBuilder::store_fields(llvm::StructType* type, Value* to,
                                  const std::vector<Value*>& values) {
  for (unsigned i = 0; i < values.size(); ++i)
    b_.CreateStore(values[i], b_.CreateStructGEP(type, to, i));
}

void ProgramBuilder::end_unless_ok(Value* status) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* failed = llvm::BasicBlock::Create(module_.getContext(), "failed", f);
  auto* next = llvm::BasicBlock::Create(module_.getContext(), "next", f);
  b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(TW_OK)), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(status);
  b_.SetInsertPoint(next);
}

void ProgramBuilder::end_if_cancelled(Value* env) {
  llvm::LoadInst* state = b_.CreateAlignedLoad(b_.getInt32Ty(), env_field(env, EnvField::state),
                                               llvm::Align(4));
  state->setAtomic(llvm::AtomicOrdering::Monotonic);
  end_unless_ok(b_.CreateSelect(b_.CreateICmpEQ(state, b_.getInt32(TW_RUN_CANCELLED)),
                                b_.getInt32(TW_E_CANCELLED), b_.getInt32(TW_OK)));
}

llvm::Value* ProgramBuilder::nth_pointer(Value* table, int index) {
  return b_.CreateLoad(b_.getPtrTy(),
                       b_.CreateConstGEP1_64(b_.getPtrTy(), table, static_cast<uint64_t>(index)));
}

llvm::Constant* ProgramBuilder::global(Constant* value, uint64_t align) {
  auto* g = new llvm::GlobalVariable(module_, value->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, value, "tw_data");
  g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  if (align) g->setAlignment(llvm::Align(align));
  return g;
}

llvm::Constant* ProgramBuilder::array(Type* element, const std::vector<Constant*>& values) {
  if (values.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  return global(llvm::ConstantArray::get(llvm::ArrayType::get(element, values.size()), values), 0);
}

}  // namespace tw::codegen
