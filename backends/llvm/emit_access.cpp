// Loads and stores. The offset's dependence on the vector variable decides the form: one scalar, a
// vector, two vectors and a shuffle, single elements, or a gather; an active mask makes them
// masked, so inactive lanes touch no memory.
#include <algorithm>
#include <numeric>

#include "backends/llvm/kernel_emitter.h"

namespace tw {

using llvm::Type;

const IndexForm& KernelEmitter::form_of(const void* key, BufferId buffer,
                                        const std::vector<Expr>& indices) {
  auto known = forms_.find(key);
  if (known == forms_.end())
    known = forms_.emplace(key, offset_form(kernel_.buffer(buffer), indices, depths_)).first;
  return known->second;
}

KernelEmitter::Access KernelEmitter::access_of(const IndexForm& form) {
  auto& b = v_.b;
  Access access;
  access.constant = form.constant;
  for (const IndexTerm& term : form.terms) {
    if (lane_count_ && term.factors.size() == 1 && term.factors[0]->kind == ExprKind::var &&
        term.factors[0]->name == lane_var_) {
      access.lane_stride += term.coefficient;
      continue;
    }
    Value* value = nullptr;
    for (const Expr& factor : term.factors) {
      Value* f = emit(factor);
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
    Value* ramp = region_.vars[lane_var_];
    access.lane_offsets = b.CreateAdd(access.lane_offsets,
                                      b.CreateMul(ramp, v_.integer(ramp, access.lane_stride)));
    access.lane_stride = 0;
  }
  return access;
}

llvm::Align KernelEmitter::alignment(BufferId id, const Access& access, int64_t extra) const {
  const Buffer& buffer = kernel_.buffer(id);
  int64_t bytes = dtype_bytes(buffer.dtype);
  bool whole = buffer.role == BufferRole::constant || buffer.role == BufferRole::temp;
  if (!whole || access.dynamic || access.lane_offsets)
    return llvm::Align(static_cast<uint64_t>(bytes));
  int64_t offset = (access.constant + extra) * bytes;
  return llvm::Align(static_cast<uint64_t>(std::gcd(offset, int64_t{64})));
}

Value* KernelEmitter::base_of(BufferId id) {
  if (region_.buffers[static_cast<size_t>(id.index)])
    return region_.buffers[static_cast<size_t>(id.index)];
  llvm::Function*& owner = owners_[id.index];
  if (!owner) {
    owner = region_.function;
    const Buffer& buffer = kernel_.buffer(id);
    llvm::IRBuilder<> at_entry(&owner->getEntryBlock(), owner->getEntryBlock().begin());
    auto* slot = at_entry.CreateAlloca(
        llvm::ArrayType::get(v_.storage_type(buffer.dtype), static_cast<uint64_t>(elements(id))),
        nullptr, buffer.name);
    slot->setAlignment(llvm::Align(64));
    stack_[id.index] = slot;
  }
  if (owner != region_.function)
    fail("stack buffer '" + kernel_.buffer(id).name +
         "' is used inside and outside a parallel loop");
  return stack_[id.index];
}

Value* KernelEmitter::pointer(BufferId id, const Access& access, int64_t lane) {
  auto& b = v_.b;
  Type* type = v_.storage_type(kernel_.buffer(id).dtype);
  Value* p = base_of(id);
  if (access.dynamic) p = b.CreateGEP(type, p, access.dynamic);
  int64_t constant = access.constant + lane * access.lane_stride;
  return constant ? b.CreateGEP(type, p, v_.i64(constant)) : p;
}

Value* KernelEmitter::lane_pointers(BufferId id, const Access& access) {
  Value* offsets = access.lane_offsets;
  if (!offsets) {
    Value* ramp = region_.vars[lane_var_];
    offsets = v_.b.CreateMul(ramp, v_.integer(ramp, access.lane_stride));
  }
  return v_.b.CreateGEP(v_.storage_type(kernel_.buffer(id).dtype), pointer(id, access, 0), offsets);
}

Value* KernelEmitter::any_lane() { return v_.b.CreateOrReduce(mask_); }

namespace {
std::vector<int> reversed(int count) {
  std::vector<int> order;
  for (int i = count; i-- > 0;) order.push_back(i);
  return order;
}

// LLVM 22 loses lanes when it legalizes a gather or scatter of 48 lanes: they go in pieces of a
// power of two, 16 at most.
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

Value* KernelEmitter::load(BufferId id, const Access& access) {
  const Buffer& buffer = kernel_.buffer(id);
  Value* raw = buffer.role == BufferRole::temp && buffer.scope == "register"
                   ? load_register(id, access)
                   : load_memory(id, access, v_.storage_type(buffer.dtype));
  return v_.from_storage(raw, buffer.dtype);
}

// Lanes at known places of a piece no longer than the vector, as x[l % 2]: that piece once, and a
// shuffle. Null: they are not.
Value* KernelEmitter::load_repeated(BufferId id, const Access& access, Type* type) {
  auto* offsets = llvm::dyn_cast_or_null<llvm::Constant>(access.lane_offsets);
  std::vector<int64_t> at;
  for (int i = 0; offsets && i < lane_count_; ++i) {
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(
        offsets->getAggregateElement(static_cast<unsigned>(i)));
    if (!number) return nullptr;
    at.push_back(number->getSExtValue());
  }
  if (at.empty()) return nullptr;
  const auto [first, last] = std::ranges::minmax(at);
  if (last - first >= lane_count_) return nullptr;
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

Value* KernelEmitter::load_memory(BufferId id, const Access& access, Type* type) {
  auto& b = v_.b;
  int count = lane_count_;
  Type* lanes_type = v_.with_lanes(type, count);
  llvm::Align one(static_cast<uint64_t>(dtype_bytes(kernel_.buffer(id).dtype)));
  if (!count || (!access.lane_stride && !access.lane_offsets)) {
    auto read = [&]() -> Value* {
      return b.CreateAlignedLoad(type, pointer(id, access, 0), alignment(id, access, 0));
    };
    if (!mask_) return read();
    return v_.branch(any_lane(), read,
                     [&]() -> Value* { return llvm::Constant::getNullValue(type); });
  }
  if (access.lane_stride == 1) {
    Value* p = pointer(id, access, 0);
    if (mask_)
      return b.CreateMaskedLoad(lanes_type, p, one, mask_,
                                llvm::Constant::getNullValue(lanes_type));
    return b.CreateAlignedLoad(lanes_type, p, alignment(id, access, 0));
  }
  if (access.lane_stride == -1 && !mask_) {
    Value* v = b.CreateAlignedLoad(lanes_type, pointer(id, access, count - 1), one);
    return v_.shuffle(v, v, reversed(count));
  }
  // The second vector ends at the last element wanted, so nothing beyond it is read
  if (access.lane_stride == 2 && !mask_) {
    Access second = access;
    second.constant += count - 1;
    Value* low = b.CreateAlignedLoad(lanes_type, pointer(id, access, 0), one);
    Value* high = b.CreateAlignedLoad(lanes_type, pointer(id, second, 0), one);
    std::vector<int> order;
    for (int i = 0; i < count; ++i)
      order.push_back(2 * i < count ? 2 * i : count + 2 * i - (count - 1));
    return v_.shuffle(low, high, order);
  }
  if (Value* repeated = mask_ ? nullptr : load_repeated(id, access, type)) return repeated;
  if (access.lane_stride && !mask_) {
    Value* v = llvm::PoisonValue::get(lanes_type);
    for (int i = 0; i < count; ++i)
      v = b.CreateInsertElement(v, b.CreateAlignedLoad(type, pointer(id, access, i), one),
                                static_cast<uint64_t>(i));
    return v;
  }
  Value* pointers = lane_pointers(id, access);
  Value* mask = mask_ ? mask_ : v_.splat(b.getTrue(), count);
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

void KernelEmitter::store(BufferId id, const Access& access, Value* value) {
  const Buffer& buffer = kernel_.buffer(id);
  Value* raw = v_.to_storage(value, buffer.dtype);
  if (buffer.role == BufferRole::temp && buffer.scope == "register")
    store_register(id, access, raw);
  else store_memory(id, access, raw);
}

void KernelEmitter::store_memory(BufferId id, const Access& access, Value* value) {
  auto& b = v_.b;
  int count = lane_count_;
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
    if (!mask_) return write(element(count - 1), 0);
    for (int i = 0; i < count; ++i)
      v_.branch(
          b.CreateExtractElement(mask_, static_cast<uint64_t>(i)),
          [&]() -> Value* { return write(element(i), 0), nullptr; },
          []() -> Value* { return nullptr; });
  } else if (access.lane_stride == 1) {
    value = v_.splat(value, count);
    if (mask_) b.CreateMaskedStore(value, pointer(id, access, 0), one, mask_);
    else b.CreateAlignedStore(value, pointer(id, access, 0), alignment(id, access, 0));
  } else if (access.lane_stride == -1 && !mask_) {
    value = v_.splat(value, count);
    b.CreateAlignedStore(v_.shuffle(value, value, reversed(count)), pointer(id, access, count - 1),
                         one);
  } else if (access.lane_stride && !mask_) {
    for (int i = 0; i < count; ++i) write(element(i), i);
  } else {
    Value* pointers = lane_pointers(id, access);
    Value* mask = mask_ ? mask_ : v_.splat(b.getTrue(), count);
    value = v_.splat(value, count);
    for_pieces(count, [&](int begin, int size) {
      b.CreateMaskedScatter(piece_of(v_, value, begin, size), piece_of(v_, pointers, begin, size),
                            one, piece_of(v_, mask, begin, size));
    });
  }
}

llvm::AllocaInst* KernelEmitter::register_slot(BufferId id, int64_t slot) {
  llvm::Function*& owner = owners_[id.index];
  if (!owner) owner = region_.function;
  if (owner != region_.function)
    fail("register buffer '" + kernel_.buffer(id).name +
         "' is used inside and outside a parallel loop");
  llvm::AllocaInst*& place = slots_[{id.index, slot}];
  if (!place) {
    const Buffer& buffer = kernel_.buffer(id);
    llvm::IRBuilder<> at_entry(&owner->getEntryBlock(), owner->getEntryBlock().begin());
    Type* type = v_.with_lanes(v_.storage_type(buffer.dtype),
                               static_cast<int>(slot_lanes_[static_cast<size_t>(id.index)]));
    place = at_entry.CreateAlloca(type, nullptr, "reg." + buffer.name + "." + std::to_string(slot));
  }
  return place;
}

// The elements that the lanes touch (one for a scalar access), all constant; an error is noted
// otherwise.
std::optional<std::vector<int64_t>> KernelEmitter::register_elements(BufferId id,
                                                                     const Access& access) {
  std::vector<int64_t> result;
  auto* offsets = llvm::dyn_cast_or_null<llvm::Constant>(access.lane_offsets);
  bool known = !access.dynamic && (!access.lane_offsets || offsets);
  int count = access.lane_stride || access.lane_offsets ? lane_count_ : 1;
  for (int i = 0; i < count && known; ++i) {
    int64_t element = access.constant + i * access.lane_stride;
    if (offsets) {
      auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(
          offsets->getAggregateElement(static_cast<unsigned>(i)));
      if (!number) {
        known = false;
        break;
      }
      element += number->getSExtValue();
    }
    result.push_back(element);
  }
  if (!known)
    fail("indices of register buffer '" + kernel_.buffer(id).name +
         "' are not constant once unroll and vector loops are expanded");
  else
    for (int64_t e : result)
      if (e < 0 || e >= elements(id))
        known = false,
        fail("register buffer '" + kernel_.buffer(id).name + "' is accessed outside its shape");
  if (!known) return std::nullopt;
  return result;
}

Value* KernelEmitter::load_register(BufferId id, const Access& access) {
  auto& b = v_.b;
  Type* type = v_.storage_type(kernel_.buffer(id).dtype);
  auto where = register_elements(id, access);
  int64_t width = slot_lanes_[static_cast<size_t>(id.index)];
  bool vector = access.lane_stride || access.lane_offsets;
  Type* result_type = v_.with_lanes(type, vector ? lane_count_ : 0);
  if (!where) return llvm::PoisonValue::get(result_type);
  auto read = [&](int64_t slot) -> Value* {
    llvm::AllocaInst* place = register_slot(id, slot);
    return b.CreateLoad(place->getAllocatedType(), place);
  };
  auto read_one = [&](int64_t element) -> Value* {
    return width ? b.CreateExtractElement(read(element / width),
                                          static_cast<uint64_t>(element % width))
                 : read(element);
  };
  if (!vector) return read_one((*where)[0]);
  // Runs of whole slots are joined by shuffles; anything else goes element by element.
  bool whole = width && access.lane_stride == 1 && (*where)[0] % width == 0 &&
               lane_count_ % width == 0;
  Value* result = nullptr;
  for (int64_t i = 0; whole && i < lane_count_; i += width) {
    Value* part = read(((*where)[0] + i) / width);
    std::vector<int> order, widen;
    for (int64_t k = 0; k < i + width; ++k) order.push_back(static_cast<int>(k));
    for (int64_t k = 0; k < i; ++k) widen.push_back(static_cast<int>(std::min(k, width - 1)));
    if (i > width) part = v_.shuffle(part, part, widen);
    result = result ? v_.shuffle(result, part, order) : part;
  }
  if (whole) return result;
  result = llvm::PoisonValue::get(result_type);
  for (size_t i = 0; i < where->size(); ++i)
    result = b.CreateInsertElement(result, read_one((*where)[i]), uint64_t{i});
  return result;
}

void KernelEmitter::store_register(BufferId id, const Access& access, Value* value) {
  auto& b = v_.b;
  auto where = register_elements(id, access);
  if (!where) return;
  int64_t width = slot_lanes_[static_cast<size_t>(id.index)];
  bool vector = access.lane_stride || access.lane_offsets;
  if (vector) {
    value = v_.splat(value, lane_count_);
    if (mask_) value = v_.select(mask_, value, load_register(id, access));
  } else if (lane_count_) {  // the last active lane wins
    Value* last = Values::lanes(value) ? nullptr : value;
    Value* old = mask_ ? load_register(id, access) : nullptr;
    for (int i = mask_ ? 0 : lane_count_ - 1; i < lane_count_; ++i) {
      Value* element = last ? last : b.CreateExtractElement(value, static_cast<uint64_t>(i));
      old = mask_ ? v_.select(b.CreateExtractElement(mask_, static_cast<uint64_t>(i)), element, old)
                  : element;
    }
    value = old;
  }
  bool whole = vector && width && access.lane_stride == 1 && (*where)[0] % width == 0 &&
               lane_count_ % width == 0;
  if (whole) {
    for (int64_t i = 0; i < lane_count_; i += width) {
      std::vector<int> order;
      for (int64_t k = 0; k < width; ++k) order.push_back(static_cast<int>(i + k));
      b.CreateStore(width == lane_count_ ? value : v_.shuffle(value, value, order),
                    register_slot(id, ((*where)[0] + i) / width));
    }
    return;
  }
  for (size_t i = 0; i < where->size(); ++i) {
    Value* element = vector ? b.CreateExtractElement(value, uint64_t{i}) : value;
    int64_t at = (*where)[i];
    llvm::AllocaInst* place = register_slot(id, width ? at / width : at);
    if (width)
      element = b.CreateInsertElement(b.CreateLoad(place->getAllocatedType(), place), element,
                                      static_cast<uint64_t>(at % width));
    b.CreateStore(element, place);
  }
}
}  // namespace tw
