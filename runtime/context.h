/* A context is one mapping that holds this struct and its arrays. The arena is another mapping, or
 * the caller's memory. */
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
  const uint8_t* weights; /* NULL: not loaded yet */
  uint8_t* arena;
  uint64_t arena_bytes;
  uint64_t mapped_bytes; /* bytes of the context itself */
  void** inputs;         /* pointers of the current run */
  void** outputs;
  int64_t* symbols; /* values of the current run: the model's symbols, then those made from data */
  tw_growable* growable;  /* the model's growable buffers, then the outputs' */
  tw_profiler profiler;   /* called in every run; on_call is NULL: nobody listens */
  uint64_t* call_ns;      /* times of the calls, for runs with the profiler */
  tw_views* views;        /* NULL: no run had views */
  const tw_tensor* given; /* outputs of the current run */
  int32_t has_run;        /* output_of_run has an answer */
  int64_t* dims;          /* memory for the longest shape */
  tw_device* devices;
  uint64_t runs;      /* runs begun so far */
  tw_strings strings; /* strings that the last run made */
  tw_text error;
  char error_data[256];
};

void tw_strings_free(tw_strings* s, int32_t all); /* keeps a block for the next run, or frees all */

/* The verify functions fill the context's pointers. Inputs come first: they bind the symbols, which
 * outputs need. Errors leave a text. */
int tw_symbol_fits(int32_t symbol, int64_t value);
/* Adds a text like "at least 1 (batch)". Where the limits refuse 0, the text says how to allow
 * it. */
void tw_add_limits(tw_text* t, int32_t symbol, int64_t got);
tw_status tw_verify_sizes(tw_text* error,
                          const int64_t* symbols); /* the model's conditions, on bound symbols */
tw_status tw_verify_inputs(tw_context* c, const tw_tensor* inputs);
tw_status tw_verify_outputs(tw_context* c, const tw_tensor* outputs);
#endif
