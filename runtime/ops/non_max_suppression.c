/* For each class of each image: the boxes in order of their scores (with equal scores the lower
 * number first), without those that overlap a box taken before by more than the threshold. A row of
 * the output is image, class, box; the number of rows follows. A NaN is no score. */
#include "heap.h"
#include "numbers.h"

/* The corners of a box that is given by two opposite corners, or by centre and size. The order (y,
 * x) or (x, y) makes no difference to an area. */
static void corners(const float* box, int64_t centred, float low[2], float high[2]) {
  for (int i = 0; i < 2; ++i) {
    const float p = centred ? box[i] - box[i + 2] / 2 : box[i],
                q = centred ? box[i] + box[i + 2] / 2 : box[i + 2];
    low[i] = p < q ? p : q;
    high[i] = p < q ? q : p;
  }
}

static int overlaps(const float* a, const float* b, int64_t centred, float threshold) {
  float a_low[2], a_high[2], b_low[2], b_high[2], common = 1, a_area = 1, b_area = 1;
  corners(a, centred, a_low, a_high);
  corners(b, centred, b_low, b_high);
  for (int i = 0; i < 2; ++i) {
    const float low = a_low[i] > b_low[i] ? a_low[i] : b_low[i],
                high = a_high[i] < b_high[i] ? a_high[i] : b_high[i];
    common *= high > low ? high - low : 0;
    a_area *= a_high[i] - a_low[i];
    b_area *= b_high[i] - b_low[i];
  }
  return a_area > 0 && b_area > 0 && common / (a_area + b_area - common) > threshold;
}

static float optional_real(const tw_op_args* a, int32_t i, float missing) {
  return i < a->in_count && a->in[i].data ? *(const float*)a->in[i].data : missing;
}

int32_t tw_op_non_max_suppression(const tw_op_args* a) {
  const tw_view *boxes = &a->in[0], *scores = &a->in[1];
  const int64_t images = boxes->dims[0], count = boxes->dims[1], classes = scores->dims[1],
                capacity = a->out[0].dims[0];
  const int64_t most = a->in_count > 2 && a->in[2].data ? *(const int64_t*)a->in[2].data : 0;
  const float threshold = optional_real(a, 3, 0), least = optional_real(a, 4, -__builtin_inff());
  int64_t *out = a->out[0].data, taken = 0;
  tw_ranked* heap = a->out[2].data;
  __builtin_memset(out, 0, (size_t)(capacity * 24));
  for (int64_t image = 0; image < images; ++image)
    for (int64_t c = 0; c < classes; ++c) {
      const float *row = (const float*)scores->data + (image * classes + c) * count,
                  *box = (const float*)boxes->data + image * count * 4;
      const int64_t begin = taken;
      int64_t left = 0;
      for (int64_t i = 0; i < count; ++i)
        if (row[i] > least || (row[i] == row[i] && least == -__builtin_inff()))
          heap[left++] = (tw_ranked){element_key(row, i, TW_F32), i};
      for (int64_t i = left; i-- > 0;) tw_sink(heap, left, i, 1);
      while (left > 0 && taken - begin < most) {
        const int64_t best = heap[0].place;
        heap[0] = heap[--left];
        tw_sink(heap, left, 0, 1);
        int covered = 0;
        for (int64_t t = begin; t < taken && !covered; ++t)
          covered = overlaps(box + 4 * best, box + 4 * out[3 * t + 2], a->ints[0], threshold);
        if (covered) continue;
        if (taken == capacity) return tw_op_fail(a, TW_E_SHAPE, "more than % boxes", capacity, 0);
        out[3 * taken] = image;
        out[3 * taken + 1] = c;
        out[3 * taken++ + 2] = best;
      }
    }
  *(int64_t*)a->out[1].data = taken;
  return TW_OK;
}
