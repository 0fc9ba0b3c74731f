#pragma OPENCL FP_CONTRACT OFF

float tw_round_half(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (__private half*)&bits);
  return vload_half(0, (__private const half*)&bits);
}
int tw_sat_int_float(float x) { return isnan(x) ? (int)0 : convert_int_sat_rtz(x); }

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void f_0(__global const uchar* x_mem, long x_at, __global uchar* y_mem, long y_at) {
  __global const ushort* x = (__global const ushort*)(x_mem + x_at);
  __global ushort* y = (__global ushort*)(y_mem + y_at);
  __local float t[64];
  const int group0 = (int)get_group_id(0);
  const int item0 = (int)get_local_id(0);
  t[item0] = vload_half(item0 + (group0 * 64), (__global const half*)x);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  vstore_half_rte(tw_round_half((t[(item0 * (-1)) + 63] * 2.0f)), item0 + (group0 * 64), (__global half*)y);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void f_1(__global const uchar* x_mem, long x_at, __global uchar* n_mem, long n_at, __global uchar* tw_work, long tw_work_at) {
  __global const ushort* x = (__global const ushort*)(x_mem + x_at);
  __global int* n = (__global int*)(n_mem + n_at);
  __global float* total = (__global float*)(tw_work + tw_work_at + 0);
  for (int j = 0; j < 64; ++j) {
    total[j] = vload_half(j, (__global const half*)x) + vload_half(j + 64, (__global const half*)x);
  }
  for (int m = 0; m < 64; ++m) {
    n[m] = (int)((uint)((int)((uint)tw_sat_int_float(rint(total[m])) * (uint)3)) + (uint)((int)(m / 7)));
  }
}
// f_0: global 256, 1, 1; local 64, 1, 1; 256 bytes shared
// f_1: global 1, 1, 1; local 1, 1, 1; 0 bytes shared
