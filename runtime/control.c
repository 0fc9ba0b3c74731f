/* Runs the loops of a model's regions. Only libraries whose model has loops contain this. */
#include "control.h"

int32_t tw_loop(const tw_env* around, const tw_loop_desc* d) {
  tw_env env = *around;
  const void** inputs = d->inputs;
  void** outputs = d->outputs;
  int32_t first = d->condition ? 1 : 0;
  int64_t iteration = 0;
  env.inputs = (void* const*)inputs;
  env.outputs = outputs;
  env.arena = d->arena;
  env.symbols = d->symbols;
  env.workspaces = d->workspaces;
  env.call_ns = 0;
  for (int32_t i = 0; i < d->carried; ++i) outputs[first + i] = d->results[i];
  const uint8_t* going = d->condition;
  for (; iteration < d->trip && (!going || *going); ++iteration) {
    if (d->iteration) *d->iteration = iteration + 1;
    int32_t status = d->body(&env);
    if (status != TW_OK) return status;
    if (going) going = outputs[0];
    for (int32_t i = 0; i < d->carried;
         ++i) { /* the value just made is read next, and the value just read is overwritten */
      inputs[i] = outputs[first + i];
      outputs[first + i] = inputs[i] == d->results[i] ? d->spare[i] : d->results[i];
    }
    for (int32_t i = d->carried; i < d->carried + d->sliced; ++i)
      inputs[i] = (const uint8_t*)inputs[i] + d->bytes[i];
    for (int32_t i = 0; i < d->stacked; ++i)
      outputs[first + d->carried + i] = (uint8_t*)outputs[first + d->carried + i] +
                                        d->bytes[d->carried + d->sliced + i];
  }
  for (int32_t i = 0; i < d->carried; ++i) {
    const int64_t bytes = d->bytes[i] + iteration * d->growth[i];
    if (inputs[i] == d->results[i]) continue;
    if (d->places && d->places[i])
      d->move(around, d->places[i] - 1, (int64_t)(uintptr_t)d->results[i],
              (int64_t)(uintptr_t)inputs[i], bytes, 0);
    else memcpy(d->results[i], inputs[i], (size_t)bytes);
  }
  if (d->count) *d->count = iteration;
  return TW_OK;
}
