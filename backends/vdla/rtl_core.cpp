#include "backends/vdla/rtl_core.h"

#include <dlfcn.h>

#include "runtime/device/vdla_device.h"

namespace tw::vdla {

Expected<std::shared_ptr<RtlCore>> RtlCore::open(const std::string& library) {
  std::shared_ptr<RtlCore> core(new RtlCore);
  core->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!core->library_)
    return make_error(DiagCode::io, "the VDLA's simulated core cannot be opened: {0}", dlerror());
  auto table = reinterpret_cast<tw_vdla_device_table_fn>(
      dlsym(core->library_, "tw_vdla_device_table"));
  if (!table) return make_error(DiagCode::io, "{0} is no VDLA", library);
  core->table_ = table();
  if (core->table_->abi != TW_VDLA_DEVICE_ABI)
    return make_error(DiagCode::unsupported, "{0} has interface {1}, this is {2}", library,
                      core->table_->abi, TW_VDLA_DEVICE_ABI);
  tw_vdla_config c{};
  core->table_->configure(&c, &c);
  auto i = [](uint32_t value) { return static_cast<int>(value); };
  core->config_ = {i(c.block_in),  i(c.block_out),   i(c.bus_bytes),
                   i(c.inp_depth), i(c.wgt_depth),   i(c.acc_depth),
                   i(c.prm_depth), i(c.queue_depth), i(c.requant_lanes)};
  TW_TRY(verify(core->config_));
  return core;
}

RtlCore::~RtlCore() {
  if (library_) dlclose(library_);
}

Expected<Outcome> RtlCore::run(std::span<uint8_t> dram, const Launch& launch,
                               const RtlOptions& options, Cycles* cycles) const {
  TW_TRY(verify(launch, config_));
  tw_vdla_launch l{launch.instructions, launch.count, {}};
  for (int b = 0; b < kBases; ++b) l.bases[b] = launch.bases[b];
  tw_vdla_options o{options.dram.latency, options.dram.bytes_per_cycle,
                    options.jitter,       options.seed,
                    options.watchdog,     0,
                    options.most_cycles};
  if (o.bytes_per_cycle == 0 || o.jitter > 250)
    return make_error(DiagCode::invalid_argument, "a DRAM that never answers");
  tw_vdla_config c{};
  table_->configure(&c, &c);
  tw_vdla_result r{};
  if (table_->run(&c, dram.data(), dram.size(), &l, &o, &r) != 0)
    return make_error(DiagCode::io, "the simulated core does not identify itself");
  Outcome outcome;
  if (r.fault > static_cast<uint32_t>(Fault::limit))
    return make_error(DiagCode::io, "the simulated core gives fault {0}", r.fault);
  outcome.fault = static_cast<Fault>(r.fault);
  outcome.pc = r.pc;
  outcome.marker = r.marker;
  outcome.counters = {r.instructions + (r.fault == 0), r.gemm, r.alu,
                      r.read_beats * static_cast<uint64_t>(config_.bus_bytes),
                      r.write_beats * static_cast<uint64_t>(config_.bus_bytes)};
  if (outcome.fault != Fault::none)
    outcome.diag = Diag{
        DiagCode::invalid_argument,
        llvm::formatv("instruction {0}: {1}", r.pc, fault_name(outcome.fault)).str(),
        {},
        {}};
  if (cycles)
    *cycles = {r.cycles,    r.load_busy, r.store_busy, r.compute_waits_load, r.compute_waits_store,
               r.load_waits};
  return outcome;
}

}  // namespace tw::vdla
