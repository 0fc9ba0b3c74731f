/* Sizes and indices that a run brings, looked at before a kernel reads by them: of libraries and of
 * freestanding objects, which have no context. */
#include "model.h"
#include "text.h"

static int64_t signed_at(const void* indices, int32_t width, int64_t i) {
  return width == 4 ? ((const int32_t*)indices)[i] : ((const int64_t*)indices)[i];
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

int32_t tw_look_at_indices(const tw_env* env, const void* indices, int32_t width, int64_t bytes,
                           int64_t extent, const char* what) {
  const int64_t count = bytes / width;
  int64_t least = 0, most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = signed_at(indices, width, i);
    least = index < least ? index : least;
    most = index > most ? index : most;
  }
  if (count == 0 || (extent > 0 && least >= -extent && most < extent)) return TW_OK;
  tw_text* error = env->error;
  text_clear(error);
  text_add(error, what);
  text_add(error, ": index ");
  text_add_number(error, most >= extent ? most : least);
  text_add(error, " of an extent of ");
  text_add_number(error, extent);
  return TW_E_ARGUMENT;
}
