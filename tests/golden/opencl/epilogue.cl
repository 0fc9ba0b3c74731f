#pragma OPENCL FP_CONTRACT OFF

#ifdef FP_FAST_FMAF
#define tw_fma_float(a, b, c) fma(a, b, c)
#else
#define tw_fma_float(a, b, c) ((a) * (b) + (c))
#endif
float4 tw_max_float4(float4 a, float4 b) { return select(b, a, (a > b) | isnan(a)); }

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void f(__global const uchar* x_mem, long x_at, __global const uchar* b_mem, long b_at, __global uchar* y_mem, long y_at, long batch) {
  __global const float* x = (__global const float*)(x_mem + x_at);
  __global const float* b = (__global const float*)(b_mem + b_at);
  __global float* y = (__global float*)(y_mem + y_at);
  float acc[4];
  const long group0 = (long)get_group_id(0);
  const int item0 = (int)get_local_id(0);
  const long t = ((group0 + (long)item0) / 3);
  const long t_2 = ((group0 + (long)item0) % 3);
  if (((group0 * 64L) + (long)item0) < (batch * 3L)) {
    vstore4((float4)(0.0f), 0, acc);
    for (int k = 0; k < 3; ++k) {
      vstore4(tw_fma_float(vload4(0, x + ((group0 * 256L) + (long)(item0 * 4))), (float4)(x[((group0 * 252L) + (t * 12L)) + (long)k]), vload4(0, acc)), 0, acc);
    }
    vstore4(tw_max_float4((float4)(0.0f), (vload4(0, acc) + vload4(0, b + (t_2 * 4L)))), 0, y + ((group0 * 256L) + (long)(item0 * 4)));
  }
}
// f: global (batch * 3 + 63) // 64 * 64, 1, 1; local 64, 1, 1; 0 bytes shared
