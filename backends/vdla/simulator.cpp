#include "backends/vdla/simulator.h"

#include <algorithm>
#include <deque>

#include "backends/vdla/assembly.h"
#include "backends/vdla/machine.h"

namespace tw::vdla {
namespace {

Word word_at(const uint8_t* bytes) {
  Word word{};
  for (int i = 0; i < kInstructionBytes; ++i) word[i / 8] |= uint64_t{bytes[i]} << 8 * (i % 8);
  return word;
}

class Simulation {
 public:
  Simulation(const Config& config, std::span<uint8_t> dram, const Launch& launch,
             const SimulatorOptions& options)
      : config_(config),
        dram_(dram),
        launch_(launch),
        steps_left_(options.most_steps),
        machine_(config, dram, launch.bases) {
    if (!options.check_races) return;
    checker_.emplace(config, dram.size());
    checker_->set_stream(launch.instructions, launch.count);
    machine_.watch(&*checker_);
  }

  Outcome run() {
    while (!finished_ && outcome_.fault == Fault::none) {
      bool progress = fetch();
      for (auto& queue : queues_)
        while (outcome_.fault == Fault::none && !queue.empty() &&
               ready(queue.front().instruction)) {
          start(queue.front());
          queue.pop_front();
          progress = true;
        }
      if (outcome_.fault == Fault::none && !progress) stuck();
    }
    outcome_.counters.gemm = machine_.gemm_steps;
    outcome_.counters.alu = machine_.alu_steps;
    outcome_.counters.read_bytes = machine_.read_bytes;
    outcome_.counters.written_bytes = machine_.written_bytes;
    if (checker_) {
      outcome_.races.assign(checker_->races().begin(), checker_->races().end());
      outcome_.overflows.assign(checker_->overflows().begin(), checker_->overflows().end());
    }
    return std::move(outcome_);
  }

 private:
  struct Queued {
    uint32_t index;
    Instruction instruction;
  };

  void fail(Fault fault, uint32_t pc, std::string why, std::vector<std::string> notes = {}) {
    outcome_.fault = fault;
    outcome_.pc = pc;
    DiagCode code = fault == Fault::limit ? DiagCode::limit : DiagCode::invalid_argument;
    outcome_.diag = Diag{
        code,
        llvm::formatv("instruction {0}: {1}: {2}", pc, fault_name(fault), why).str(),
        {},
        std::move(notes)};
  }

  // Puts instructions into their queues in order, until one queue is full: that also holds up the
  // other engines.
  bool fetch() {
    bool progress = false;
    while (outcome_.fault == Fault::none) {
      if (at_finish_) return progress | finish();
      if (next_ == launch_.count)
        return fail(Fault::no_finish, next_, "the stream ends without finish"), false;
      uint64_t address = launch_.instructions + uint64_t{next_} * kInstructionBytes;
      if (address > dram_.size() || dram_.size() - address < kInstructionBytes)
        return fail(Fault::bus, next_, "the stream lies outside the memory"), false;
      auto instruction = decode(word_at(&dram_[address]));
      if (!instruction)
        return fail(Fault::illegal, next_, error_text(instruction.takeError())), false;
      if (Error error = check_fields(*instruction, config_))
        return fail(Fault::illegal, next_, error_text(std::move(error))), false;
      if (auto* last = std::get_if<Finish>(&*instruction)) {
        at_finish_ = true;
        outcome_.marker = last->marker;
        continue;
      }
      auto& queue = queues_[static_cast<int>(engine_of(*instruction))];
      if (queue.size() == static_cast<size_t>(config_.queue_depth)) return progress;
      queue.push_back({next_++, *instruction});
      progress = true;
    }
    return progress;
  }

  bool finish() {
    for (const auto& queue : queues_)
      if (!queue.empty()) return false;
    finished_ = true;
    ++outcome_.counters.instructions;
    for (int l = 0; l < kLinks; ++l)
      if (tokens_[l] != 0)
        fail(Fault::tokens_left, next_,
             llvm::formatv("{0} from {1}", tokens_[l], link_name(static_cast<Link>(l))).str());
    return true;
  }

  bool ready(const Instruction& instruction) const {
    std::vector<Link> links = popped(instruction);
    return std::all_of(links.begin(), links.end(),
                       [&](Link l) { return tokens_[static_cast<int>(l)] > 0; });
  }

  void start(const Queued& queued) {
    const Instruction& instruction = queued.instruction;
    if (Error error = check_range(instruction, config_))
      return fail(Fault::sram_range, queued.index, error_text(std::move(error)));
    uint64_t steps = steps_of(instruction);
    if (steps > steps_left_)
      return fail(Fault::limit, queued.index, "the stream computes longer than allowed");
    steps_left_ -= steps;
    for (Link link : popped(instruction)) --tokens_[static_cast<int>(link)];
    if (checker_) checker_->begin(instruction, queued.index);
    if (!machine_.execute(instruction))
      return fail(Fault::bus, queued.index, "an address lies outside the memory");
    if (checker_) checker_->end();
    for (Link link : pushed(instruction))
      if (++tokens_[static_cast<int>(link)] > kMostTokens)
        return fail(Fault::token_overflow, queued.index,
                    llvm::formatv("more than {0} from {1}", kMostTokens, link_name(link)).str());
    ++outcome_.counters.instructions;
  }

  void stuck() {
    uint32_t oldest = launch_.count;
    std::vector<std::string> notes;
    for (int e = 0; e < kEngines; ++e) {
      if (queues_[e].empty()) continue;
      const auto& [index, instruction] = queues_[e].front();
      oldest = std::min(oldest, index);
      std::string waits;
      for (Link link : popped(instruction))
        if (tokens_[static_cast<int>(link)] == 0)
          waits += std::string(waits.empty() ? "" : " and ") + link_name(link);
      notes.push_back(llvm::formatv("{0}: instruction {1} waits for a token from {2}: {3}",
                                    engine_name(static_cast<Engine>(e)), index, waits,
                                    disassemble(instruction))
                          .str());
    }
    fail(Fault::deadlock, oldest, "no engine can go on", std::move(notes));
  }

  Config config_;
  std::span<uint8_t> dram_;
  Launch launch_;
  uint64_t steps_left_;
  Machine machine_;
  std::optional<RaceChecker> checker_;
  std::array<std::deque<Queued>, kEngines> queues_;
  std::array<uint32_t, kLinks> tokens_{};
  uint32_t next_ = 0;
  bool at_finish_ = false, finished_ = false;
  Outcome outcome_;
};

}  // namespace

Error verify(const Launch& launch, const Config& config) {
  if (launch.instructions % kInstructionBytes != 0)
    return make_error(DiagCode::invalid_argument,
                      "the stream's address is not a multiple of {0} bytes", kInstructionBytes);
  for (uint64_t base : launch.bases)
    if (base % static_cast<uint64_t>(config.bus_bytes) != 0)
      return make_error(DiagCode::invalid_argument, "a base is not a multiple of {0} bytes",
                        config.bus_bytes);
  return Error::success();
}

Expected<Outcome> simulate(const Config& config, std::span<uint8_t> dram, const Launch& launch,
                           const SimulatorOptions& options) {
  TW_TRY(verify(config));
  TW_TRY(verify(launch, config));
  return Simulation(config, dram, launch, options).run();
}

std::vector<Diag> describe(const Outcome& outcome, std::span<const uint8_t> dram,
                           const Launch& launch) {
  std::vector<Diag> diags;
  if (outcome.diag) diags.push_back(*outcome.diag);
  auto text = [&](uint32_t index) {
    auto instruction = decode(
        word_at(&dram[launch.instructions + uint64_t{index} * kInstructionBytes]));
    return llvm::formatv(
               "instruction {0}: {1}", index,
               instruction ? disassemble(*instruction) : error_text(instruction.takeError()))
        .str();
  };
  for (const Race& race : outcome.races)
    diags.push_back({DiagCode::mismatch,
                     llvm::formatv("no token orders instructions {0} and {1} at {2} {3}",
                                   race.first, race.second, space_name(race.space), race.place)
                         .str(),
                     {},
                     {text(race.first), text(race.second)}});
  for (uint32_t index : outcome.overflows)
    diags.push_back({DiagCode::limit,
                     llvm::formatv("more than {0} tokens may wait", kMostTokens).str(),
                     {},
                     {text(index)}});
  return diags;
}

}  // namespace tw::vdla
