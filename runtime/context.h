/* A context: one mapping that holds this struct and its arrays; the arena is a mapping of its own
 * or the caller's. */
#ifndef TW_CONTEXT_H
#define TW_CONTEXT_H
#include "device/device.h"
#include "model.h"
#include "ops/ops.h"
#include "pool.h"
#include "text.h"

typedef struct tw_growable {
  void* data;
  uint64_t mapped;
} tw_growable;

typedef struct tw_views tw_views; /* views.c */

struct tw_context {
  tw_team team;
  _Atomic uint32_t running;
  int32_t arena_owned;
  const uint8_t* weights; /* NULL: not there yet */
  uint8_t* arena;
  uint64_t arena_bytes;
  uint64_t mapped_bytes; /* of the context itself */
  void** inputs;         /* pointers of the current run */
  void** outputs;
  int64_t* symbols;       /* values of the current run: the model's, then those made from data */
  tw_growable* growable;  /* then those of the outputs */
  tw_profiler profiler;   /* of every run; on_call is NULL: nobody */
  uint64_t* call_ns;      /* of the profiler's runs */
  tw_views* views;        /* NULL: no run had any */
  const tw_tensor* given; /* outputs of the current run */
  int32_t has_run;        /* and so output_of_run has an answer */
  int64_t* dims;          /* memory for the longest shape */
  tw_device* devices;
  uint64_t runs;      /* begun so far */
  tw_strings strings; /* that the last run made */
  tw_text error;
  char error_data[256];
};

void tw_strings_free(tw_strings* s, int32_t all); /* for the next run, or for ever */

/* Both fill the context's pointers; the first binds the symbols, which the second needs. Errors
 * leave a text. */
int tw_symbol_fits(int32_t symbol, int64_t value);
/* "at least 1 (batch)"; where that refuses 0, how it is allowed */
void tw_add_limits(tw_text* t, int32_t symbol, int64_t got);
tw_status tw_verify_sizes(tw_text* error,
                          const int64_t* symbols); /* conditions of the model; bound symbols */
tw_status tw_verify_inputs(tw_context* c, const tw_tensor* inputs);
tw_status tw_verify_outputs(tw_context* c, const tw_tensor* outputs);
#endif
