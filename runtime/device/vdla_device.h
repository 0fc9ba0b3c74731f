/* What a library that plays or drives a VDLA offers: one exported function, tw_vdla_device_table.
 * Plain C, opened at run time by the driver (vdla.c) as libtilewright_vdla_<name>.so for the
 * address "<name>:". Also the layout of a device's code in artifacts. */
#ifndef TW_VDLA_DEVICE_H
#define TW_VDLA_DEVICE_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TW_VDLA_DEVICE_ABI 2u

typedef struct tw_vdla_config { /* sizes of a core; a stream runs only where they are those that it
                                   was made for */
  uint32_t block_in, block_out, bus_bytes, inp_depth, wgt_depth, acc_depth, prm_depth, queue_depth,
      requant_lanes;
} tw_vdla_config;

typedef struct tw_vdla_options {
  uint32_t
      latency; /* of simulated memory: cycles from an address to the first beat or the response */
  uint32_t bytes_per_cycle; /* of reads and writes together */
  uint32_t jitter;          /* chance in 256 that a handshake is held back in a cycle */
  uint32_t seed;
  uint32_t watchdog; /* cycles without progress that are a deadlock; 0: none */
  uint32_t
      check_races; /* whether accesses that no token orders are faults; where that can be seen */
  uint64_t most_cycles; /* fault 8 beyond */
} tw_vdla_options;

typedef struct tw_vdla_launch {
  uint64_t instructions; /* address of the stream */
  uint32_t count;
  uint64_t bases[8];
} tw_vdla_launch;

typedef struct tw_vdla_result {
  uint32_t fault, pc,
      marker; /* fault: 0 none, 9 a race, else as docs/internals/vdla.md numbers them */
  uint64_t cycles, gemm, alu, load_busy, store_busy, compute_waits_load, compute_waits_store,
      load_waits, read_beats, write_beats, instructions;
  char message[160]; /* of a fault; "" where there is nothing to say */
} tw_vdla_result;

typedef struct tw_vdla_device {
  uint32_t abi; /* TW_VDLA_DEVICE_ABI */
  /* The core's sizes, or for one that can have any, the wanted ones. */
  void (*configure)(const tw_vdla_config* wanted, tw_vdla_config* config);
  /* Runs one stream on a core just reset, with `dram` as its memory. 0: it ran, perhaps into a
   * fault. */
  int (*run)(const tw_vdla_config* config, uint8_t* dram, uint64_t bytes,
             const tw_vdla_launch* launch, const tw_vdla_options* options, tw_vdla_result* result);
} tw_vdla_device;
typedef const tw_vdla_device* (*tw_vdla_device_table_fn)(void);

/* The code of a device: this head, `launches` streams' places, the streams, each at a multiple of
 * 32 bytes. Little endian. */
#define TW_VDLA_CODE_VERSION 1u
typedef struct tw_vdla_code {
  char magic[4]; /* "VDLA" */
  uint32_t version;
  tw_vdla_config config;
  uint32_t latency,
      bytes_per_cycle; /* of the memory that the schedules were made for; simulators take them */
  uint32_t launches;
  char address[32]; /* where the device is, unless somebody says otherwise */
} tw_vdla_code;
typedef struct tw_vdla_stream {
  uint64_t offset; /* from the code's begin */
  uint32_t count, reserved;
} tw_vdla_stream;

#ifdef __cplusplus
}
#endif
#endif
