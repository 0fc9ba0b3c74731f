/* Runs on a CUDA device: copies and launches, in order on one stream. */
#include "cuda.h"

static tw_status cuda_reserve(tw_device* d, uint64_t bytes) {
  cu_state* s = d->state;
  cu_code code = 0;
  tw_status status = cuda_enter(d);
  if (status != TW_OK) return status;
  cuda_forget(s); /* graphs contain addresses of the old arena */
  cuda_forget_chains(s);
  if (s->arena) code = s->f.wait(s->stream);
  if (s->arena && !code) code = s->f.free(s->arena);
  s->arena = 0;
  if (!code) code = s->f.allocate(&s->arena, (size_t)bytes);
  cuda_leave(d);
  return code ? cuda_failed(d, "no memory for the arena", "", code) : TW_OK;
}

static tw_status cuda_write(tw_device* d, int64_t at, const void* from, int64_t bytes) {
  cu_state* s = d->state;
  tw_status status = cuda_enter_in_order(d);
  if (status != TW_OK) return status;
  s->inside = 0;
  cu_code code = s->f.write(s->arena + (uint64_t)at, from, (size_t)bytes, s->stream);
  cuda_leave(d);
  return code ? cuda_failed(d, "a copy to the device failed", "", code) : TW_OK;
}

static tw_status cuda_read(tw_device* d, int64_t at, void* to, int64_t bytes) {
  cu_state* s = d->state;
  tw_status status = cuda_enter_in_order(d);
  if (status != TW_OK) return status;
  s->inside = 0;
  cu_code code = s->f.read(to, s->arena + (uint64_t)at, (size_t)bytes, s->stream);
  cuda_leave(d);
  return code ? cuda_failed(d, "a copy from the device failed", "", code) : TW_OK;
}

static tw_status cuda_copy(tw_device* d, int64_t at, void* memory, int64_t offset, int64_t bytes,
                           int32_t out) {
  cu_state* s = d->state;
  const cu_address there = (cu_address)(uintptr_t)memory + (uint64_t)offset,
                   here = s->arena + (uint64_t)at;
  tw_status status = cuda_enter_in_order(d);
  if (status != TW_OK) return status;
  s->inside = 0;
  cu_code code = s->f.copy(out ? there : here, out ? here : there, (size_t)bytes, s->stream);
  cuda_leave(d);
  return code ? cuda_failed(d, "a copy of the caller's memory failed", "", code) : TW_OK;
}

static tw_status cuda_move(tw_device* d, int64_t to, int64_t from, int64_t bytes, int32_t weights) {
  cu_state* s = d->state;
  tw_status status = cuda_enter_in_order(d);
  if (status != TW_OK) return status;
  s->inside = 0;
  cu_code code = s->f.copy(s->arena + (uint64_t)to,
                           (weights ? s->weights : s->arena) + (uint64_t)from, (size_t)bytes,
                           s->stream);
  cuda_leave(d);
  return code ? cuda_failed(d, "a copy within the device failed", "", code) : TW_OK;
}

static tw_status cuda_do_launch(tw_device* d, const cu_launch* l, const char* name) {
  cu_state* s = d->state;
  tw_status status = TW_OK;
  cu_code code = 0;
  if (s->mode == kCuReplay) {
    code = s->f.replay(s->segments[s->next++].executable, s->stream);
    return code ? cuda_failed(d, "cannot replay from ", name, code) : TW_OK;
  }
  code = s->f.launch(l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                     l->block[2], 0, s->stream, l->parameters, 0);
  if (code) status = cuda_failed(d, "cannot launch ", name, code);
  else if (s->mode == kCuRecord) status = cuda_record(d, l);
  return status;
}

static tw_status cuda_launch(tw_device* d, int32_t index, const int64_t* arguments) {
  cu_state* s = d->state;
  const tw_launch_desc* desc = &d->desc->launches[index];
  if (arguments[0] == 0 || arguments[1] == 0 || arguments[2] == 0) return TW_OK;
  if (d->apart || d->in_region) s->inside = 0; /* in every run alike, whatever its regions do */
  d->apart = 0;
  if (s->mode == kCuReplay && s->inside) return TW_OK; /* the segment contains this launch */
  uint64_t values[kCuMostArguments];
  void* parameters[kCuMostArguments + 1];
  cu_launch launch = {.function = s->functions[index], .parameters = parameters};
  for (int i = 0; i < 3; ++i)
    launch.grid[i] = (uint32_t)arguments[i], launch.block[i] = (uint32_t)arguments[3 + i];
  const int64_t* next = arguments + 6;
  int32_t count = 0;
  for (int32_t b = 0; b < desc->buffer_count; ++b, next += 2)
    values[count++] = (next[0] ? s->weights : s->arena) + (uint64_t)next[1];
  for (int32_t n = 0; n < desc->symbol_count; ++n) values[count++] = (uint64_t)*next++;
  for (int32_t i = 0; i < count; ++i) parameters[i] = &values[i];
  parameters[count] = 0;
  if (d->in_region && s->mode != kCuPlain)
    return cuda_add_waiting(d, index, &launch, values, (uint64_t)count);
  tw_status status = cuda_enter_in_order(d);
  if (status != TW_OK) return status;
  status = cuda_do_launch(d, &launch, desc->function);
  s->inside = 1;
  cuda_leave(d);
  return status;
}

static tw_status cuda_wait(tw_device* d) {
  cu_state* s = d->state;
  tw_status status = cuda_enter(d);
  if (status != TW_OK) return status;
  status = cuda_launch_waiting(d);
  cu_code code = s->f.wait(s->stream); /* also after a failure, as no launch may go on */
  cuda_leave(d);
  return code ? cuda_failed(d, "the device failed", "", code) : status;
}

const tw_driver tw_cuda_driver = {.name = "cuda",
                                  .open = cuda_open,
                                  .close = cuda_close,
                                  .reserve = cuda_reserve,
                                  .write = cuda_write,
                                  .read = cuda_read,
                                  .launch = cuda_launch,
                                  .wait = cuda_wait,
                                  .move = cuda_move,
                                  .begin = cuda_begin,
                                  .copy = cuda_copy};
