/* The chunks of a part whose thread is held up are done by the other threads, but for the next one:
 * the thread that begins part `slow` waits in its first chunk until all others are done. The caller
 * waits in part 0 alone, since a worker that comes late does not help in parts that it has taken.
 * Prints what is wrong: chunks that did not run once, threads that ran as one part, or others that
 * did not help. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/model.h"
#include "runtime/pool.h"

__asm__(
    ".section .rodata\n.balign 8\n.globl tw_weights_offset\n.hidden tw_weights_offset\n"
    "tw_weights_offset: .quad no_weights - tw_weights_offset\nno_weights: .zero 16\n.previous\n");
const char tw_manifest[] = "{}";
const uint8_t tw_hashes[TW_HASHES_BYTES] = {0};

enum { kMostThreads = 8, kMostChunks = 96, kSeconds = 20 };
typedef struct loop {
  int parts, chunks, slow;
  _Atomic int held, done, wrong;
  _Atomic int runs[kMostChunks], inside[kMostThreads];
} loop;

static _Thread_local int is_caller;

static void chunk_of(void* arg, int32_t part, int32_t chunk) {
  loop* l = arg;
  if (part < 0 || part >= l->parts || l->inside[part]++) ++l->wrong;
  ++l->runs[chunk];
  if (part == l->slow && !l->held++ && is_caller == (part == 0)) {
    const time_t end = time(0) + kSeconds;
    while (l->done < l->chunks - 2 && time(0) < end) {}
    if (l->done < l->chunks - 2) ++l->wrong;
  }
  ++l->done;
  --l->inside[part];
}

static int wrong_in(const tw_env* env, int parts, int chunks, int slow) {
  loop l;
  memset(&l, 0, sizeof l);
  l.parts = parts, l.chunks = chunks, l.slow = slow;
  tw_parallel_for(env, chunk_of, &l, parts, chunks);
  int wrong = l.wrong;
  for (int i = 0; i < chunks; ++i) wrong += l.runs[i] != 1;
  return wrong;
}

int main(void) {
  int wrong = 0;
  is_caller = 1;
  for (int threads = 2; threads <= kMostThreads; threads += 3) {
    tw_team team;
    memset(&team, 0, sizeof team);
    tw_team_join(&team, threads);
    tw_env env;
    memset(&env, 0, sizeof env);
    env.pool = &team, env.threads = team.threads;
    if (team.threads != threads) ++wrong;
    tw_team_begin(&team);
    wrong += wrong_in(&env, threads, threads - 1, -1); /* fewer chunks than parts */
    for (int slow = -1; slow < threads; ++slow)
      for (int chunks = threads; chunks <= kMostChunks; chunks += 29)
        wrong += wrong_in(&env, threads, chunks, slow);
    tw_team_end(&team);
    tw_team_leave(&team);
  }
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
