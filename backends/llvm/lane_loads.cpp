// before: a0 = load p; v0 = a0 in every lane; .. a3 = load p + 3; v3 = a3 in every lane
// after:  a = load of four from p; v0 = a[0] in every lane; .. v3 = a[3] in every lane
// ARM's multiply-adds can take one element of a vector as an operand (fmla v0.4s, v1.4s, v2.s[3];
// sdot v0.4s, v1.16b, v2.4b[3]). A load that fills all lanes costs most cores a vector instruction
// beside the load. LLVM selects the element by itself when it sees one load. This changes only
// blocks without stores between these loads, whose live values fit into registers.
#include "backends/llvm/lane_loads.h"

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <vector>

namespace tw::codegen {
namespace {

constexpr int64_t kWidest = 16, kNarrowest = 8;  // bytes of a load
constexpr int kOperands = 2;                     // registers for the other operands of the products

bool same_lanes(const llvm::Type* a, const llvm::Type* b) {
  const auto *one = llvm::dyn_cast<llvm::FixedVectorType>(a),
             *other = llvm::dyn_cast<llvm::FixedVectorType>(b);
  return one && other && one->getNumElements() == other->getNumElements();
}

bool is_prefetch(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

// An address: `bytes` behind element `index` of `scale` bytes each, counted from the pointer.
struct Place {
  const llvm::Value *pointer, *index = nullptr;
  uint64_t scale = 0;
  int64_t bytes = 0;

  bool near(const Place& other) const {
    return pointer == other.pointer && index == other.index && scale == other.scale;
  }
};

Place place_of(const llvm::Value* pointer, const llvm::DataLayout& layout) {
  llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  Place place{
      pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true)};
  place.bytes = offset.getSExtValue();
  const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(place.pointer);
  if (!step || step->getNumIndices() != 1 ||
      step->getOperand(1)->getType()->getScalarSizeInBits() != offset.getBitWidth())
    return place;
  place.pointer = step->getPointerOperand();
  place.index = step->getOperand(1);
  place.scale = layout.getTypeAllocSize(step->getSourceElementType()).getFixedValue();
  const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(place.index);
  const auto* more = sum ? llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1)) : nullptr;
  const bool adds = sum && (sum->getOpcode() == llvm::Instruction::Add ||
                            (sum->getOpcode() == llvm::Instruction::Or &&
                             llvm::cast<llvm::PossiblyDisjointInst>(sum)->isDisjoint()));
  if (!more || !adds) return place;
  place.index = sum->getOperand(0);
  place.bytes += more->getSExtValue() * static_cast<int64_t>(place.scale);
  return place;
}

struct Splat {
  llvm::LoadInst* load;
  llvm::InsertElementInst* insert;
  llvm::Instruction* first_lane;                // the insert, or a cast of it
  std::vector<llvm::ShuffleVectorInst*> fills;  // shuffles that fill all lanes
  Place address;
  int place, first_use, last_use;  // places in the block
};

struct Window {
  std::vector<Splat*> splats;  // neighbours in memory
  int first_use, last_use;
};

class LaneLoads {
 public:
  LaneLoads(llvm::BasicBlock& block, int registers)
      : block_(block), layout_(block.getModule()->getDataLayout()), registers_(registers) {}

  void run() {
    number();
    find_splats();
    find_windows();
    if (fit())
      for (const Window& window : windows_) replace(window);
  }

 private:
  void number() {
    for (const llvm::Instruction& i : block_) {
      if (i.mayWriteToMemory() && !is_prefetch(i))
        writes_.push_back(static_cast<int>(places_.size()));
      places_.emplace(&i, static_cast<int>(places_.size()));
    }
  }

  // The place of a value's last use in the block, also through casts
  int last_use(const llvm::Value& value) const {
    int last = 0;
    for (const llvm::User* user : value.users()) {
      const auto at = places_.find(user);
      if (at == places_.end()) continue;
      last = std::max(last, llvm::isa<llvm::BitCastInst>(user) ? last_use(*user) : at->second);
    }
    return last;
  }

  void find_splats() {
    for (llvm::Instruction& i : block_) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
      if (!load || !load->isSimple() || !load->hasOneUse()) continue;
      const uint64_t bits = load->getType()->getPrimitiveSizeInBits();
      auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(load->user_back());
      if ((bits != 16 && bits != 32) || !insert || insert->getOperand(1) != load ||
          insert->getParent() != &block_ || !llvm::isa<llvm::UndefValue>(insert->getOperand(0)))
        continue;
      llvm::Instruction* first_lane = insert;
      if (insert->hasOneUse())
        if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(insert->user_back());
            cast && same_lanes(cast->getType(), insert->getType()))
          first_lane = cast;
      Splat splat{load,
                  insert,
                  first_lane,
                  {},
                  place_of(load->getPointerOperand(), layout_),
                  places_.at(load),
                  places_.at(insert),
                  0};
      for (llvm::User* user : first_lane->users())
        if (auto* fill = llvm::dyn_cast<llvm::ShuffleVectorInst>(user);
            fill && fill->isZeroEltSplat() && fill->getParent() == &block_)
          splat.fills.push_back(fill);
      if (splat.fills.empty() || !first_lane->hasNUses(static_cast<unsigned>(splat.fills.size())))
        continue;
      for (const llvm::ShuffleVectorInst* fill : splat.fills)
        splat.last_use = std::max(splat.last_use, last_use(*fill));
      splats_.push_back(std::move(splat));
    }
  }

  // Finds neighbours from the lowest address on, in groups of 16 bytes or 8.
  void find_windows() {
    std::vector<std::vector<Splat*>> groups;  // by base and type, in code order
    for (Splat& splat : splats_) {
      const auto same = std::ranges::find_if(groups, [&](const std::vector<Splat*>& group) {
        return group[0]->address.near(splat.address) &&
               group[0]->load->getType() == splat.load->getType();
      });
      if (same == groups.end()) groups.push_back({&splat});
      else same->push_back(&splat);
    }
    for (std::vector<Splat*>& group : groups) {
      std::ranges::stable_sort(group, {}, [](const Splat* splat) { return splat->address.bytes; });
      const auto bytes = static_cast<int64_t>(group[0]->load->getType()->getPrimitiveSizeInBits() /
                                              8);
      for (size_t first = 0; first < group.size();) {
        size_t taken = 1;
        for (int64_t wide = kWidest; wide >= kNarrowest && taken == 1; wide /= 2)
          if (const auto count = static_cast<size_t>(wide / bytes); count > 1)
            if (add_window(group, first, count, bytes)) taken = count;
        first += taken;
      }
    }
  }

  bool add_window(const std::vector<Splat*>& group, size_t first, size_t count, int64_t bytes) {
    if (first + count > group.size()) return false;
    Window window{{}, group[first]->first_use, group[first]->last_use};
    int begin = group[first]->place, end = begin;
    for (size_t i = 0; i < count; ++i) {
      Splat* splat = group[first + i];
      if (splat->address.bytes != group[first]->address.bytes + static_cast<int64_t>(i) * bytes)
        return false;
      window.splats.push_back(splat);
      window.first_use = std::min(window.first_use, splat->first_use);
      window.last_use = std::max(window.last_use, splat->last_use);
      begin = std::min(begin, splat->place), end = std::max(end, splat->place);
    }
    if (std::ranges::any_of(writes_, [&](int at) { return at > begin && at < end; })) return false;
    windows_.push_back(std::move(window));
    return true;
  }

  // True if the registers have room for the block's sums, their other operands, and the most
  // elements that live at one time.
  bool fit() const {
    int sums = 0, most = 0;
    for (const llvm::PHINode& phi : block_.phis()) sums += phi.getType()->isVectorTy();
    for (const Window& window : windows_) {
      int live = 0;
      for (const Window& other : windows_)
        live += other.first_use <= window.first_use && window.first_use <= other.last_use;
      most = std::max(most, live);
    }
    return sums + most + kOperands <= registers_;
  }

  void replace(const Window& window) {
    Splat* earliest = *std::ranges::min_element(window.splats, {}, &Splat::place);
    llvm::IRBuilder<> b(earliest->load);
    llvm::Value* from = earliest->load->getPointerOperand();
    if (const int64_t distance = window.splats[0]->address.bytes - earliest->address.bytes;
        distance != 0)
      from = b.CreateGEP(b.getInt8Ty(), from, b.getInt64(static_cast<uint64_t>(distance)));
    llvm::Type* element = earliest->load->getType();
    const auto count = static_cast<unsigned>(window.splats.size());
    llvm::Value* all = b.CreateAlignedLoad(llvm::FixedVectorType::get(element, count), from,
                                           layout_.getABITypeAlign(element));
    for (unsigned lane = 0; lane < count; ++lane) {
      const Splat& splat = *window.splats[lane];
      llvm::Type* used = splat.first_lane->getType()->getScalarType();
      b.SetInsertPoint(splat.insert);
      llvm::Value* elements = b.CreateBitCast(all, llvm::FixedVectorType::get(used, count));
      for (llvm::ShuffleVectorInst* fill : splat.fills) {
        b.SetInsertPoint(fill);
        const size_t lanes = fill->getShuffleMask().size();
        fill->replaceAllUsesWith(b.CreateShuffleVector(
            elements, llvm::SmallVector<int, 16>(lanes, static_cast<int>(lane))));
        fill->eraseFromParent();
      }
      if (splat.first_lane != splat.insert) splat.first_lane->eraseFromParent();
      splat.insert->eraseFromParent();
      splat.load->eraseFromParent();
    }
  }

  llvm::BasicBlock& block_;
  const llvm::DataLayout& layout_;
  const int registers_;
  std::map<const llvm::Value*, int> places_;
  std::vector<int> writes_;
  std::vector<Splat> splats_;
  std::vector<Window> windows_;
};

}  // namespace

void load_lanes_together(llvm::Function& function, int registers) {
  for (llvm::BasicBlock& block : function) LaneLoads(block, registers).run();
}

}  // namespace tw::codegen
