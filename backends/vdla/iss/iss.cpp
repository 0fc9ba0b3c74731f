// The instruction-set simulator behind runtime/device/vdla_device.h: exact values, predicted
// cycles, and races on request
#include <cstdio>
#include <cstring>

#include "backends/vdla/timing.h"
#include "runtime/device/vdla_device.h"

namespace tw::vdla {
namespace {

constexpr uint32_t kRaceFault = 9;

Config config_of(const tw_vdla_config& c) {
  auto i = [](uint32_t value) { return static_cast<int>(value); };
  return {i(c.block_in),  i(c.block_out), i(c.bus_bytes),   i(c.inp_depth),    i(c.wgt_depth),
          i(c.acc_depth), i(c.prm_depth), i(c.queue_depth), i(c.requant_lanes)};
}

// The simulator supports any configuration.
void configure(const tw_vdla_config* wanted, tw_vdla_config* config) { *config = *wanted; }

void say(tw_vdla_result& result, const std::string& text) {
  std::snprintf(result.message, sizeof result.message, "%s", text.c_str());
}

std::vector<Instruction> stream_of(std::span<const uint8_t> dram, const Launch& launch) {
  std::vector<Instruction> stream;
  for (uint32_t i = 0; i < launch.count; ++i) {
    Word word{};
    std::memcpy(word.data(), &dram[launch.instructions + uint64_t{i} * kInstructionBytes],
                kInstructionBytes);
    if (Expected<Instruction> instruction = decode(word)) stream.push_back(*instruction);
    else llvm::consumeError(instruction.takeError());  // the run has reported the error
  }
  return stream;
}

int run(const tw_vdla_config* sizes, uint8_t* memory, uint64_t bytes, const tw_vdla_launch* l,
        const tw_vdla_options* options, tw_vdla_result* result) {
  const Config config = config_of(*sizes);
  const std::span<uint8_t> dram(memory, bytes);
  Launch launch{l->instructions, l->count, {}};
  for (int b = 0; b < kBases; ++b) launch.bases[static_cast<size_t>(b)] = l->bases[b];
  *result = {};
  Expected<Outcome> outcome = simulate(config, dram, launch,
                                       {options->check_races != 0, uint64_t{1} << 40});
  if (!outcome) {
    say(*result, error_text(outcome.takeError()));
    result->fault = static_cast<uint32_t>(Fault::illegal);
    return 0;
  }
  const auto beat = static_cast<uint64_t>(config.bus_bytes);
  result->fault = outcome->ok() || outcome->fault != Fault::none
                      ? static_cast<uint32_t>(outcome->fault)
                      : kRaceFault;
  result->pc = outcome->pc, result->marker = outcome->marker;
  result->gemm = outcome->counters.gemm, result->alu = outcome->counters.alu,
  result->instructions = outcome->counters.instructions;
  result->read_beats = outcome->counters.read_bytes / beat,
  result->write_beats = outcome->counters.written_bytes / beat;
  if (result->fault) {
    const std::vector<Diag> diags = describe(*outcome, dram, launch);
    if (!diags.empty()) say(*result, diags.front().message);
    return 0;
  }
  Expected<Cycles> cycles = predict_cycles(config, stream_of(dram, launch),
                                           {options->latency, options->bytes_per_cycle});
  if (cycles)
    result->cycles = cycles->total, result->compute_waits_load = cycles->compute_waits_load,
    result->compute_waits_store = cycles->compute_waits_store;
  else llvm::consumeError(cycles.takeError());
  return 0;
}

}  // namespace
}  // namespace tw::vdla

extern "C" __attribute__((visibility("default"))) const tw_vdla_device* tw_vdla_device_table() {
  static const tw_vdla_device table = {TW_VDLA_DEVICE_ABI, tw::vdla::configure, tw::vdla::run};
  return &table;
}
