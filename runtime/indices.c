/* Checks sizes and indices that a run brings, before a kernel uses them to read. Libraries share
 * this with freestanding objects, which have no context. */
#include "model.h"
#include "text.h"

static int64_t element_at(const void* elements, int32_t width, int64_t i) {
  switch (width) {
    case 1: return ((const uint8_t*)elements)[i];
    case 4: return ((const int32_t*)elements)[i];
    default: return ((const int64_t*)elements)[i];
  }
}

int32_t tw_require(const tw_env* env, int32_t holds, int64_t left, int64_t right,
                   const char* what) {
  if (holds) return TW_OK;
  text_clear(env->error);
  text_add(env->error, "the sizes made from data do not fit: ");
  text_add(env->error, what);
  if (left != right) {
    text_add(env->error, ": ");
    text_add_number(env->error, left);
    text_add(env->error, " against ");
    text_add_number(env->error, right);
  }
  return TW_E_SHAPE;
}

int32_t tw_look(const tw_env* env, const void* elements, int32_t width, int64_t bytes,
                int64_t least, int64_t most, const char* what) {
  const int64_t count = bytes / width;
  int64_t low = most, high = least;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = element_at(elements, width, i);
    low = element < low ? element : low;
    high = element > high ? element : high;
  }
  if (count <= 0 || (low >= least && high <= most)) return TW_OK;
  tw_text* error = env->error;
  text_clear(error);
  text_add(error, what);
  if (width == 1) return TW_E_ARGUMENT;
  text_add(error, " ");
  text_add_number(error, high > most ? high : low);
  text_add(error, ", expected ");
  text_add_number(error, least);
  text_add(error, " to ");
  text_add_number(error, most);
  return TW_E_ARGUMENT;
}
