#include "backends/vdla/races.h"

#include <algorithm>

namespace tw::vdla {
namespace {

constexpr std::array<Engine, kLinks> kConsumer = {Engine::compute, Engine::load, Engine::store,
                                                  Engine::compute};

Link link_of(Engine from, Engine to) {
  if (from == Engine::load) return Link::load_to_compute;
  if (from == Engine::store) return Link::store_to_compute;
  return to == Engine::load ? Link::compute_to_load : Link::compute_to_store;
}
Engine before(Engine e) { return e == Engine::store ? Engine::compute : Engine::load; }
Engine after(Engine e) { return e == Engine::load ? Engine::compute : Engine::store; }

}  // namespace

const char* link_name(Link link) {
  switch (link) {
    case Link::load_to_compute: return "load to compute";
    case Link::compute_to_load: return "compute to load";
    case Link::compute_to_store: return "compute to store";
    case Link::store_to_compute: return "store to compute";
  }
  TW_UNREACHABLE("bad link");
}

std::vector<Link> popped(const Instruction& instruction) {
  Tokens t = tokens_of(instruction);
  Engine me = engine_of(instruction);
  std::vector<Link> links;
  if (t.pop_prev) links.push_back(link_of(before(me), me));
  if (t.pop_next) links.push_back(link_of(after(me), me));
  return links;
}

std::vector<Link> pushed(const Instruction& instruction) {
  Tokens t = tokens_of(instruction);
  Engine me = engine_of(instruction);
  std::vector<Link> links;
  if (t.push_prev) links.push_back(link_of(me, before(me)));
  if (t.push_next) links.push_back(link_of(me, after(me)));
  return links;
}

RaceChecker::RaceChecker(const Config& config, uint64_t dram_bytes) : beat_(config.bus_bytes) {
  for (Space space : {Space::inp, Space::wgt, Space::acc, Space::prm})
    slots_[static_cast<int>(space)].resize(depth(config, space));
  slots_[static_cast<int>(Space::dram)].resize((dram_bytes + beat_ - 1) / beat_);
}

void RaceChecker::begin(const Instruction& instruction, uint32_t index) {
  running_ = &instruction;
  index_ = index;
  Clock& clock = clocks_[static_cast<int>(engine_of(instruction))];
  for (Link link : popped(instruction)) {
    auto& queue = tokens_[static_cast<int>(link)];
    TW_CHECK(!queue.empty(), "instruction {0} pops a token that nobody pushed", index);
    for (int e = 0; e < kEngines; ++e) clock[e] = std::max(clock[e], queue.front()[e]);
    queue.pop_front();
  }
  ++clock[static_cast<int>(engine_of(instruction))];
}

void RaceChecker::meet(const std::array<Touch, kEngines>& touches, Space space, uint64_t place) {
  int me = static_cast<int>(engine_of(*running_));
  for (int e = 0; e < kEngines; ++e)
    if (e != me && touches[e].order > clocks_[me][e] && races_.size() < kMostRaces)
      races_.insert(
          {std::min(touches[e].index, index_), std::max(touches[e].index, index_), space, place});
}

void RaceChecker::access(Space space, uint64_t first, uint64_t count, bool write) {
  int me = static_cast<int>(engine_of(*running_));
  bool dram = space == Space::dram;
  uint64_t begin = dram ? first / beat_ : first,
           end = dram ? (first + count + beat_ - 1) / beat_ : first + count;
  uint64_t fetched = stream_ + uint64_t{index_ + 1} * kInstructionBytes,
           stream_end = stream_ + uint64_t{count_} * kInstructionBytes;
  if (uint64_t at = std::max(first, fetched);
      dram && write && at < std::min(first + count, stream_end) && races_.size() < kMostRaces)
    races_.insert({index_, static_cast<uint32_t>((at - stream_) / kInstructionBytes), space, at});
  for (uint64_t i = begin; i < end; ++i) {
    Slot& slot = slots_[static_cast<int>(space)][i];
    uint64_t place = dram ? i * beat_ : i;
    meet(slot.write, space, place);
    if (write) meet(slot.read, space, place);
    (write ? slot.write : slot.read)[me] = {clocks_[me][me], index_};
  }
}

void RaceChecker::end() {
  const Instruction& instruction = *running_;
  int me = static_cast<int>(engine_of(instruction));
  for (Link link : pushed(instruction)) {
    int l = static_cast<int>(link);
    uint32_t known = clocks_[me][static_cast<int>(kConsumer[l])];
    uint64_t gone = known == 0 ? 0 : pops_[l][known - 1];
    if (++pushes_[l] - gone > kMostTokens) overflows_.insert(index_);
    tokens_[l].push_back(clocks_[me]);
  }
  std::vector<Link> taken = popped(instruction);
  for (int l = 0; l < kLinks; ++l)
    if (static_cast<int>(kConsumer[l]) == me) {
      uint32_t total = pops_[l].empty() ? 0 : pops_[l].back();
      pops_[l].push_back(
          total + (std::find(taken.begin(), taken.end(), static_cast<Link>(l)) != taken.end()));
    }
  running_ = nullptr;
}

}  // namespace tw::vdla
