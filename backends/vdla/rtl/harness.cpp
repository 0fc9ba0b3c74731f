// The simulated core with a DRAM behind its port: it has latency, a bandwidth that reads and writes
// share, and random delays of handshakes by a seed.
#include <cstdio>
#include <deque>
#include <memory>
#include <random>

#include "Vvdla_core.h"
#include "runtime/device/vdla_device.h"
#include "verilated.h"

namespace {

[[maybe_unused]] void put(QData& port, const uint8_t* bytes) {
  port = 0;
  for (int i = 0; i < 8; ++i) port |= QData{bytes[i]} << 8 * i;
}
template <size_t N>
void put(VlWide<N>& port, const uint8_t* bytes) {
  for (size_t i = 0; i < N; ++i)
    port[i] = bytes[4 * i] | bytes[4 * i + 1] << 8 | bytes[4 * i + 2] << 16 |
              uint32_t{bytes[4 * i + 3]} << 24;
}
[[maybe_unused]] void get(const QData& port, uint8_t* bytes) {
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(port >> 8 * i);
}
template <size_t N>
void get(const VlWide<N>& port, uint8_t* bytes) {
  for (size_t i = 0; i < 4 * N; ++i) bytes[i] = static_cast<uint8_t>(port[i / 4] >> 8 * (i % 4));
}

class Simulation {
 public:
  Simulation(uint8_t* dram, uint64_t bytes, const tw_vdla_options& options)
      : dram_(dram),
        bytes_(bytes),
        options_(options),
        random_(options.seed),
        core_(std::make_unique<VerilatedContext>()),
        top_(std::make_unique<Vvdla_core>(core_.get())) {
    top_->reset = 1;
    for (int i = 0; i < 4; ++i) tick();
    top_->reset = 0;
    tick();
  }
  ~Simulation() { top_->final(); }

  void write(uint32_t address, uint32_t value) {
    top_->csr_write = 1;
    top_->csr_address = static_cast<uint8_t>(address);
    top_->csr_wdata = value;
    tick();
    top_->csr_write = 0;
  }
  uint32_t read(uint32_t address) {
    top_->csr_address = static_cast<uint8_t>(address);
    top_->eval();
    return top_->csr_rdata;
  }
  bool wait() {
    while (!top_->irq && cycle_ < options_.most_cycles) tick();
    return top_->irq;
  }

 private:
  static constexpr uint64_t kBus = sizeof(Vvdla_core::r_data);
  struct Burst {
    uint64_t address, ready;
    uint32_t beats;
    bool id;
  };
  struct Response {
    uint64_t ready;
    bool error;
  };

  bool held() { return options_.jitter != 0 && (random_() & 255) < options_.jitter; }
  bool inside(uint64_t address) const { return bytes_ >= kBus && address <= bytes_ - kBus; }

  // Runs one clock: the port's inputs settle, the cycle's handshakes are read, then the edge comes.
  void tick() {
    Vvdla_core& top = *top_;
    credit_ = std::min<uint64_t>(credit_ + options_.bytes_per_cycle, 2 * kBus);
    top.ar_ready = reads_.size() < 32 && !held();
    top.aw_ready = writes_.size() < 32 && !held();
    bool can_read = !reads_.empty() && reads_.front().ready <= cycle_ && (offered_ || !held());
    bool can_write = !writes_.empty() && !held();
    // With bandwidth for one beat, a read that is already offered goes first; otherwise they take
    // turns.
    bool both = credit_ >= 2 * kBus, one = credit_ >= kBus;
    bool choose_read = can_read && (offered_ || !can_write || !top.w_valid || (cycle_ & 1));
    top.r_valid = can_read && (both || (one && choose_read));
    top.w_ready = can_write && (both || (one && !choose_read));
    if (top.r_valid) {
      const Burst& burst = reads_.front();
      static constexpr uint8_t kNothing[kBus] = {};
      top.r_error = !inside(burst.address);
      put(top.r_data, top.r_error ? kNothing : dram_ + burst.address);
      top.r_id = burst.id;
    }
    top.b_valid = !responses_.empty() && responses_.front().ready <= cycle_;
    top.b_error = top.b_valid && responses_.front().error;
    top.clk = 0;
    top.eval();
    handshakes();
    top.clk = 1;
    top.eval();
    ++cycle_;
  }

  void handshakes() {
    Vvdla_core& top = *top_;
    if (top.b_valid) responses_.pop_front();
    offered_ = top.r_valid && !top.r_ready;
    if (top.r_valid && top.r_ready) {
      credit_ -= kBus;
      Burst& burst = reads_.front();
      burst.address += kBus;
      if (--burst.beats == 0) reads_.pop_front();
    }
    if (top.w_valid && top.w_ready) {
      credit_ -= kBus;
      Burst& burst = writes_.front();
      if (inside(burst.address)) get(top.w_data, dram_ + burst.address);
      else burst.id = true;
      burst.address += kBus;
      if (--burst.beats == 0) {
        responses_.push_back({cycle_ + options_.latency, burst.id});
        writes_.pop_front();
      }
    }
    if (top.ar_valid && top.ar_ready)
      reads_.push_back(
          {top.ar_address, cycle_ + options_.latency, top.ar_beats + 1u, top.ar_id != 0});
    if (top.aw_valid && top.aw_ready)
      writes_.push_back({top.aw_address, cycle_, top.aw_beats + 1u, false});
  }

  uint8_t* dram_;
  uint64_t bytes_;
  tw_vdla_options options_;
  std::minstd_rand random_;
  std::unique_ptr<VerilatedContext> core_;
  std::unique_ptr<Vvdla_core> top_;
  std::deque<Burst> reads_, writes_;  // id of a write: 1 if it failed
  std::deque<Response> responses_;
  bool offered_ = false;  // an offered read beat must not be withdrawn
  uint64_t cycle_ = 0, credit_ = 0;
};

void configure(const tw_vdla_config*, tw_vdla_config* config) {  // a core has fixed sizes
  Simulation core(nullptr, 0, {0, 16, 0, 1, 0, 0, 0});
  uint32_t shape = core.read(0x08), depths = core.read(0x0c);
  *config = {1u << (shape & 255),  1u << (shape >> 8 & 255),  shape >> 16 & 255,
             1u << (depths & 255), 1u << (depths >> 8 & 255), 1u << (depths >> 16 & 255),
             1u << (depths >> 24), core.read(0x38),           shape >> 24};
}

int run(const tw_vdla_config*, uint8_t* dram, uint64_t bytes, const tw_vdla_launch* launch,
        const tw_vdla_options* options, tw_vdla_result* result) {
  Simulation core(dram, bytes, *options);
  auto wide = [&](uint32_t address, uint64_t value) {
    core.write(address, static_cast<uint32_t>(value));
    core.write(address + 4, static_cast<uint32_t>(value >> 32));
  };
  if (core.read(0) != 0x314c4456) return 1;
  wide(0x20, launch->instructions);
  core.write(0x28, launch->count);
  core.write(0x30, options->watchdog);
  for (uint32_t i = 0; i < 8; ++i) wide(0x40 + 8 * i, launch->bases[i]);
  core.write(0x10, 1);
  bool ended = core.wait();
  *result = {ended ? core.read(0x18) : 8,
             core.read(0x1c),
             core.read(0x34),
             core.read(0x80),
             core.read(0x84),
             core.read(0x88),
             core.read(0x8c),
             core.read(0x90),
             core.read(0x94),
             core.read(0x98),
             core.read(0x9c),
             core.read(0xa0),
             core.read(0xa4),
             core.read(0xa8),
             {}};
  if (result->fault)
    std::snprintf(result->message, sizeof result->message,
                  "the core stopped at instruction %u of %u, fault", result->pc, launch->count);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tw_vdla_device* tw_vdla_device_table() {
  static const tw_vdla_device table = {TW_VDLA_DEVICE_ABI, configure, run};
  return &table;
}
