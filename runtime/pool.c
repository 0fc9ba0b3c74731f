/* Thread pool. A run holds a lane from its beginning to its end; where kLanes runs hold all of
 * them, the loops of a further run are plain. A parallel_for divides its chunks into parts of
 * neighbours, publishes a bit for each part in its lane and bumps the pool's epoch. Workers claim
 * bits. Each worker tries its own bit first, so that it meets the same part call after call. The
 * caller runs part 0, then claims the parts that no worker has taken, and waits for the rest. So
 * contexts that run at the same time split the workers between them, a missing worker costs time
 * and never an answer, and no lock is taken on the way. A claimed bit keeps the caller inside the
 * call until its claimer is done, so everything that the claimer reads belongs to that call.
 *
 * The claimer of a part takes its chunks one by one from the front, and then those that other parts
 * have left, from their ends. So a fast core does more than a slow one, and all are done within two
 * chunks' time. Which thread runs a chunk is open; what a chunk computes does not depend on it. */
#include "pool.h"

#ifndef TW_SPINS /* the tests set few, to reach the waits in the kernel */
#define TW_SPINS 20000
#endif
enum {
  kMaxThreads = 64,
  kMostParts = 128, /* of a loop in a caller's pool, which may have more threads */
  kLanes = 64,
  kBriefSpins = TW_SPINS / 20,
  kYieldSpins = 256,
  kHelpSpins = 64,
  kSpins = TW_SPINS,
  kRunSpins = 50 * TW_SPINS
}; /* turns of a spin loop before a wait in the kernel, outside of runs and within */

/* The chunks of a claimed part that no thread has taken: the next one in the low half, the end in
 * the high half. The claimer writes it, so that it comes from no other core's cache; before, and
 * after the loop, none is left. */
typedef struct tw_share {
  _Alignas(64) _Atomic uint64_t rest;
} tw_share;

typedef struct tw_shared_loop { /* a parallel_for in progress */
  void (*fn)(void* arg, int32_t part, int32_t chunk);
  void* arg;
  int32_t parts, chunks;
  tw_share* shares;
} tw_shared_loop;

typedef struct tw_lane {
  _Alignas(64) tw_shared_loop loop;   /* written before `open`, read after a claim */
  _Alignas(64) _Atomic uint64_t open; /* bit p: part p waits for a thread */
  _Alignas(64) _Atomic uint32_t left; /* parts other than 0 that are not done */
  _Atomic uint32_t waiting;           /* 1: the caller sleeps on `left` */
  tw_share shares[kMaxThreads];
} tw_lane;

typedef struct tw_worker {
  struct tw_pool* pool;
  uint32_t part; /* the part that it claims first: 1 + its index */
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

/* Takes a chunk from the front of a share, or from its end; -1: none is left. From the end it leaves
 * the last one, whose data are in its own thread's cache, and which that thread is about to begin. */
static int32_t take(tw_share* share, int32_t from_end) {
  uint64_t now = TW_LOAD(&share->rest, RELAXED);
  while ((uint32_t)now + (uint32_t)from_end < now >> 32) {
    const uint64_t then = from_end ? now - ((uint64_t)1 << 32) : now + 1;
    if (__c11_atomic_compare_exchange_weak(&share->rest, &now, then, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED))
      return (int32_t)(from_end ? then >> 32 : (uint32_t)now);
  }
  return -1;
}

/* Makes a claimed part's chunks its claimer's and the others'. Parts of one chunk have no share. */
static void begin_part(const tw_shared_loop* loop, int32_t part) {
  const uint64_t chunks = (uint64_t)loop->chunks, parts = (uint64_t)loop->parts,
                 first = chunks * (uint64_t)part / parts,
                 end = chunks * ((uint64_t)part + 1) / parts;
  if (chunks > parts) TW_STORE(&loop->shares[part].rest, end << 32 | first, SEQ_CST);
}

/* Runs chunks that other parts have left, as `part`, which has no more of its own. */
static void help_others(const tw_shared_loop* loop, int32_t part) {
  int32_t chunk;
  if (loop->chunks == loop->parts) return;
  for (int32_t step = 1; step < loop->parts; ++step)
    while ((chunk = take(&loop->shares[(part + step) % loop->parts], 1)) >= 0)
      loop->fn(loop->arg, part, chunk);
}

/* Runs a begun part's chunks and those that others have left. Only its claimer runs as this part. */
static void run_part(const tw_shared_loop* loop, int32_t part) {
  int32_t chunk;
  if (loop->chunks == loop->parts) loop->fn(loop->arg, part, part);
  else
    while ((chunk = take(&loop->shares[part], 0)) >= 0) loop->fn(loop->arg, part, chunk);
  help_others(loop, part);
}

static void run_users_part(void* loop, int32_t part) {
  begin_part(loop, part);
  run_part(loop, part);
}

/* Claims and runs open parts, `first` before others, until none is open. */
static void run_open_parts(tw_lane* lane, uint32_t first) {
  uint64_t open;
  while ((open = TW_LOAD(&lane->open, ACQUIRE)) != 0) {
    uint64_t bit = open & (uint64_t)1 << first;
    if (!bit) bit = open & (0 - open);
    if (!(TW_AND(&lane->open, ~bit, ACQ_REL) & bit)) continue;
    begin_part(&lane->loop, __builtin_ctzll(bit));
    if (TW_LOAD(&lane->waiting, SEQ_CST)) tw_futex_wake(&lane->left, 1); /* the caller may help */
    run_part(&lane->loop, __builtin_ctzll(bit));
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
    if (spin > kBriefSpins && spin % kYieldSpins == 0) syscall(SYS_sched_yield);
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
      run_open_parts(&pool->lanes[__builtin_ctzll(taken)], self->part);
    epoch = await_epoch(pool, epoch);
  }
  return 0;
}

static void await_parts(tw_lane* lane) {
  for (int32_t spin = 0; spin < kBriefSpins; ++spin) {
    if (TW_LOAD(&lane->left, ACQUIRE) == 0) return;
    tw_relax();
    if (spin % kHelpSpins == kHelpSpins - 1) help_others(&lane->loop, 0);
  }
  TW_STORE(&lane->waiting, 1, SEQ_CST);
  uint32_t left;
  while ((left = TW_LOAD(&lane->left, SEQ_CST)) != 0) {
    help_others(&lane->loop, 0);
    tw_futex_wait(&lane->left, left);
  }
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

static void run_in_users_pool(const tw_team* team, tw_shared_loop loop) {
  tw_share shares[kMostParts];
  if (loop.parts > kMostParts) loop.parts = kMostParts;
  for (int32_t i = 0; i < loop.parts; ++i) TW_STORE(&shares[i].rest, 0, RELAXED);
  loop.shares = shares;
  team->user.parallel_for(team->user.pool, run_users_part, &loop, loop.parts);
}

void tw_parallel_for(const tw_env* env, void (*fn)(void* arg, int32_t part, int32_t chunk),
                     void* arg, int32_t parts, int32_t chunks) {
  tw_team* team = env->pool;
  if (parts > chunks) parts = chunks;
  if (parts <= 1 || !team || team->threads <= 1 || team->busy ||
      (!team->lane && !team->user.parallel_for)) {
    for (int32_t i = 0; i < chunks; ++i) fn(arg, 0, i);
    return;
  }
  team->busy = 1;
  if (parts > team->threads) parts = team->threads;
  if (team->user.parallel_for) {
    run_in_users_pool(team, (tw_shared_loop){fn, arg, parts, chunks, 0});
  } else {
    tw_lane* lane = team->lane;
    lane->loop = (tw_shared_loop){fn, arg, parts, chunks, lane->shares};
    TW_STORE(&lane->left, (uint32_t)parts - 1, RELAXED);
    TW_STORE(&lane->open, (~(uint64_t)0 >> (64 - parts)) & ~(uint64_t)1, RELEASE);
    rouse(team->pool, parts - 1);
    begin_part(&lane->loop, 0);
    run_part(&lane->loop, 0);
    run_open_parts(lane, 1);
    await_parts(lane);
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
    worker->part = (uint32_t)pool->worker_count + 1;
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
