/* Sizes that are computed while the model runs, and the memory that they ask for. Only models with
 * such sizes call these functions. */
#include "context.h"

int32_t tw_symbol(const tw_env* env, int64_t* place, int64_t value, int64_t most, int64_t exact,
                  const char* what) {
  tw_context* c = env->context;
  *place = value;
  if (value >= 0 && value <= most && (exact < 0 || value == exact)) return TW_OK;
  text_clear(&c->error);
  text_add(&c->error, what);
  text_add(&c->error, " is ");
  text_add_number(&c->error, value);
  text_add(&c->error, ", expected ");
  text_add_number(&c->error, exact < 0 ? 0 : exact);
  if (exact < 0 && most == INT64_MAX) text_add(&c->error, " or more");
  if (exact < 0 && most != INT64_MAX) {
    text_add(&c->error, " to ");
    text_add_number(&c->error, most);
  }
  return TW_E_SHAPE;
}

/* Reports that the caller's memory for an output is too small. */
static int32_t too_small(tw_context* c, int32_t output, int64_t bytes) {
  text_clear(&c->error);
  text_add(&c->error, "output ");
  text_add_number(&c->error, output);
  text_add(&c->error, " (");
  text_add(&c->error, tw_model->outputs[output].name);
  text_add(&c->error, "): buffer size in bytes is ");
  text_add_number(&c->error, (int64_t)c->given[output].bytes);
  text_add(&c->error, ", this run needs ");
  text_add_number(&c->error, bytes);
  return TW_E_SIZE;
}

/* Gives a growable buffer at least `bytes`. Its old contents are lost when it grows. */
static void* grown_to(tw_growable* buffer, int64_t bytes) {
  static char nothing;
  if (bytes < 0) return 0;
  if (bytes == 0) return &nothing;
  if ((uint64_t)bytes <= buffer->mapped) return buffer->data;
  const uint64_t mapped = (uint64_t)bytes + (uint64_t)bytes / 4 +
                          4096; /* room to spare, so that slowly growing sizes map seldom */
  if (buffer->mapped) munmap(buffer->data, (size_t)buffer->mapped);
  buffer->data = tw_map(mapped);
  buffer->mapped = buffer->data ? mapped : 0;
  return buffer->data;
}

int32_t tw_grow(const tw_env* env, int32_t index, int64_t bytes, void** memory) {
  tw_context* c = env->context;
  const int32_t output = index - tw_model->growable_count;
  const tw_tensor* given = output >= 0 ? &c->given[output] : 0;
  if (given && given->data && bytes >= 0) {
    if (given->bytes < (uint64_t)bytes) return too_small(c, output, bytes);
    *memory = given->data;
  } else {
    *memory = grown_to(&c->growable[index], bytes);
  }
  if (!*memory) {
    text_clear(&c->error);
    text_add(&c->error, bytes < 0 ? "a tensor has more bytes than can be counted"
                                  : "no memory for a tensor of ");
    if (bytes < 0) return TW_E_SHAPE;
    text_add_number(&c->error, bytes);
    text_add(&c->error, " bytes");
    return TW_E_MEMORY;
  }
  if (output >= 0) c->outputs[output] = *memory;
  return TW_OK;
}
