/* The worker threads of an artifact, shared by all its contexts. A team is a context's place among
 * them. */
#ifndef TW_POOL_H
#define TW_POOL_H
#include "model.h"
#include "sys.h"

struct tw_pool;
struct tw_lane;

typedef struct tw_team {
  tw_parallel user; /* parallel_for is NULL: our own pool */
  struct tw_pool* pool;
  struct tw_lane* lane; /* of the run in progress; NULL: it has none, and its loops are plain */
  int32_t threads;      /* how many run a parallel_for, the caller included */
  int32_t busy;         /* inside a parallel_for: a nested one is a plain loop */
} tw_team;

/* Counts in a context of `threads` threads, the caller's included; starts workers as needed.
 * team->threads is what was had, 1 at least. */
void tw_team_join(tw_team* team, int32_t threads);
void tw_team_leave(tw_team* team); /* the last one out ends the workers */
/* Around a run, which has a lane of the pool meanwhile: its workers wake once, spin from one parallel
 * loop to the next, and sleep only behind it. */
void tw_team_begin(tw_team* team);
void tw_team_end(tw_team* team);

/* CPUs of the affinity mask, cut to the cgroup's quota (rounded down); at least 1. */
int32_t tw_usable_cpus(void);
#endif
