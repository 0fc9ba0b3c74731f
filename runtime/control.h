/* A loop as generated code describes it. backends/llvm/emit_regions.cpp builds the struct field by
 * field. */
#ifndef TW_CONTROL_H
#define TW_CONTROL_H
#include "model.h"
#include "sys.h"

typedef struct tw_loop_desc {
  int32_t (*body)(const tw_env* env);
  int64_t trip;
  const void** inputs; /* inputs of the body: carried values, rows of sliced tensors, others */
  void** outputs;      /* outputs of the body: memory of the next condition, carried values, rows of
                          stacked results; tw_loop moves these pointers and those of the inputs */
  void* const* results;     /* memory where the carried values end */
  void* const* spare;       /* a second memory for each carried value */
  const int64_t* bytes;     /* bytes of each carried value before iteration 0, then of a row of each
                             sliced and each stacked tensor */
  const int64_t* growth;    /* bytes that each carried value grows by in an iteration */
  uint8_t* arena;           /* arena of the body */
  const int64_t* symbols;   /* symbols of the body */
  int64_t* iteration;       /* the symbol that counts the iterations, from 1; NULL: none */
  const uint8_t* condition; /* the first condition; NULL: always true */
  int64_t* count;           /* a result: the number of iterations; NULL: nobody asks */
  int32_t carried, sliced, stacked;
  const int32_t* places;     /* for each carried value 0, or 1 + a device: its addresses are offsets
                                in that device's arena; NULL: all are the processor's */
  const int64_t* workspaces; /* workspaces of the body */
  /* tw_device_move, in a library with devices */
  void (*move)(const tw_env* env, int32_t device, int64_t to, int64_t from, int64_t bytes,
               int32_t weights);
} tw_loop_desc;

int32_t tw_loop(const tw_env* around, const tw_loop_desc* d);
#endif
