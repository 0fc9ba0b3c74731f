/* What a library of the simulated core offers: tw_vdla_rtl_config and tw_vdla_rtl_run. Plain C, opened at run time. */
#ifndef TW_VDLA_RTL_API_H
#define TW_VDLA_RTL_API_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t abi;  /* 1 */
  uint32_t block_in, block_out, bus_bytes, inp_depth, wgt_depth, acc_depth, prm_depth, queue_depth, requant_lanes;
} tw_vdla_rtl_config_t;

typedef struct {
  uint32_t latency;          /* cycles from an address to the first beat or the response */
  uint32_t bytes_per_cycle;  /* of reads and writes together */
  uint32_t jitter;           /* chance in 256 that a handshake is held back in a cycle */
  uint32_t seed;
  uint32_t watchdog;         /* cycles without progress that are a deadlock; 0: none */
  uint64_t most_cycles;      /* fault 8 beyond */
} tw_vdla_rtl_options_t;

typedef struct {
  uint64_t instructions;
  uint32_t count;
  uint64_t bases[8];
} tw_vdla_rtl_launch_t;

typedef struct {
  uint32_t fault, pc, marker;
  uint64_t cycles, gemm, alu, load_busy, store_busy, compute_waits_load, compute_waits_store, load_waits, read_beats, write_beats,
      instructions;
} tw_vdla_rtl_result_t;

typedef void (*tw_vdla_rtl_config_fn)(tw_vdla_rtl_config_t* config);
/* Runs one stream on a core just reset, with `dram` as its memory. 0: it ran, perhaps into a fault. */
typedef int (*tw_vdla_rtl_run_fn)(uint8_t* dram, uint64_t bytes, const tw_vdla_rtl_launch_t* launch,
                                  const tw_vdla_rtl_options_t* options, tw_vdla_rtl_result_t* result);

#ifdef __cplusplus
}
#endif
#endif
