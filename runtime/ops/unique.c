/* The distinct slices of x along an axis (-1: the elements). A stable merge sort sorts the numbers
 * of the slices; then they are numbered in sorted order, or in the order of their first places.
 * NaNs equal each other and come last. */
#include "elements.h"

typedef struct slices {
  const void* data;
  int64_t outer, n, inner;
  int32_t dtype;
} slices;

static int order_of(const slices* s, int64_t i, int64_t j) {
  for (int64_t o = 0; o < s->outer; ++o)
    for (int64_t q = 0; q < s->inner; ++q) {
      const uint64_t x = element_key(s->data, (o * s->n + i) * s->inner + q, s->dtype),
                     y = element_key(s->data, (o * s->n + j) * s->inner + q, s->dtype);
      if (x != y) return x < y ? -1 : 1;
    }
  return 0;
}

static void merge(const slices* s, const int64_t* from, int64_t* to, int64_t begin, int64_t middle,
                  int64_t end) {
  for (int64_t i = begin, j = middle, at = begin; at < end; ++at)
    to[at] = j == end || (i < middle && order_of(s, from[i], from[j]) <= 0) ? from[i++] : from[j++];
}

/* The numbers 0 .. n - 1 in the order of their slices. The result is one of the two arrays. */
static int64_t* sorted_numbers(const slices* s, int64_t* one, int64_t* other) {
  for (int64_t i = 0; i < s->n; ++i) one[i] = i;
  for (int64_t width = 1; width < s->n; width *= 2) {
    for (int64_t begin = 0; begin < s->n; begin += 2 * width) {
      const int64_t middle = begin + width < s->n ? begin + width : s->n,
                    end = middle + width < s->n ? middle + width : s->n;
      merge(s, one, other, begin, middle, end);
    }
    int64_t* swap = one;
    one = other;
    other = swap;
  }
  return one;
}

int32_t tw_op_unique(const tw_op_args* a) {
  const tw_view *x = &a->in[0], *y = &a->out[0];
  const int32_t axis = (int32_t)a->ints[0], flat = axis < 0;
  const slices s = {x->data, flat ? 1 : extent_of(x, 0, axis),
                    flat ? elements_of(x) : x->dims[axis],
                    flat ? 1 : extent_of(x, axis + 1, x->rank), x->dtype};
  int64_t *first = a->out[1].data, *inverse = a->out[2].data, *counts = a->out[3].data,
          *scratch = a->out[5].data, groups = 0, next = 0;
  int64_t *sorted = sorted_numbers(&s, scratch, scratch + s.n),
          *begins = sorted == scratch ? scratch + s.n : scratch, *number = scratch + 2 * s.n;
  for (int64_t i = 0; i < s.n; ++i) { /* begins: the first slice of each group, in sorted order */
    if (i == 0 || order_of(&s, sorted[i - 1], sorted[i]) != 0) begins[groups++] = sorted[i];
    inverse[sorted[i]] = groups - 1;
    first[i] = counts[i] = 0;
  }
  for (int64_t g = 0; g < groups; ++g) number[g] = g;
  for (int64_t i = 0; i < s.n && !a->ints[1]; ++i)
    if (begins[inverse[i]] == i) number[inverse[i]] = next++;
  for (int64_t i = 0; i < s.n; ++i) ++counts[inverse[i] = number[inverse[i]]];
  const int64_t bytes = s.inner * element_bytes(x->dtype);
  __builtin_memset(y->data, 0, (size_t)(s.outer * s.n * bytes));
  for (int64_t g = 0; g < groups; ++g) {
    first[number[g]] = begins[g];
    for (int64_t o = 0; o < s.outer; ++o)
      copy_bytes((uint8_t*)y->data + (o * s.n + number[g]) * bytes,
                 (const uint8_t*)x->data + (o * s.n + begins[g]) * bytes, bytes);
  }
  *(int64_t*)a->out[4].data = groups;
  return TW_OK;
}
