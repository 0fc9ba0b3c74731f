/* The interface between generated code and the runtime in freestanding objects, besides tw_env and
 * the functions of model.h that need no operating system. The backend builds one constant `tw_core`
 * and the exported tw_<name>_compute, which passes its arguments to tw_compute. */
#ifndef TW_CORE_H
#define TW_CORE_H
#include "../model.h"

typedef struct tw_core_desc {
  int32_t input_count, output_count, symbol_count;
  const uint8_t* alignments;    /* element sizes of the inputs, then of the outputs */
  const int64_t* symbol_limits; /* smallest and largest value of each symbol */
  int32_t (*program)(const tw_env* env);
  uint64_t (*arena_bytes)(const int64_t* symbols);
  const char* (*misfit)(const int64_t* symbols); /* see tw_model_desc */
} tw_core_desc;

extern const tw_core_desc tw_core __attribute__((visibility("hidden")));

/* The body of tw_<name>_compute: one run, on the caller's thread, stack and arena. */
int32_t tw_compute(const void* const* inputs, void* const* outputs, const int64_t* symbols,
                   void* arena, size_t arena_bytes);
#endif
