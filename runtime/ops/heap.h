/* A heap of scored places, for the operators that rank */
#ifndef TW_OP_HEAP_H
#define TW_OP_HEAP_H
#include <stdint.h>

typedef struct tw_ranked {
  uint64_t key;  /* larger is better */
  int64_t place; /* with equal keys the lower place is better: a total order, so that no result
                    depends on how the heap moves entries */
} tw_ranked;

static inline int tw_better(tw_ranked a, tw_ranked b) {
  return a.key != b.key ? a.key > b.key : a.place < b.place;
}

/* Moves entry `at` down to its place below its children. The best entry stands on top, or the worst
 * with best == 0. */
static inline void tw_sink(tw_ranked* heap, int64_t count, int64_t at, int best) {
  tw_ranked moved = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && tw_better(heap[child + best], heap[child + !best])) ++child;
    if (!(best ? tw_better(heap[child], moved) : tw_better(moved, heap[child]))) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}
#endif
