/* The determinant of each matrix of the last two axes, in double, by Gaussian elimination with the
 * largest pivot of a column. */
#include "numbers.h"

static double determinant(double* m, int64_t n) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (__builtin_fabs(m[i * n + k]) > __builtin_fabs(m[pivot * n + k])) pivot = i;
    const double top = m[pivot * n + k];
    if (top == 0) return 0;
    product *= pivot == k ? top : -top;
    for (int64_t j = k; j < n && pivot != k; ++j) {
      const double swap = m[k * n + j];
      m[k * n + j] = m[pivot * n + j];
      m[pivot * n + j] = swap;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / top;
      for (int64_t j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return product;
}

int32_t tw_op_det(const tw_op_args* a) {
  const tw_view* x = &a->in[0];
  const int64_t n = x->dims[x->rank - 1], count = extent_of(x, 0, x->rank - 2);
  double* m = a->out[1].data;
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; i < n * n; ++i) m[i] = real_at(x->data, c * n * n + i, x->dtype);
    set_real(a->out[0].data, c, x->dtype, determinant(m, n));
  }
  return TW_OK;
}
