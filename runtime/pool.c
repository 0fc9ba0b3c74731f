/* Thread pool. A run holds a lane from its beginning to its end; where kLanes runs hold all of
 * them, the loops of a further run are plain. A parallel_for splits its count into equal chunks,
 * publishes a bit for each chunk in its lane and bumps the pool's epoch. Workers claim bits. Each
 * worker tries its own bit first, so that it meets the same chunk call after call. The caller runs
 * chunk 0, then claims the chunks that no worker has taken, and waits for the rest. So contexts
 * that run at the same time split the workers between them, a missing worker costs time and never
 * an answer, and no lock is taken on the way. A claimed bit keeps the caller inside the call until
 * the chunk is done, so everything that the claimer reads belongs to that call. */
#include "pool.h"

#ifndef TW_SPINS /* the tests set few, to reach the waits in the kernel */
#define TW_SPINS 20000
#endif
enum {
  kMaxThreads = 64,
  kLanes = 64,
  kSpins = TW_SPINS,
  kRunSpins = 50 * TW_SPINS
}; /* turns of a spin loop before a wait in the kernel, outside of runs and within */

typedef struct tw_lane {
  _Alignas(64) void (*fn)(void* arg, int32_t index); /* written before `open`, read after a claim */
  void* arg;
  int32_t count, chunks;
  _Alignas(64) _Atomic uint64_t open; /* bit c: chunk c waits for a thread */
  _Alignas(64) _Atomic uint32_t left; /* chunks other than 0 that are not done */
  _Atomic uint32_t waiting;           /* 1: the caller sleeps on `left` */
} tw_lane;

typedef struct tw_worker {
  struct tw_pool* pool;
  uint32_t chunk; /* the chunk that it claims first: 1 + its index */
  tw_thread thread;
} tw_worker;

typedef struct tw_pool {
  tw_lane lanes[kLanes];
  _Alignas(64) _Atomic uint32_t epoch;    /* bumped by every parallel_for; idle workers watch it */
  _Alignas(64) _Atomic uint32_t sleepers; /* workers that wait in the kernel */
  _Atomic uint32_t runs; /* runs in progress: workers stay awake for their next parallel loop */
  _Alignas(64) _Atomic uint64_t taken; /* bit l: a run holds lane l */
  _Atomic uint32_t stop;
  int64_t contexts, wanted; /* wanted: sum of the workers that the contexts ask for */
  int32_t worker_count;
  long process; /* owner of the workers: a forked child has the memory but not the threads */
  tw_worker workers[kMaxThreads - 1];
} tw_pool;

static _Atomic uint32_t g_lock; /* guards g_pool; never taken on the run path */
static tw_pool* g_pool;

static void run_chunk(const tw_lane* lane, int32_t chunk) {
  int32_t each = lane->count / lane->chunks, rest = lane->count % lane->chunks;
  int32_t from = chunk * each + (chunk < rest ? chunk : rest);
  int32_t to = from + each + (chunk < rest);
  for (int32_t i = from; i < to; ++i) lane->fn(lane->arg, i);
}

/* Claims and runs open chunks, `first` before others, until none is open. */
static void run_open_chunks(tw_lane* lane, uint32_t first) {
  uint64_t open;
  while ((open = TW_LOAD(&lane->open, ACQUIRE)) != 0) {
    uint64_t bit = open & (uint64_t)1 << first;
    if (!bit) bit = open & (0 - open);
    if (!(TW_AND(&lane->open, ~bit, ACQ_REL) & bit)) continue;
    run_chunk(lane, __builtin_ctzll(bit));
    if (TW_SUB(&lane->left, 1, SEQ_CST) == 1 && TW_LOAD(&lane->waiting, SEQ_CST))
      tw_futex_wake(&lane->left, 1);
  }
}

static uint32_t await_epoch(tw_pool* pool, uint32_t seen) {
  uint32_t now;
  for (int32_t spin = 0; spin < kSpins || (spin < kRunSpins && TW_LOAD(&pool->runs, RELAXED));
       ++spin) {
    if ((now = TW_LOAD(&pool->epoch, ACQUIRE)) != seen) return now;
    tw_relax();
  }
  TW_ADD(&pool->sleepers, 1, SEQ_CST);
  while ((now = TW_LOAD(&pool->epoch, SEQ_CST)) == seen) tw_futex_wait(&pool->epoch, seen);
  TW_SUB(&pool->sleepers, 1, RELAXED);
  return now;
}

static void* worker_body(void* arg) {
  tw_worker* self = arg;
  tw_pool* pool = self->pool;
  uint32_t epoch = TW_LOAD(&pool->epoch, ACQUIRE);
  while (!TW_LOAD(&pool->stop, ACQUIRE)) {
    for (uint64_t taken = TW_LOAD(&pool->taken, ACQUIRE); taken; taken &= taken - 1)
      run_open_chunks(&pool->lanes[__builtin_ctzll(taken)], self->chunk);
    epoch = await_epoch(pool, epoch);
  }
  return 0;
}

static void await_chunks(tw_lane* lane) {
  for (int32_t spin = 0; spin < kSpins; ++spin) {
    if (TW_LOAD(&lane->left, ACQUIRE) == 0) return;
    tw_relax();
  }
  TW_STORE(&lane->waiting, 1, SEQ_CST);
  uint32_t left;
  while ((left = TW_LOAD(&lane->left, SEQ_CST)) != 0) tw_futex_wait(&lane->left, left);
  TW_STORE(&lane->waiting, 0, RELAXED);
}

/* Announces work: spinning workers see the epoch move, sleeping ones are woken. */
static void rouse(tw_pool* pool, int32_t workers) {
  TW_ADD(&pool->epoch, 1, SEQ_CST);
  if (TW_LOAD(&pool->sleepers, SEQ_CST)) tw_futex_wake(&pool->epoch, workers);
}

static tw_lane* take_lane(tw_pool* pool) {
  uint64_t taken = TW_LOAD(&pool->taken, RELAXED);
  while (~taken) {
    const uint64_t free = ~taken & (taken + 1);
    if (__c11_atomic_compare_exchange_weak(&pool->taken, &taken, taken | free, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED))
      return &pool->lanes[__builtin_ctzll(free)];
  }
  return 0;
}

void tw_team_begin(tw_team* team) {
  if (!team->pool || !(team->lane = take_lane(team->pool))) return;
  TW_ADD(&team->pool->runs, 1, SEQ_CST);
  if (TW_LOAD(&team->pool->sleepers, SEQ_CST)) rouse(team->pool, team->threads - 1);
}

void tw_team_end(tw_team* team) {
  if (!team->lane) return;
  TW_AND(&team->pool->taken, ~((uint64_t)1 << (team->lane - team->pool->lanes)), RELEASE);
  team->lane = 0;
  TW_SUB(&team->pool->runs, 1, RELAXED);
}

void tw_parallel_for(const tw_env* env, void (*fn)(void* arg, int32_t index), void* arg,
                     int32_t count) {
  tw_team* team = env->pool;
  if (count <= 1 || !team || team->threads <= 1 || team->busy ||
      (!team->lane && !team->user.parallel_for)) {
    for (int32_t i = 0; i < count; ++i) fn(arg, i);
    return;
  }
  team->busy = 1;
  if (team->user.parallel_for) {
    team->user.parallel_for(team->user.pool, fn, arg, count);
  } else {
    tw_lane* lane = team->lane;
    int32_t chunks = count < team->threads ? count : team->threads;
    lane->fn = fn;
    lane->arg = arg;
    lane->count = count;
    lane->chunks = chunks;
    TW_STORE(&lane->left, (uint32_t)chunks - 1, RELAXED);
    TW_STORE(&lane->open, (~(uint64_t)0 >> (64 - chunks)) & ~(uint64_t)1, RELEASE);
    rouse(team->pool, chunks - 1);
    run_chunk(lane, 0);
    run_open_chunks(lane, 1);
    await_chunks(lane);
  }
  team->busy = 0;
}

/* Starts workers until there are `wanted`. They block all signals except those for faults, those
 * that profilers use, and the C library's own. */
static void grow(tw_pool* pool, int32_t wanted) {
  const uint64_t kept = 1ull << 3 | 1ull << 4 | 1ull << 5 | 1ull << 6 | 1ull << 7 | 1ull << 10 |
                        1ull << 26 | 1ull << 30 | 7ull << 31;
  uint64_t mask = ~kept, old = 0;
  if (!pthread_create || !pthread_join || pool->worker_count >= wanted) return;
  syscall(SYS_rt_sigprocmask, 0L /* SIG_BLOCK */, &mask, &old, 8L);
  while (pool->worker_count < wanted) {
    tw_worker* worker = &pool->workers[pool->worker_count];
    worker->pool = pool;
    worker->chunk = (uint32_t)pool->worker_count + 1;
    if (pthread_create(&worker->thread, 0, worker_body, worker)) break;
    ++pool->worker_count;
  }
  syscall(SYS_rt_sigprocmask, 2L /* SIG_SETMASK */, &old, (void*)0, 8L);
}

void tw_team_join(tw_team* team, int32_t threads) {
  if (threads > kMaxThreads) threads = kMaxThreads;
  team->threads = 1;
  team->pool = 0;
  if (threads <= 1) return;
  int32_t spare = tw_usable_cpus() - 1;
  tw_lock(&g_lock);
  if (g_pool && g_pool->process != syscall(SYS_getpid))
    g_pool = 0; /* after a fork: the parent's pool stays untouched */
  tw_pool* pool = g_pool;
  if (!pool && (pool = tw_map(sizeof *pool)) != 0) {
    pool->process = syscall(SYS_getpid);
    g_pool = pool;
  }
  if (pool) {
    int64_t wanted = pool->wanted + threads - 1;
    if (wanted > spare) wanted = spare; /* contexts that run together share the CPUs */
    if (wanted < threads - 1) wanted = threads - 1;
    if (wanted > kMaxThreads - 1) wanted = kMaxThreads - 1;
    grow(pool, (int32_t)wanted);
    if (threads > pool->worker_count + 1) threads = pool->worker_count + 1;
    team->threads = threads;
    team->pool = pool;
    pool->wanted += threads - 1;
    ++pool->contexts;
  }
  tw_unlock(&g_lock);
}

void tw_team_leave(tw_team* team) {
  tw_pool* pool = team->pool;
  if (!pool || pool->process != syscall(SYS_getpid)) return;
  tw_lock(&g_lock);
  pool->wanted -= team->threads - 1;
  if (--pool->contexts == 0) {
    TW_STORE(&pool->stop, 1, RELEASE);
    rouse(pool, INT32_MAX);
    for (int32_t i = 0; i < pool->worker_count; ++i) pthread_join(pool->workers[i].thread, 0);
    g_pool = 0;
    munmap(pool, sizeof *pool);
  }
  tw_unlock(&g_lock);
}
