// The elements of register buffers. A stack slot has a fixed number of lanes, and SROA turns it
// into SSA values.
#include <numeric>

#include "backends/llvm/memory_emitter.h"
#include "ir/kernel/live_spans.h"
#include "ir/schedule/product_form.h"

namespace tw::codegen {

using llvm::Type;

void MemoryEmitter::note_register_access(BufferId id, int64_t lanes) {
  if (kernel_.buffer(id).scope != "register") return;
  int64_t& width = slot_lanes_[id.index];
  width = std::gcd(width, lanes);
}

void MemoryEmitter::close_register_slots(BufferId id) {
  const auto found = slot_lanes_.find(id.index);
  if (found == slot_lanes_.end()) return;
  int64_t& width = found->second;
  if (width) width = std::gcd(width, elements(id));
  if (width == 1) width = 0;
}

int64_t MemoryEmitter::slot_lanes(BufferId id) const {
  const auto found = slot_lanes_.find(id.index);
  return found == slot_lanes_.end() ? 0 : found->second;
}

void MemoryEmitter::note_tiles(BufferId id, int64_t count) {
  const Buffer& buffer = kernel_.buffer(id);
  const auto wrong = [&](const std::string& what) { fail("'" + buffer.name + "' " + what); };
  if (buffer.scope != kTileScope)
    return wrong("is in scope '" + buffer.scope + "', and an instruction wants it in scope '" +
                 kTileScope + "'");
  const auto [found, fresh] = tiles_.try_emplace(id.index, Tiles{0, count});
  if (found->second.elements != count) wrong("is in tile registers of different sizes");
  if (fresh && (elements(id) < 0 || elements(id) % count != 0))
    wrong("is in tile registers, and its shape is no whole number of them");
}

// Gives each buffer the first consecutive registers that no other buffer needs at the same time.
void MemoryEmitter::place_tiles() {
  constexpr int64_t kTileRegisters = 8;  // AMX has this many
  if (tiles_.empty() || failed()) return;
  const std::map<int32_t, LiveSpan> spans = live_spans(kernel_, kTileScope);
  const auto count = [&](int32_t index) { return elements({index}) / tiles_.at(index).elements; };
  std::vector<int32_t> placed;
  for (auto& [index, tiles] : tiles_) {
    const auto taken_from = [&](int32_t other) {
      return spans.at(other).meets(spans.at(index)) &&
             tiles_.at(other).first < tiles.first + count(index) &&
             tiles.first < tiles_.at(other).first + count(other);
    };
    for (auto other = placed.begin(); other != placed.end();) {
      if (!taken_from(*other)) {
        ++other;
        continue;
      }
      tiles.first = tiles_.at(*other).first + count(*other);
      other = placed.begin();
    }
    if (tiles.first + count(index) > kTileRegisters)
      return fail("'" + kernel_.buffer({index}).name + "' makes it " +
                  std::to_string(tiles.first + count(index)) +
                  " tile registers at one time, and there are " + std::to_string(kTileRegisters));
    placed.push_back(index);
  }
}

int64_t MemoryEmitter::tile(BufferId id, const Access& access) {
  const Tiles& tiles = tiles_.at(id.index);
  if (!access.dynamic && !access.lane_offsets && access.constant % tiles.elements == 0)
    return tiles.first + access.constant / tiles.elements;
  fail("an operand in '" + kernel_.buffer(id).name +
       "' is no whole tile register that is known once unroll loops are expanded");
  return tiles.first;
}

llvm::AllocaInst* MemoryEmitter::register_slot(BufferId id, int64_t slot) {
  llvm::Function*& owner = owners_[id.index];
  if (!owner) owner = function_.value;
  if (owner != function_.value)
    fail("register buffer '" + kernel_.buffer(id).name +
         "' is used inside and outside a parallel loop");
  llvm::AllocaInst*& place = slots_[{id.index, slot}];
  if (!place) {
    const Buffer& buffer = kernel_.buffer(id);
    llvm::IRBuilder<> at_entry(&owner->getEntryBlock(), owner->getEntryBlock().begin());
    Type* type = v_.with_lanes(v_.storage_type(buffer.dtype), static_cast<int>(slot_lanes(id)));
    place = at_entry.CreateAlloca(type, nullptr, "reg." + buffer.name + "." + std::to_string(slot));
  }
  return place;
}

// The elements that the lanes touch (one for a scalar access). They must be constant; otherwise an
// error is recorded.
std::optional<std::vector<int64_t>> MemoryEmitter::register_elements(BufferId id,
                                                                     const Access& access) {
  std::vector<int64_t> result;
  auto* offsets = llvm::dyn_cast_or_null<llvm::Constant>(access.lane_offsets);
  bool known = !access.dynamic && (!access.lane_offsets || offsets);
  int count = access.lane_stride || access.lane_offsets ? lanes_.count : 1;
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

Value* MemoryEmitter::load_register(BufferId id, const Access& access) {
  auto& b = v_.b;
  Type* type = v_.storage_type(kernel_.buffer(id).dtype);
  auto where = register_elements(id, access);
  int64_t width = slot_lanes(id);
  bool vector = access.lane_stride || access.lane_offsets;
  Type* result_type = v_.with_lanes(type, vector ? lanes_.count : 0);
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
  // Shuffles join runs of whole slots; anything else goes element by element.
  bool whole = width && access.lane_stride == 1 && (*where)[0] % width == 0 &&
               lanes_.count % width == 0;
  Value* result = nullptr;
  for (int64_t i = 0; whole && i < lanes_.count; i += width) {
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

void MemoryEmitter::store_register(BufferId id, const Access& access, Value* value) {
  auto& b = v_.b;
  auto where = register_elements(id, access);
  if (!where) return;
  int64_t width = slot_lanes(id);
  bool vector = access.lane_stride || access.lane_offsets;
  if (vector) {
    value = v_.splat(value, lanes_.count);
    if (lanes_.mask) value = v_.select(lanes_.mask, value, load_register(id, access));
  } else if (lanes_.count) {  // the last active lane wins
    Value* last = Values::lanes(value) ? nullptr : value;
    Value* old = lanes_.mask ? load_register(id, access) : nullptr;
    for (int i = lanes_.mask ? 0 : lanes_.count - 1; i < lanes_.count; ++i) {
      Value* element = last ? last : b.CreateExtractElement(value, static_cast<uint64_t>(i));
      old = lanes_.mask ? v_.select(b.CreateExtractElement(lanes_.mask, static_cast<uint64_t>(i)),
                                    element, old)
                        : element;
    }
    value = old;
  }
  bool whole = vector && width && access.lane_stride == 1 && (*where)[0] % width == 0 &&
               lanes_.count % width == 0;
  if (whole) {
    for (int64_t i = 0; i < lanes_.count; i += width) {
      std::vector<int> order;
      for (int64_t k = 0; k < width; ++k) order.push_back(static_cast<int>(i + k));
      b.CreateStore(width == lanes_.count ? value : v_.shuffle(value, value, order),
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
}  // namespace tw::codegen
