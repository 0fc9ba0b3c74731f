/* The interface of a library that simulates or drives a VDLA: one exported function,
 * tw_vdla_device_table. It is plain C. The driver (vdla.c) opens the library at run time as
 * libtilewright_vdla_<name>.so for the address "<name>:". The layout of a device's code in
 * artifacts is here, too. */
#ifndef TW_VDLA_DEVICE_H
#define TW_VDLA_DEVICE_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TW_VDLA_DEVICE_ABI 2u

typedef struct tw_vdla_config { /* sizes of a core; a stream runs only on a core of the sizes that
                                   it was made for */
  uint32_t block_in, block_out, bus_bytes, inp_depth, wgt_depth, acc_depth, prm_depth, queue_depth,
      requant_lanes;
} tw_vdla_config;

typedef struct tw_vdla_options {
  uint32_t
      latency; /* cycles of simulated memory from an address to the first beat or the response */
  uint32_t bytes_per_cycle; /* reads and writes together */
  uint32_t jitter;          /* chance in 256 that a handshake is held back in a cycle */
  uint32_t seed;
  uint32_t watchdog;    /* cycles without progress that are a deadlock; 0: none */
  uint32_t check_races; /* 1: unordered accesses are faults, where the library sees them */
  uint64_t most_cycles; /* a run that takes longer ends with fault 8 */
} tw_vdla_options;

typedef struct tw_vdla_launch {
  uint64_t instructions; /* address of the stream */
  uint32_t count;
  uint64_t bases[8];
} tw_vdla_launch;

typedef struct tw_vdla_result {
  uint32_t fault, pc, marker; /* fault: 0 none, 9 a race, else a number of docs/internals/vdla.md */
  uint64_t cycles, gemm, alu, load_busy, store_busy, compute_waits_load, compute_waits_store,
      load_waits, read_beats, write_beats, instructions;
  char message[160]; /* text of a fault; "" where there is nothing to say */
} tw_vdla_result;

typedef struct tw_vdla_device {
  uint32_t abi; /* TW_VDLA_DEVICE_ABI */
  /* Gives the core's sizes; a core of any size takes the wanted ones. */
  void (*configure)(const tw_vdla_config* wanted, tw_vdla_config* config);
  /* Runs one stream on a core just reset, with `dram` as its memory. 0: it ran, perhaps into a
   * fault. */
  int (*run)(const tw_vdla_config* config, uint8_t* dram, uint64_t bytes,
             const tw_vdla_launch* launch, const tw_vdla_options* options, tw_vdla_result* result);
} tw_vdla_device;
typedef const tw_vdla_device* (*tw_vdla_device_table_fn)(void);

/* The code of a device: this head, then a tw_vdla_stream for each of `launches`, then the streams,
 * each at a multiple of 32 bytes. Little endian. */
#define TW_VDLA_CODE_VERSION 1u
typedef struct tw_vdla_code {
  char magic[4]; /* "VDLA" */
  uint32_t version;
  tw_vdla_config config;
  uint32_t latency,
      bytes_per_cycle; /* the memory for which the schedules were made; simulators take it */
  uint32_t launches;
  char address[32]; /* the device's address, unless the environment has another */
} tw_vdla_code;
typedef struct tw_vdla_stream {
  uint64_t offset; /* from the beginning of the code */
  uint32_t count, reserved;
} tw_vdla_stream;

#ifdef __cplusplus
}
#endif
#endif
