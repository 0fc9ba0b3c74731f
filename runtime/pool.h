/* The worker threads of an artifact, shared by all its contexts. A team is a context's share of the
 * pool. */
#ifndef TW_POOL_H
#define TW_POOL_H
#include "model.h"
#include "sys.h"

struct tw_pool;
struct tw_lane;

typedef struct tw_team {
  tw_parallel user; /* parallel_for is NULL: our own pool */
  struct tw_pool* pool;
  struct tw_lane* lane; /* lane of the run in progress; NULL: none, and its loops are plain */
  int32_t threads;      /* threads that run a parallel_for, the caller included */
  int32_t busy;         /* 1: inside a parallel_for, where a nested one is a plain loop */
} tw_team;

/* Joins with a context of `threads` threads, the caller's included, and starts workers as needed.
 * team->threads is the number it got, at least 1. */
void tw_team_join(tw_team* team, int32_t threads);
void tw_team_leave(tw_team* team); /* the last one to leave ends the workers */
/* Enclose a run, which holds a lane of the pool meanwhile. Its workers wake once, spin from one
 * parallel loop to the next, and sleep only after the run. */
void tw_team_begin(tw_team* team);
void tw_team_end(tw_team* team);

/* CPUs of the affinity mask, cut to the cgroup's quota (rounded down); at least 1 */
int32_t tw_usable_cpus(void);
#endif
