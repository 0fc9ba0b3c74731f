/* A program forks while its threads create, run and destroy contexts of the fake model, or fail to
 * create them. Each child must do the same in time, with a context of its own, and run one made
 * before the fork. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/model.h"

/* The symbols that the packager's object defines in an artifact; the model's four weights are 0. */
__asm__(
    ".section .rodata\n.balign 8\n.globl tw_weights_offset\n.hidden tw_weights_offset\n"
    "tw_weights_offset: .quad no_weights - tw_weights_offset\nno_weights: .zero 16\n.previous\n");
const char tw_manifest[] = "{}";
const uint8_t tw_hashes[TW_HASHES_BYTES] = {0};
const tw_api* tw_fake_query(uint32_t version);

enum { kThreads = 2, kPool = 12, kRows = 40, kSeconds = 5 };
static _Atomic int over;

static tw_context* context_of(const tw_api* api, int32_t threads) {
  tw_options options;
  tw_context* context = 0;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.threads = threads;
  return api->create(&options, &context) == TW_OK ? context : 0;
}

static int run(const tw_api* api, tw_context* context) {
  float a[kRows * 4], b[kRows * 4], c[kRows * 2], y[kRows * 4];
  int64_t rows[2] = {kRows, 4}, twice[1] = {2 * kRows}, count = 0;
  for (int i = 0; i < 4 * kRows; ++i)
    a[i] = (float)i, b[i] = 3 * (float)i, c[i / 2] = (float)(i / 2), y[i] = -1;
  tw_tensor inputs[3] = {{a, sizeof a, TW_F32, 2, rows},
                         {b, sizeof b, TW_F32, 2, rows},
                         {c, sizeof c, TW_F32, 1, twice}};
  tw_tensor outputs[2] = {{y, sizeof y, TW_F32, 2, 0}, {&count, 8, TW_I64, 0, 0}};
  if (api->run(context, inputs, outputs) != TW_OK || count != kRows) return 1;
  for (int i = 0; i < 4 * kRows; ++i)
    if (y[i] != a[i] + b[i] + c[i / 4 * 2]) return 1;
  return 0;
}

static int work(const tw_api* api, int32_t threads) {
  tw_context* context = context_of(api, threads);
  int wrong = !context || run(api, context);
  wrong += context_of(api, -1) != 0 || !api->last_error(0); /* takes the lock of the error texts */
  api->destroy(context);
  return wrong;
}

static void* body(void* arg) {
  const tw_api* api = tw_fake_query(TW_ABI_VERSION);
  while (!over) work(api, kPool);
  return arg;
}

static int child_is_wrong(tw_context* from_before) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const tw_api* api = tw_fake_query(TW_ABI_VERSION);
    int wrong = from_before && run(api, from_before);
    for (int i = 0; i < 3; ++i) wrong += work(api, 2);
    api->destroy(from_before);
    _exit(wrong != 0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status != 0;
}

int main(int argc, char** argv) {
  const tw_api* api = tw_fake_query(TW_ABI_VERSION);
  pthread_t threads[kThreads];
  const int forks = argc > 1 ? atoi(argv[1]) : 100;
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], 0, body, 0);
  for (int i = 0; i < forks; ++i) { /* between the threads' contexts the pool comes and goes */
    tw_context* from_before = i % 4 == 0 ? context_of(api, 3) : 0;
    wrong += child_is_wrong(from_before);
    api->destroy(from_before);
  }
  over = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
