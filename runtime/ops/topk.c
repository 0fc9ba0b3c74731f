/* The k best elements of each row, by a heap of k entries with the worst on top: n log k steps.
 * Most elements are no better than the worst in the heap; floats in a row are compared with it in
 * vectors. */
#include "elements.h"
#include "heap.h"

/* The first float of row[i..n-1] that may be better than the worst in the heap, else n. An equal one
 * has a later place. NaN is above all numbers. */
static inline __attribute__((always_inline)) int64_t next_float(const float* row, int64_t i,
                                                                int64_t n, float worst,
                                                                int largest) {
  enum { kTogether = 16 };
  if (worst != worst) return i;
  for (; i + kTogether <= n; i += kTogether) {
    uint32_t found = 0;
    for (int j = 0; j < kTogether; ++j)
      found |= largest ? !(row[i + j] <= worst) : row[i + j] < worst;
    if (found) break;
  }
  while (i < n && (largest ? row[i] <= worst : !(row[i] < worst))) ++i;
  return i;
}

static int64_t next_of_row(const tw_op_args* a, const void* data, int64_t first, int64_t stride,
                           int64_t i, int64_t n, tw_ranked worst) {
  if (a->in[0].dtype != TW_F32 || stride != 1) return i;
  const float* row = (const float*)data + first;
  return a->ints[1] ? next_float(row, i, n, row[worst.place], 1)
                    : next_float(row, i, n, row[worst.place], 0);
}

static void best_of_row(const tw_op_args* a, const void* data, int64_t first, int64_t stride,
                        int64_t n, int64_t k, tw_ranked* heap) {
  const uint64_t flip = a->ints[1] ? 0 : ~(uint64_t)0;
  for (int64_t i = 0; i < n; ++i) {
    if (i >= k && (i = next_of_row(a, data, first, stride, i, n, heap[0])) == n) break;
    tw_ranked e = {element_key(data, first + i * stride, a->in[0].dtype) ^ flip, i};
    if (i < k) {
      heap[i] = e;
      for (int64_t top = i + 1 == k ? k / 2 : 0; top-- > 0;) tw_sink(heap, k, top, 0);
    } else if (tw_better(e, heap[0])) {
      heap[0] = e;
      tw_sink(heap, k, 0, 0);
    }
  }
  for (int64_t left = k; left-- > 1;) { /* takes the worst off the heap and puts it at the end */
    tw_ranked worst = heap[0];
    heap[0] = heap[left];
    heap[left] = worst;
    tw_sink(heap, left, 0, 0);
  }
}

int32_t tw_op_topk(const tw_op_args* a) {
  const tw_view *x = &a->in[0], *values = &a->out[0];
  const int32_t axis = (int32_t)a->ints[0];
  const int64_t n = x->dims[axis], k = values->dims[axis], stride = extent_of(x, axis + 1, x->rank),
                rows = extent_of(x, 0, axis);
  const int64_t bytes = element_bytes(x->dtype);
  int64_t* places = a->out[1].data;
  tw_ranked* heap = a->out[2].data;
  if (k > n) return tw_op_fail(a, TW_E_SHAPE, "k is %, there are % elements", k, n);
  if (k == 0) return TW_OK;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t s = 0; s < stride; ++s) {
      best_of_row(a, x->data, row * n * stride + s, stride, n, k, heap);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (row * k + i) * stride + s;
        places[to] = heap[i].place;
        copy_element(values->data, to, x->data, (row * n + heap[i].place) * stride + s, bytes);
      }
    }
  return TW_OK;
}
