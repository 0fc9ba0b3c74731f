/* Four threads create, run and destroy contexts of the fake model, which share one pool. Built with
 * the thread sanitizer. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/model.h"

/* The symbols that the packager's object defines in an artifact; the model's four weights are 0. */
__asm__(
    ".section .rodata\n.balign 8\n.globl tw_weights_offset\n.hidden tw_weights_offset\n"
    "tw_weights_offset: .quad no_weights - tw_weights_offset\nno_weights: .zero 16\n.previous\n");
const char tw_manifest[] = "{}";
const uint8_t tw_hashes[TW_HASHES_BYTES] = {0};
const tw_api* tw_fake_query(uint32_t version);

enum { kThreads = 4, kMost = 60 };
static _Atomic int wrong;

static int run(const tw_api* api, tw_context* context, int n, float seed) {
  float a[kMost * 4], b[kMost * 4], c[kMost * 2], y[kMost * 4];
  int64_t rows[2] = {n, 4}, twice[1] = {2 * n}, count = 0;
  for (int i = 0; i < 4 * n; ++i)
    a[i] = seed + (float)i, b[i] = 3 * (float)i, c[i / 2] = (float)(i / 2), y[i] = -1;
  uint64_t bytes = (uint64_t)n * 16;
  tw_tensor inputs[3] = {
      {a, bytes, TW_F32, 2, rows}, {b, bytes, TW_F32, 2, rows}, {c, bytes / 2, TW_F32, 1, twice}};
  tw_tensor outputs[2] = {{y, bytes, TW_F32, 2, 0}, {&count, 8, TW_I64, 0, 0}};
  if (api->run(context, inputs, outputs) != TW_OK || count != n) return 1;
  for (int i = 0; i < 4 * n; ++i)
    if (y[i] != a[i] + b[i] + c[i / 4 * 2]) return 1;
  return 0;
}

static void* body(void* arg) {
  const int index = *(const int*)arg;
  const tw_api* api = tw_fake_query(TW_ABI_VERSION);
  for (int round = 0; round < 15; ++round) {
    tw_options options;
    tw_context* context;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.threads = 2 + index;
    if (api->create(&options, &context) != TW_OK) {
      ++wrong;
      continue;
    }
    for (int i = 0; i < 30; ++i)
      wrong += run(api, context, 1 + (i * 37 + index) % kMost, (float)(index * 100));
    api->destroy(context);
  }
  return 0;
}

int main(void) {
  pthread_t threads[kThreads];
  int indices[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    indices[i] = i;
    pthread_create(&threads[i], 0, body, &indices[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
