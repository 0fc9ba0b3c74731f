/* The probability of each class, from probabilities of the pairs of classes i < j: how likely i is
 * of the two. This is the second method of Wu, Lin and Weng (2004). It minimizes p'Qp, class after
 * class, until no gradient is far from the others; onnxruntime stops at the same bound. */
#include "ops.h"

/* Fills Q: q[s][t] = -r(t, s) r(s, t), and q[t][t] is the sum of r(s, t)^2. Of the pair s and t,
 * r(s, t) is how likely s is. */
static void fill_q(double* q, const float* pairs, int32_t classes) {
  for (int32_t i = 0; i < classes * classes; ++i) q[i] = 0;
  for (int32_t s = 0; s < classes; ++s)
    for (int32_t t = s + 1; t < classes; ++t) {
      const double first = *pairs++, second = 1 - first;
      q[s * classes + s] += second * second;
      q[t * classes + t] += first * first;
      q[s * classes + t] = q[t * classes + s] = -first * second;
    }
}

/* Puts Qp into qp and returns p'Qp. */
static double multiply(const double* q, const double* p, double* qp, int32_t classes) {
  double sum = 0;
  for (int32_t s = 0; s < classes; ++s) {
    qp[s] = 0;
    for (int32_t t = 0; t < classes; ++t) qp[s] += q[s * classes + t] * p[t];
    sum += p[s] * qp[s];
  }
  return sum;
}

static int is_near(const double* qp, double sum, int32_t classes) {
  for (int32_t t = 0; t < classes; ++t)
    if (!(__builtin_fabs(qp[t] - sum) < 0.005 / classes)) return 0;
  return 1;
}

/* Gives each class in turn the value that is best while the others stay. Then scales all to the sum
 * 1. */
static void step(const double* q, double* p, double* qp, double sum, int32_t classes) {
  for (int32_t t = 0; t < classes; ++t) {
    const double own = q[t * classes + t], more = (sum - qp[t]) / own, scale = 1 / (1 + more);
    sum = (sum + more * (more * own + 2 * qp[t])) * scale * scale;
    p[t] += more;
    for (int32_t s = 0; s < classes; ++s) {
      p[s] *= scale;
      qp[s] = (qp[s] + more * q[t * classes + s]) * scale;
    }
  }
}

int32_t tw_op_class_probabilities(const tw_op_args* a) {
  const tw_view *pairs = &a->in[0], *out = &a->out[0];
  const int32_t classes = (int32_t)a->ints[0], most = classes > 100 ? classes : 100;
  double *q = a->out[1].data, *p = q + classes * classes, *qp = p + classes;
  for (int64_t row = 0; row < out->dims[0]; ++row) {
    fill_q(q, (const float*)pairs->data + row * pairs->dims[1], classes);
    for (int32_t t = 0; t < classes; ++t) p[t] = 1.0 / classes;
    for (int32_t i = 0; i < most; ++i) {
      const double sum = multiply(q, p, qp, classes);
      if (is_near(qp, sum, classes)) break;
      step(q, p, qp, sum, classes);
    }
    float* y = (float*)out->data + row * classes;
    for (int32_t t = 0; t < classes; ++t) y[t] = (float)p[t];
  }
  return TW_OK;
}
