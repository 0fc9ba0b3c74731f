/* Runs a freestanding object. */
#include "core.h"
#include "../own_weights.h"
#include "../text.h"

/* 1: no pointer is null, and each is aligned to its tensor's elements. */
static int32_t pointers_are_sound(const void* const* pointers, int32_t count,
                                  const uint8_t* alignments) {
  if (!pointers && count) return 0;
  for (int32_t i = 0; i < count; ++i)
    if (!pointers[i] || (uintptr_t)pointers[i] & (uintptr_t)(alignments[i] - 1)) return 0;
  return 1;
}

static int32_t sizes_fit(const int64_t* symbols) {
  for (int32_t s = 0; s < tw_core.symbol_count; ++s)
    if (symbols[s] < tw_core.symbol_limits[2 * s] || symbols[s] > tw_core.symbol_limits[2 * s + 1])
      return 0;
  return !tw_core.misfit || !tw_core.misfit(symbols);
}

static const uint32_t kGoing = TW_RUN_GOING; /* nobody cancels such a run */

int32_t tw_compute(const void* const* inputs, void* const* outputs, const int64_t* symbols,
                   void* arena, size_t arena_bytes) {
  char nothing[1]; /* the operators' error texts are dropped; the caller gets the status only */
  tw_text error = {nothing, 0, sizeof nothing};
  tw_env env;
  if (!symbols && tw_core.symbol_count) return TW_E_ARGUMENT;
  if (!pointers_are_sound(inputs, tw_core.input_count, tw_core.alignments) ||
      !pointers_are_sound((const void* const*)outputs, tw_core.output_count,
                          tw_core.alignments + tw_core.input_count))
    return TW_E_ARGUMENT;
  if (!sizes_fit(symbols)) return TW_E_SHAPE;
  if (tw_core.arena_bytes(symbols) > arena_bytes) return TW_E_SIZE;
  if ((uintptr_t)arena & 63) return TW_E_ARGUMENT;
  memset(&env, 0, sizeof env);
  env.inputs = (void* const*)inputs;
  env.outputs = outputs;
  env.arena = arena;
  env.weights = tw_own_weights();
  env.symbols = symbols;
  env.threads = 1;
  env.state = &kGoing;
  env.error = &error;
  return tw_core.program(&env);
}
