#pragma OPENCL FP_CONTRACT OFF


__kernel __attribute__((reqd_work_group_size(50, 1, 1)))
void f(__global const uchar* x_mem, long x_at, __global uchar* y_mem, long y_at) {
  __global const float* x = (__global const float*)(x_mem + x_at);
  __global float* y = (__global float*)(y_mem + y_at);
  __local float part[32];
  __local float sum[1];
  const int group0 = (int)get_group_id(0);
  const int item0 = (int)get_local_id(0);
  if (item0 < 32) {
    part[item0] = x[item0 + (group0 * 100)];
    for (int k = 0; k < 3; ++k) {
      if ((item0 + (k * 32)) < 68) {
        part[item0] = part[item0] + x[((item0 + (group0 * 100)) + (k * 32)) + 32];
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (item0 == 0) {
    for (int f_2 = 0; f_2 < 32; ++f_2) {
      if (f_2 == 0) {
        sum[0] = 0.0f;
      }
      sum[0] = sum[0] + part[f_2];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int c1 = 0; c1 < 2; ++c1) {
    y[((item0 * 2) + (group0 * 100)) + c1] = x[((item0 * 2) + (group0 * 100)) + c1] / sum[0];
  }
}
// f: global 250, 1, 1; local 50, 1, 1; 132 bytes shared
