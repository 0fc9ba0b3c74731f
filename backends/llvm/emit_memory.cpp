// Loads and stores. The dependence of the offset on the vector variable decides the form: one
// scalar, a vector, two vectors and a shuffle, single elements, or a gather. An active mask makes
// them masked, so inactive lanes touch no memory.
#include <algorithm>
#include <numeric>

#include "backends/llvm/expression_emitter.h"
#include "backends/llvm/memory_emitter.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {

using llvm::Type;

int64_t MemoryEmitter::elements(BufferId id) const {
  int64_t count = 1;
  for (const Expr& extent : kernel_.buffer(id).shape) {
    auto value = as_const(extent);
    if (!value) return -1;
    count *= *value;
  }
  return count;
}

bool MemoryEmitter::in_registers(BufferId id) const {
  const Buffer& buffer = kernel_.buffer(id);
  return buffer.role == BufferRole::temp && buffer.scope == "register";
}

const IndexForm& MemoryEmitter::form_of(const void* key, BufferId buffer,
                                        const std::vector<Expr>& indices) {
  auto known = forms_.find(key);
  if (known == forms_.end())
    known =
        forms_.emplace(key, offset_form(kernel_.buffer(buffer), indices, emission_.depths)).first;
  return known->second;
}

// Clamps data so far from zero that the difference would leave 64 bits; the comparison is the same.
static Expr near_zero(const Expr& e) {
  constexpr int64_t kFar = int64_t{1} << 61;
  const bool near = !e->data || (e->data->least >= -kFar && e->data->most <= kFar);
  return near ? e : max(min(e, Expr(kFar)), Expr(-kFar));
}

const IndexForm& MemoryEmitter::difference_form(const expr::Binary& comparison) {
  auto known = forms_.find(&comparison);
  if (known == forms_.end())
    known = forms_
                .emplace(&comparison, index_form(near_zero(comparison.b) - near_zero(comparison.a),
                                                 emission_.depths))
                .first;
  return known->second;
}

Access MemoryEmitter::access_of(BufferId buffer, const std::vector<Expr>& indices) {
  return access_of(offset_form(kernel_.buffer(buffer), indices, emission_.depths));
}

Access MemoryEmitter::access_of(const IndexForm& form) {
  auto& b = v_.b;
  Access access;
  access.constant = form.constant;
  for (const IndexTerm& term : form.terms) {
    if (lanes_.count && term.factors.size() == 1 && is_var(term.factors[0], lanes_.var)) {
      access.lane_stride += term.coefficient;
      continue;
    }
    Value* value = nullptr;
    for (const Expr& factor : term.factors) {
      Value* f = expressions_.emit(factor);
      if (value) v_.unify(value, f);
      value = value ? b.CreateMul(value, f) : f;
    }
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(value)) {
      access.constant += term.coefficient * number->getSExtValue();
      continue;
    }
    value = b.CreateMul(value, v_.integer(value, term.coefficient));
    Value*& sum = Values::lanes(value) ? access.lane_offsets : access.dynamic;
    sum = sum ? b.CreateAdd(sum, value) : value;
  }
  if (access.lane_offsets && access.lane_stride) {
    Value* ramp = function_.vars[lanes_.var];
    access.lane_offsets = b.CreateAdd(access.lane_offsets,
                                      b.CreateMul(ramp, v_.integer(ramp, access.lane_stride)));
    access.lane_stride = 0;
  }
  return access;
}

llvm::Align MemoryEmitter::alignment(BufferId id, const Access& access, int64_t extra) const {
  const Buffer& buffer = kernel_.buffer(id);
  int64_t bytes = dtype_bytes(buffer.dtype);
  bool whole = buffer.role == BufferRole::constant || buffer.role == BufferRole::temp;
  if (!whole || access.dynamic || access.lane_offsets)
    return llvm::Align(static_cast<uint64_t>(bytes));
  int64_t offset = (access.constant + extra) * bytes;
  return llvm::Align(static_cast<uint64_t>(std::gcd(offset, int64_t{64})));
}

Value* MemoryEmitter::base_of(BufferId id) {
  if (function_.buffers[static_cast<size_t>(id.index)])
    return function_.buffers[static_cast<size_t>(id.index)];
  llvm::Function*& owner = owners_[id.index];
  if (!owner) {
    owner = function_.value;
    const Buffer& buffer = kernel_.buffer(id);
    if (buffer.scope == kTileScope)
      fail("'" + buffer.name +
           "' is in tile registers, which only instructions reach that take them");
    llvm::IRBuilder<> at_entry(&owner->getEntryBlock(), owner->getEntryBlock().begin());
    auto* slot = at_entry.CreateAlloca(
        llvm::ArrayType::get(v_.storage_type(buffer.dtype), static_cast<uint64_t>(elements(id))),
        nullptr, buffer.name);
    slot->setAlignment(llvm::Align(64));
    stack_[id.index] = slot;
  }
  if (owner != function_.value)
    fail("stack buffer '" + kernel_.buffer(id).name +
         "' is used inside and outside a parallel loop");
  return stack_[id.index];
}

Value* MemoryEmitter::pointer(BufferId id, const Access& access, int64_t lane) {
  auto& b = v_.b;
  Type* type = v_.storage_type(kernel_.buffer(id).dtype);
  Value* p = base_of(id);
  if (access.dynamic) p = b.CreateGEP(type, p, access.dynamic);
  int64_t constant = access.constant + lane * access.lane_stride;
  return constant ? b.CreateGEP(type, p, v_.i64(constant)) : p;
}

Value* MemoryEmitter::lane_pointers(BufferId id, const Access& access) {
  Value* offsets = access.lane_offsets;
  if (!offsets) {
    Value* ramp = function_.vars[lanes_.var];
    offsets = v_.b.CreateMul(ramp, v_.integer(ramp, access.lane_stride));
  }
  return v_.b.CreateGEP(v_.storage_type(kernel_.buffer(id).dtype), pointer(id, access, 0), offsets);
}

Value* MemoryEmitter::any_lane() { return v_.b.CreateOrReduce(lanes_.mask); }

namespace {
std::vector<int> reversed(int count) {
  std::vector<int> order;
  for (int i = count; i-- > 0;) order.push_back(i);
  return order;
}

// LLVM 22 loses lanes when it legalizes a gather or scatter of 48 lanes. So they are split into
// pieces of a power of two, 16 at most.
void for_pieces(int count, llvm::function_ref<void(int begin, int size)> piece) {
  for (int begin = 0; begin < count;) {
    int size = 16;
    while (size > count - begin) size /= 2;
    piece(begin, size);
    begin += size;
  }
}

Value* piece_of(Values& v, Value* vector, int begin, int size) {
  std::vector<int> lanes;
  for (int i = 0; i < size; ++i) lanes.push_back(begin + i);
  return v.shuffle(vector, vector, lanes);
}
}  // namespace

Value* MemoryEmitter::load(BufferId id, const Access& access) {
  return v_.from_storage(load_raw(id, access), kernel_.buffer(id).dtype);
}

Value* MemoryEmitter::load_raw(BufferId id, const Access& access) {
  return in_registers(id) ? load_register(id, access)
                          : load_memory(id, access, v_.storage_type(kernel_.buffer(id).dtype));
}

// Loads lanes at known places of a piece no longer than the vector, as x[l % 2]: the piece once,
// and a shuffle. Null: not such a load.
Value* MemoryEmitter::load_repeated(BufferId id, const Access& access, Type* type) {
  auto* offsets = llvm::dyn_cast_or_null<llvm::Constant>(access.lane_offsets);
  std::vector<int64_t> at;
  for (int i = 0; offsets && i < lanes_.count; ++i) {
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(
        offsets->getAggregateElement(static_cast<unsigned>(i)));
    if (!number) return nullptr;
    at.push_back(number->getSExtValue());
  }
  if (at.empty()) return nullptr;
  const auto [first, last] = std::ranges::minmax(at);
  if (last - first >= lanes_.count) return nullptr;
  Access piece = access;
  piece.constant += first;
  Type* piece_type = v_.with_lanes(type, static_cast<int>(last - first + 1));
  Value* v = v_.b.CreateAlignedLoad(
      piece_type, pointer(id, piece, 0),
      llvm::Align(static_cast<uint64_t>(dtype_bytes(kernel_.buffer(id).dtype))));
  std::vector<int> order;
  for (int64_t offset : at) order.push_back(static_cast<int>(offset - first));
  return v_.shuffle(v, v, order);
}

Value* MemoryEmitter::load_memory(BufferId id, const Access& access, Type* type) {
  auto& b = v_.b;
  int count = lanes_.count;
  Type* lanes_type = v_.with_lanes(type, count);
  llvm::Align one(static_cast<uint64_t>(dtype_bytes(kernel_.buffer(id).dtype)));
  if (!count || (!access.lane_stride && !access.lane_offsets)) {
    auto read = [&]() -> Value* {
      return b.CreateAlignedLoad(type, pointer(id, access, 0), alignment(id, access, 0));
    };
    if (!lanes_.mask) return read();
    return v_.branch(any_lane(), read,
                     [&]() -> Value* { return llvm::Constant::getNullValue(type); });
  }
  if (access.lane_stride == 1) {
    Value* p = pointer(id, access, 0);
    if (lanes_.mask)
      return b.CreateMaskedLoad(lanes_type, p, one, lanes_.mask,
                                llvm::Constant::getNullValue(lanes_type));
    return b.CreateAlignedLoad(lanes_type, p, alignment(id, access, 0));
  }
  if (access.lane_stride == -1 && !lanes_.mask) {
    Value* v = b.CreateAlignedLoad(lanes_type, pointer(id, access, count - 1), one);
    return v_.shuffle(v, v, reversed(count));
  }
  // The second vector ends at the last wanted element, so nothing beyond it is read.
  if (access.lane_stride == 2 && !lanes_.mask) {
    Access second = access;
    second.constant += count - 1;
    Value* low = b.CreateAlignedLoad(lanes_type, pointer(id, access, 0), one);
    Value* high = b.CreateAlignedLoad(lanes_type, pointer(id, second, 0), one);
    std::vector<int> order;
    for (int i = 0; i < count; ++i)
      order.push_back(2 * i < count ? 2 * i : count + 2 * i - (count - 1));
    return v_.shuffle(low, high, order);
  }
  if (Value* repeated = lanes_.mask ? nullptr : load_repeated(id, access, type)) return repeated;
  if (access.lane_stride && !lanes_.mask) {
    Value* v = llvm::PoisonValue::get(lanes_type);
    for (int i = 0; i < count; ++i)
      v = b.CreateInsertElement(v, b.CreateAlignedLoad(type, pointer(id, access, i), one),
                                static_cast<uint64_t>(i));
    return v;
  }
  if (Value* found = load_table(id, access, type)) return found;
  Value* pointers = lane_pointers(id, access);
  Value* mask = lanes_.mask ? lanes_.mask : v_.splat(b.getTrue(), count);
  Value* gathered = llvm::PoisonValue::get(lanes_type);
  for_pieces(count, [&](int begin, int size) {
    Type* piece_type = v_.with_lanes(type, size);
    Value* piece = b.CreateMaskedGather(piece_type, piece_of(v_, pointers, begin, size), one,
                                        piece_of(v_, mask, begin, size),
                                        llvm::Constant::getNullValue(piece_type));
    gathered = size == count ? piece
                             : b.CreateInsertVector(lanes_type, gathered, piece,
                                                    static_cast<uint64_t>(begin));
  });
  return gathered;
}

void MemoryEmitter::store(BufferId id, const Access& access, Value* value) {
  store_raw(id, access, v_.to_storage(value, kernel_.buffer(id).dtype));
}

void MemoryEmitter::store_raw(BufferId id, const Access& access, Value* value) {
  if (in_registers(id)) store_register(id, access, value);
  else store_memory(id, access, value);
}

void MemoryEmitter::store_memory(BufferId id, const Access& access, Value* value) {
  auto& b = v_.b;
  int count = lanes_.count;
  llvm::Align one(static_cast<uint64_t>(dtype_bytes(kernel_.buffer(id).dtype)));
  auto write = [&](Value* element, int64_t lane) {
    b.CreateAlignedStore(element, pointer(id, access, lane), one);
  };
  auto element = [&](int lane) {
    return Values::lanes(value) ? b.CreateExtractElement(value, static_cast<uint64_t>(lane))
                                : value;
  };
  if (!count) {
    b.CreateAlignedStore(value, pointer(id, access, 0), alignment(id, access, 0));
  } else if (!access.lane_stride && !access.lane_offsets) {  // the last active lane wins
    if (!lanes_.mask) return write(element(count - 1), 0);
    for (int i = 0; i < count; ++i)
      v_.branch(
          b.CreateExtractElement(lanes_.mask, static_cast<uint64_t>(i)),
          [&]() -> Value* { return write(element(i), 0), nullptr; },
          []() -> Value* { return nullptr; });
  } else if (access.lane_stride == 1) {
    value = v_.splat(value, count);
    if (lanes_.mask) b.CreateMaskedStore(value, pointer(id, access, 0), one, lanes_.mask);
    else b.CreateAlignedStore(value, pointer(id, access, 0), alignment(id, access, 0));
  } else if (access.lane_stride == -1 && !lanes_.mask) {
    value = v_.splat(value, count);
    b.CreateAlignedStore(v_.shuffle(value, value, reversed(count)), pointer(id, access, count - 1),
                         one);
  } else if (access.lane_stride && !lanes_.mask) {
    for (int i = 0; i < count; ++i) write(element(i), i);
  } else {
    Value* pointers = lane_pointers(id, access);
    Value* mask = lanes_.mask ? lanes_.mask : v_.splat(b.getTrue(), count);
    value = v_.splat(value, count);
    for_pieces(count, [&](int begin, int size) {
      b.CreateMaskedScatter(piece_of(v_, value, begin, size), piece_of(v_, pointers, begin, size),
                            one, piece_of(v_, mask, begin, size));
    });
  }
}

}  // namespace tw::codegen
