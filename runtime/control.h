/* A loop as generated code describes it; backends/llvm/emit_region.cpp builds the struct field by
 * field. */
#ifndef TW_CONTROL_H
#define TW_CONTROL_H
#include "model.h"
#include "sys.h"

typedef struct tw_loop_desc {
  int32_t (*body)(const tw_env* env);
  int64_t trip;
  const void** inputs; /* of the body: carried values, rows of sliced ones, the rest; moved along */
  void** outputs;      /* of the body: memory of the next condition, carried values, rows of stacked
                          results; moved along */
  void* const* results;   /* where the carried values end */
  void* const* spare;     /* a second memory of each */
  const int64_t* bytes;   /* of each carried value before iteration 0, then of a row of each sliced
                           and each stacked one */
  const int64_t* growth;  /* of each carried value in an iteration */
  uint8_t* arena;         /* of the body */
  const int64_t* symbols; /* of the body */
  int64_t* iteration;     /* the one among them that counts the iterations, from 1; NULL: none */
  const uint8_t* condition; /* the first; NULL: always true */
  int64_t* count;           /* of the iterations, a result; NULL: nobody asks */
  int32_t carried, sliced, stacked;
  const int32_t* places;     /* of each carried value: 0, or 1 + a device, in whose arena the
                                addresses of it are offsets; NULL: all are the processor's */
  const int64_t* workspaces; /* of the body */
  /* tw_device_move, in a library with devices */
  void (*move)(const tw_env* env, int32_t device, int64_t to, int64_t from, int64_t bytes,
               int32_t weights);
} tw_loop_desc;

int32_t tw_loop(const tw_env* around, const tw_loop_desc* d);
#endif
