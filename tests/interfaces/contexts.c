/* contexts LIBRARY: 16 threads make 1,000 contexts of a model with one f32 input and output of
 * fixed shapes, all alive at the same time. All must give the same bytes. Built with the thread
 * sanitizer. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tilewright.h"

enum { kThreads = 16, kContexts = 1000 };
static const tw_api* api;
static size_t input_count, output_count;
static float *input, *expected;
static pthread_barrier_t all_made;
static _Atomic int wrong;

static size_t elements(const tw_tensor_info* info) {
  size_t n = 1;
  for (int32_t d = 0; d < info->rank; ++d) n *= (size_t)info->dims[d];
  return n;
}

static int run(tw_context* context, float* output) {
  const tw_tensor in = {input, input_count * 4, TW_F32, api->inputs[0].rank, api->inputs[0].dims};
  const tw_tensor out = {output, output_count * 4, TW_F32, api->outputs[0].rank, NULL};
  return api->run(context, &in, &out) != TW_OK;
}

static tw_context* make(int32_t threads) {
  tw_options options;
  tw_context* context = NULL;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.threads = threads;
  if (api->create(&options, &context) != TW_OK) ++wrong;
  return context;
}

static void* body(void* arg) {
  const int first = *(const int*)arg;
  tw_context* contexts[kContexts / kThreads + 1];
  float* output = malloc(output_count * 4);
  int count = 0;
  for (int i = first; i < kContexts; i += kThreads) contexts[count++] = make(i % 2);
  pthread_barrier_wait(&all_made);
  for (int i = 0; i < count; ++i) {
    memset(output, 255, output_count * 4);
    if (!contexts[i] || run(contexts[i], output) || memcmp(output, expected, output_count * 4))
      ++wrong;
  }
  for (int i = 0; i < count; ++i) api->destroy(contexts[i]);
  free(output);
  return NULL;
}

int main(int count, char** arguments) {
  void* library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  const tw_query_fn query = library ? (tw_query_fn)dlsym(library, TW_QUERY_SYMBOL) : NULL;
  pthread_t threads[kThreads];
  int indices[kThreads];
  if (!query || !(api = query(TW_ABI_VERSION))) return 2;
  input_count = elements(&api->inputs[0]), output_count = elements(&api->outputs[0]);
  input = malloc(input_count * 4), expected = malloc(output_count * 4);
  for (size_t i = 0; i < input_count; ++i) input[i] = (float)(i * 37 % 101) / 7.0f;
  tw_context* alone = make(1);
  if (run(alone, expected)) return 3;
  api->destroy(alone);
  pthread_barrier_init(&all_made, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    indices[i] = i;
    if (pthread_create(&threads[i], NULL, body, &indices[i])) return 4;
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  free(input);
  free(expected);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
