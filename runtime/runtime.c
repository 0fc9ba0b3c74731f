/* All of the runtime in one unit: one object a triple, in which only what model.h declares has a
 * name. */
// clang-format off: each file stands on those before it.
#include "sys.c"
#include "helpers.c"
#include "text.c"
#include "hash.c"
#include "integrity.c"
#include "threads.c"
#include "pool.c"
#include "cpu.c"
#include "cpu_x86.c"
#include "cpu_hwcap.c"
#include "verify.c"
#include "sizes.c"
#include "device/device.c"
#include "device/opencl.c"
#include "device/cuda_graph.c"
#include "device/cuda_open.c"
#include "device/cuda.c"
#include "device/vdla.c"
#include "control.c"
#include "api.c"
// clang-format on
