#include "backends/vdla/timing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "backends/vdla/machine.h"

namespace tw::vdla {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Sizes from rtl/vdla_fetch.sv and rtl/vdla_load.sv
constexpr int kFetchBurst = 8, kFetchRoom = 16, kSegments = 16;
// Beats after which another engine may get the port
constexpr int kChunk = 4;

constexpr double kTurn = 1e-6;  // the engine that had the port last gives way

// A piece of work that the load engine's front passes to its back
struct Segment {
  enum Kind { pad, data, end } kind;
  double amount;  // elements or beats
  double ready;   // time of DRAM's answer
};

class Timeline {
 public:
  Timeline(const Config& config, const std::vector<Instruction>& stream, const DramModel& dram)
      : config_(config),
        stream_(stream),
        dram_(dram),
        depth_(2 + std::bit_width(static_cast<unsigned>(config.block_in)) - 1),
        beat_(static_cast<double>(config.bus_bytes) / dram.bytes_per_cycle) {}

  // Lets the earliest event happen, until nothing is left. False: a deadlock.
  bool run() {
    for (;;) {
      std::array<double, 7> next = {next_ask(),  next_fetched(), next_deliver(), next_front(),
                                    next_back(), next_compute(), next_store()};
      auto first = std::min_element(next.begin(), next.end());
      if (*first == kNever) return delivered_ == stream_.size();
      now_ = std::max(now_, *first);
      switch (first - next.begin()) {
        case 0: ask(); break;
        case 1: fetched(); break;
        case 2: deliver(); break;
        case 3: front(); break;
        case 4: back(); break;
        case 5: compute(); break;
        case 6: store(); break;
      }
    }
  }
  Cycles cycles() const {
    return {.total = static_cast<uint64_t>(std::ceil(
                std::max({finish_, load_time_, compute_time_ + depth_ + 2, store_time_}))),
            .compute_waits_load = static_cast<uint64_t>(waits_load_),
            .compute_waits_store = static_cast<uint64_t>(waits_store_)};
  }

 private:
  struct Queued {
    uint32_t index;
    double at;
  };

  // Transfers `beats` through the port. The first could go at `began` and the last at `ended`; an
  // idle port saves up two beats.
  double transfer(double beats, double began, double ended) {
    port_ = std::max(port_, began - 2 * beat_) + beats * beat_;
    return std::max(port_, ended + 1);
  }

  // The time at which an engine's oldest instruction could start; kNever: unknown yet
  double head_time(Engine engine) const {
    const auto& queue = queues_[static_cast<int>(engine)];
    if (queue.empty()) return kNever;
    double at = queue.front().at;
    for (Link link : popped(stream_[queue.front().index])) {
      const auto& tokens = tokens_[static_cast<int>(link)];
      if (tokens.empty()) return kNever;
      at = std::max(at, tokens.front());
    }
    return at;
  }
  const Instruction& pop_instruction(Engine engine) {
    auto& queue = queues_[static_cast<int>(engine)];
    const Instruction& instruction = stream_[queue.front().index];
    queue.pop_front();
    for (Link link : popped(instruction)) tokens_[static_cast<int>(link)].pop_front();
    return instruction;
  }
  void push(const Instruction& instruction, double at) {
    for (Link link : pushed(instruction)) tokens_[static_cast<int>(link)].push_back(at);
  }

  // Fetch: bursts are requested and arrive, and their instructions go to the queues.
  double next_ask() const {
    size_t burst = std::min<size_t>(kFetchBurst, stream_.size() - asked_);
    return burst != 0 && asked_ - delivered_ + burst <= kFetchRoom ? std::max(ask_time_, now_)
                                                                   : kNever;
  }
  void ask() {
    size_t burst = std::min<size_t>(kFetchBurst, stream_.size() - asked_);
    bursts_.push_back({static_cast<uint32_t>(burst), now_ + dram_.latency + 1});
    asked_ += burst;
    ask_time_ = now_ + 1;
  }
  double next_fetched() const {
    return bursts_.empty() ? kNever : std::max(bursts_.front().at, port_);
  }
  void fetched() {
    double beats = static_cast<double>(kInstructionBytes) / config_.bus_bytes;
    for (uint32_t i = 0; i < bursts_.front().index; ++i)
      arrived_.push_back(transfer(beats, now_, now_ + beats * (i + 1) - 1));
    bursts_.pop_front();
  }
  double next_deliver() const {
    if (delivered_ == arrived_.size()) return kNever;
    const Instruction& instruction = stream_[delivered_];
    if (!std::holds_alternative<Finish>(instruction) &&
        queues_[static_cast<int>(engine_of(instruction))].size() ==
            static_cast<size_t>(config_.queue_depth))
      return kNever;
    return std::max(arrived_[delivered_], deliver_time_);
  }
  void deliver() {
    deliver_time_ = now_ + 1;
    const Instruction& instruction = stream_[delivered_];
    if (std::holds_alternative<Finish>(instruction)) finish_ = now_;
    else
      queues_[static_cast<int>(engine_of(instruction))].push_back(
          {static_cast<uint32_t>(delivered_), now_ + 1});
    ++delivered_;
  }

  double next_front() const {
    if (segments_.size() >= kSegments) return kNever;
    if (!plan_.empty()) return std::max(front_time_, now_);
    double at = head_time(Engine::load);
    return at == kNever ? kNever : std::max(at, front_time_);
  }
  void front() {
    if (plan_.empty()) {
      const Instruction& instruction = pop_instruction(Engine::load);
      loading_.push_back(&instruction);
      if (auto* load = std::get_if<Load>(&instruction)) make_plan(*load);
      plan_.push_back({Segment::end, 0, 0});
      front_time_ = now_ + 1;
      return;
    }
    Segment segment = plan_.front();
    plan_.pop_front();
    segment.ready = now_ + (segment.kind == Segment::data ? dram_.latency + 1 : 1);
    segments_.push_back(segment);
    front_time_ = now_ + 1 + (segment.kind == Segment::data);
  }
  void make_plan(const Load& i) {
    double columns = i.pad_x0 + i.x + i.pad_x1,
           beats = static_cast<double>(element_bytes(config_, i.scope)) / config_.bus_bytes;
    bool single = i.x_step == 1;
    for (int z = 0; z < i.z; ++z)
      for (int y = 0; y < i.pad_y0 + i.y + i.pad_y1; ++y) {
        if (y < i.pad_y0 || y >= i.pad_y0 + i.y) {
          plan_.push_back({Segment::pad, columns, 0});
          continue;
        }
        if (i.pad_x0) plan_.push_back({Segment::pad, static_cast<double>(i.pad_x0), 0});
        for (int run = 0; run < (single ? 1 : i.x); ++run)
          for (double left = single ? beats * i.x : beats; left > 0; left -= 256)
            plan_.push_back({Segment::data, std::min(left, 256.0), 0});
        if (i.pad_x1) plan_.push_back({Segment::pad, static_cast<double>(i.pad_x1), 0});
      }
  }
  double next_back() const {
    if (segments_.empty()) return kNever;
    double at = std::max(load_time_, segments_.front().ready);
    return segments_.front().kind == Segment::data ? std::max(at, port_ + (load_last_ ? kTurn : 0))
                                                   : at;
  }
  void back() {
    Segment& segment = segments_.front();
    double part = segment.amount;
    if (segment.kind == Segment::data) {
      part = std::min<double>(part, kChunk);
      load_time_ = transfer(part, now_, now_ + part - 1);
      load_last_ = true;
    } else if (segment.kind == Segment::pad) {
      load_time_ = now_ + part;
    } else {
      load_time_ = now_ + 1;
      push(*loading_.front(), now_ + 1);
      loading_.pop_front();
    }
    if ((segment.amount -= part) <= 0) segments_.pop_front();
  }

  // Compute: a step a cycle. An accumulator as source waits for the pipe each time.
  double next_compute() const {
    double at = head_time(Engine::compute);
    return at == kNever ? kNever : std::max(at, compute_time_);
  }
  void compute() {
    const auto& queued = queues_[1].front();
    double idle = std::max(compute_time_, queued.at);
    for (Link link : popped(stream_[queued.index])) {
      double waited = tokens_[static_cast<int>(link)].front() - idle;
      if (waited > 0) (link == Link::load_to_compute ? waits_load_ : waits_store_) += waited;
    }
    const Instruction& instruction = pop_instruction(Engine::compute);
    double steps = static_cast<double>(steps_of(instruction));
    if (auto* alu = std::get_if<Alu>(&instruction); alu && !alu->from_inp) steps *= depth_ + 2;
    compute_time_ = now_ + steps;
    if (const std::optional<int> bank = bank_read_by(instruction)) taken_[*bank] = compute_time_;
    push(instruction, compute_time_ + depth_ + 2);
  }

  int bank_of(uint16_t acc) const { return acc >= depth(config_, Space::acc) / 2 ? 1 : 0; }
  // The bank whose accumulators the instruction reads every cycle, judged by the first
  std::optional<int> bank_read_by(const Instruction& instruction) const {
    if (const auto* gemm = std::get_if<Gemm>(&instruction)) return bank_of(gemm->acc);
    if (const auto* alu = std::get_if<Alu>(&instruction)) return bank_of(alu->dst);
    return std::nullopt;
  }

  // Store: accumulators at the lanes' pace once compute leaves their bank, beats through the port,
  // then the write response.
  double next_store() const {
    if (!storing_) {
      double at = head_time(Engine::store);
      return at == kNever ? kNever : std::max(at, store_time_);
    }
    return std::max({store_time_, port_, taken_[bank_of(std::get<Store>(*storing_).acc)]});
  }
  void store() {
    if (!storing_) {
      storing_ = &pop_instruction(Engine::store);
      auto* i = std::get_if<Store>(storing_);
      store_time_ = now_ + 1;
      if (!i) return end_store();
      bool raw = i->mode == StoreMode::raw;
      double groups = static_cast<double>(config_.block_out) / config_.requant_lanes,
             beats = static_cast<double>(config_.block_out) / config_.bus_bytes;
      double pace = raw ? 1 : (groups < 2 ? 3 : groups) / beats;
      to_store_ = static_cast<double>(i->y) * i->x * beats * (raw ? 4 : 1);
      pace_ = pace;
      produced_ = now_ + (raw ? 4 : 7);
      store_time_ = produced_ + pace_ * std::min<double>(kChunk, to_store_);
      return;
    }
    double part = std::min<double>(kChunk, to_store_);
    produced_ = std::max(produced_, now_ - pace_ * part);
    double sent = transfer(part, now_ - pace_ * (part - 1), now_);
    load_last_ = false;
    produced_ += pace_ * part;
    to_store_ -= part;
    store_time_ = std::max(now_, produced_ + pace_ * std::min<double>(kChunk, to_store_));
    if (to_store_ > 0) return;
    store_time_ = sent + dram_.latency + 1;
    end_store();
  }
  void end_store() {
    push(*storing_, store_time_ + 1);
    store_time_ += 1;
    storing_ = nullptr;
  }

  const Config& config_;
  const std::vector<Instruction>& stream_;
  DramModel dram_;
  int depth_;    // stages of the compute pipe
  double beat_;  // cycles of the port for a beat
  double now_ = 0, port_ = 0;
  std::array<std::deque<Queued>, kEngines> queues_;
  std::array<std::deque<double>, kLinks> tokens_;
  std::deque<Queued> bursts_;  // instructions, and time of arrival
  std::vector<double> arrived_;
  size_t asked_ = 0, delivered_ = 0;
  double ask_time_ = 0, deliver_time_ = 0, finish_ = 0;
  std::deque<Segment> plan_, segments_;
  std::deque<const Instruction*> loading_;
  double front_time_ = 0, load_time_ = 0, compute_time_ = 0, store_time_ = 0;
  std::array<double, 2> taken_{};  // end of compute's reads, by bank of accumulators
  double waits_load_ = 0, waits_store_ = 0, to_store_ = 0, pace_ = 0, produced_ = 0;
  const Instruction* storing_ = nullptr;
  bool load_last_ = false;
};

}  // namespace

Expected<Cycles> predict_cycles(const Config& config, const std::vector<Instruction>& stream,
                                const DramModel& dram) {
  TW_TRY(verify(config));
  if (dram.bytes_per_cycle == 0)
    return make_error(DiagCode::invalid_argument, "a DRAM that never answers");
  uint64_t steps = 0;
  for (const Instruction& instruction : stream) {
    TW_TRY(check_fields(instruction, config));
    TW_TRY(check_range(instruction, config));
    steps += steps_of(instruction);
    if (steps > uint64_t{1} << 40)
      return make_error(DiagCode::limit, "the stream computes too long to be timed");
  }
  Timeline timeline(config, stream, dram);
  if (!timeline.run()) return make_error(DiagCode::invalid_argument, "the stream deadlocks");
  return timeline.cycles();
}

}  // namespace tw::vdla
