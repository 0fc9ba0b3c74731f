/* The code that a backend would emit for a small model, in C: y[n,4] = a[n,4] + b[n,4] + weight[4]
 * + every second element of c[2n], count = n. CMake compiles it for each triple, with several
 * values of NAME and FEATURES. */
#include "runtime/model.h"
#ifndef FEATURES
#define FEATURES ""
#endif
#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static const int64_t kRows[] = {-1, 4}, kTwice[] = {TW_DIM_COMPUTED};
static const char* const kSymbols[] = {"n"};
static const tw_tensor_info kInputs[] = {
    {"a", TW_F32, 2, kRows}, {"b", TW_F32, 2, kRows}, {"c", TW_F32, 1, kTwice}};
static const tw_tensor_info kOutputs[] = {{"y", TW_F32, 2, kRows}, {"count", TW_I64, 0, 0}};

static void add_row(void* arg, int32_t part, int32_t r) {
  (void)part;
  const tw_env* env = arg;
  const float *a = env->inputs[0], *b = env->inputs[1];
  for (int i = 0; i < 4; ++i) ((float*)env->arena)[4 * r + i] = a[4 * r + i] + b[4 * r + i];
}
static void nested_row(void* arg, int32_t part, int32_t i) {
  (void)part;
  float* row = arg;
  row[i] += 0.0f;
}
static void weigh_row(void* arg, int32_t part, int32_t r) {
  (void)part;
  const tw_env* env = arg;
  const float* c = env->inputs[2];
  float* y = (float*)env->outputs[0] + 4 * r;
  for (int i = 0; i < 4; ++i)
    y[i] = ((float*)env->arena)[4 * r + i] + ((const float*)env->weights)[i] + c[2 * r];
  tw_parallel_for(env, nested_row, y, 4, 4);
}
static const int64_t kLimits[] = {1, INT64_MAX};
static int32_t program(const tw_env* env) {
  int32_t n = (int32_t)env->symbols[0];
  uint64_t start = env->call_ns ? tw_clock_ns() : 0;
  tw_parallel_for(env, add_row, (void*)env, n, n);
  uint64_t between = env->call_ns ? tw_clock_ns() : 0;
  if (env->call_ns) tw_called(env, 0, start, between);
  tw_parallel_for(env, weigh_row, (void*)env, n, n);
  if (env->call_ns) tw_called(env, 1, between, tw_clock_ns());
  *(int64_t*)env->outputs[1] = n;
  return TW_OK;
}
static uint64_t arena_bytes(const int64_t* symbols) {
  return symbols[0] > INT64_MAX / 16 - 63 ? UINT64_MAX
                                          : ((uint64_t)symbols[0] * 16 + 63) & ~(uint64_t)63;
}
static const char* misfit(const int64_t* symbols) {
  return symbols[0] == 1013 ? "it has 1013 rows" : 0;
}
static void output_dims(int32_t i, const int64_t* symbols, int64_t* dims) {
  if (i == 0) dims[0] = symbols[0], dims[1] = 4;
}
static void input_dims(int32_t i, const int64_t* symbols, int64_t* dims) {
  dims[0] = i == 2 ? 2 * symbols[0] : symbols[0];
  if (i != 2) dims[1] = 4;
}
static const tw_model_desc model = {TEXT(NAME), "a-target", tw_manifest, 3,           2,
                                    1,          2,          kInputs,     kOutputs,    kSymbols,
                                    16,         FEATURES,   program,     arena_bytes, output_dims,
                                    input_dims, 0,          0,           0,           0,
                                    0,          kLimits,    output_dims, misfit,      0};
__attribute__((visibility("hidden"))) const tw_model_desc* const tw_models[] = {&model, 0};
__attribute__((visibility("default"))) const tw_api* JOIN(tw_, NAME, _query)(uint32_t version) {
  return tw_serve(version);
}
__attribute__((visibility("default"))) const tw_api* tw_query(uint32_t version) {
  return tw_serve(version);
}
