/* OpenCL 1.2 through libOpenCL, found at run time: one in-order queue, an arena and the weights as one buffer each. Numbers and
 * signatures are those of the Khronos headers (OpenCL 1.2 specification). */
#include "device.h"

typedef int32_t cl_code;
typedef void* cl_object;   /* platforms, devices, contexts, queues, programs, kernels, buffers, events */
enum { kClGpu = 4, kClAll = -1, kClReadWrite = 1, kClReadOnly = 4, kClCopyHost = 32, kClBuildLog = 0x1183,
       kClSingleFpConfig = 0x101b, kClRoundedDivision = 1 << 7 };

typedef struct cl_functions {
  cl_code (*get_platforms)(uint32_t room, cl_object* list, uint32_t* count);
  cl_code (*get_devices)(cl_object platform, uint64_t type, uint32_t room, cl_object* list, uint32_t* count);
  cl_code (*device_info)(cl_object device, uint32_t what, size_t room, void* value, size_t* size);
  cl_object (*create_context)(const intptr_t* properties, uint32_t count, const cl_object* devices, void* notify, void* user, cl_code* code);
  cl_object (*create_queue)(cl_object context, cl_object device, uint64_t properties, cl_code* code);
  cl_object (*create_program)(cl_object context, uint32_t count, const char** texts, const size_t* lengths, cl_code* code);
  cl_code (*build)(cl_object program, uint32_t count, const cl_object* devices, const char* options, void* notify, void* user);
  cl_code (*build_info)(cl_object program, cl_object device, uint32_t what, size_t room, void* value, size_t* size);
  cl_object (*create_kernel)(cl_object program, const char* name, cl_code* code);
  cl_object (*create_buffer)(cl_object context, uint64_t flags, size_t bytes, void* host, cl_code* code);
  cl_code (*set_argument)(cl_object kernel, uint32_t index, size_t bytes, const void* value);
  cl_code (*enqueue)(cl_object queue, cl_object kernel, uint32_t dimensions, const size_t* offset, const size_t* global, const size_t* local,
                     uint32_t waits, const cl_object* list, cl_object* event);
  cl_code (*write)(cl_object queue, cl_object buffer, uint32_t blocking, size_t at, size_t bytes, const void* from, uint32_t waits,
                   const cl_object* list, cl_object* event);
  cl_code (*read)(cl_object queue, cl_object buffer, uint32_t blocking, size_t at, size_t bytes, void* to, uint32_t waits,
                  const cl_object* list, cl_object* event);
  cl_code (*finish)(cl_object queue);
  cl_code (*release_context)(cl_object), (*release_queue)(cl_object), (*release_program)(cl_object), (*release_kernel)(cl_object),
      (*release_buffer)(cl_object);
} cl_functions;

/* In the order of cl_functions, which holds nothing but pointers. */
static const char* const kNames[] = {
    "clGetPlatformIDs", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clBuildProgram",
    "clGetProgramBuildInfo", "clCreateKernel", "clCreateBuffer", "clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer",
    "clEnqueueReadBuffer", "clFinish", "clReleaseContext", "clReleaseCommandQueue", "clReleaseProgram", "clReleaseKernel", "clReleaseMemObject"};
static const char* const kLibraries[] = {
    "libOpenCL.so.1", "libOpenCL.so", "/vendor/lib64/libOpenCL.so", "/system/vendor/lib64/libOpenCL.so", "/system/vendor/lib64/egl/libGLES_mali.so",
    "libmali.so.1", "libmali.so"};
_Static_assert(sizeof(cl_functions) == sizeof kNames, "a name for every function");

typedef struct cl_state {
  cl_functions f;
  uint64_t mapped_bytes;
  cl_object device, context, queue, program, arena, weights;
  cl_object kernels[];       /* of desc->launches */
} cl_state;

static tw_status opencl_load(tw_device* d, cl_state* s) {
  if (!dlopen || !dlsym) return tw_device_failed(d, "the program that loads this library has no dlopen", "", 0);
  void* library = 0;
  for (size_t i = 0; i < sizeof kLibraries / sizeof *kLibraries && !library; ++i) library = dlopen(kLibraries[i], 2 /* RTLD_NOW */);
  if (!library) return tw_device_failed(d, "no OpenCL on this machine: ", "libOpenCL.so.1 is not found", 0);
  void** pointers = (void**)&s->f;
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (!(pointers[i] = dlsym(library, kNames[i]))) return tw_device_failed(d, "libOpenCL lacks ", kNames[i], 0);
  return TW_OK;   /* the library stays loaded: drivers do not like to go */
}

/* The first GPU of any platform, else the first device. */
static tw_status opencl_choose(tw_device* d, cl_state* s) {
  cl_object platforms[16];
  uint32_t count = 0, found = 0;
  cl_code code = s->f.get_platforms(16, platforms, &count);
  if (code || !count) return tw_device_failed(d, "there is no OpenCL platform", "", code);
  if (count > 16) count = 16;
  for (int pass = 0; pass < 2; ++pass)
    for (uint32_t p = 0; p < count; ++p)
      if (!s->f.get_devices(platforms[p], pass == 0 ? kClGpu : (uint32_t)kClAll, 1, &s->device, &found) && found) return TW_OK;
  return tw_device_failed(d, "no OpenCL platform has a device", "", 0);
}

static tw_status opencl_build(tw_device* d, cl_state* s) {
  cl_code code = 0;
  const char* text = d->desc->code;
  size_t length = (size_t)d->desc->code_bytes;
  s->program = s->f.create_program(s->context, 1, &text, &length, &code);
  if (!s->program) return tw_device_failed(d, "the program's text is not taken", "", code);
  uint64_t arithmetic = 0;
  s->f.device_info(s->device, kClSingleFpConfig, sizeof arithmetic, &arithmetic, 0);
  const char* options = arithmetic & kClRoundedDivision ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
  code = s->f.build(s->program, 1, &s->device, options, 0, 0);
  if (code) {
    char log[160] = {0};
    s->f.build_info(s->program, s->device, kClBuildLog, sizeof log - 1, log, 0);
    return tw_device_failed(d, "the kernels do not build: ", log, code);
  }
  for (uint64_t i = 0; i < d->desc->launch_count; ++i)
    if (!(s->kernels[i] = s->f.create_kernel(s->program, d->desc->launches[i].function, &code)))
      return tw_device_failed(d, "no kernel ", d->desc->launches[i].function, code);
  return TW_OK;
}

static tw_status opencl_open(tw_device* d, const uint8_t* weights) {
  uint64_t bytes = sizeof(cl_state) + (uint64_t)d->desc->launch_count * sizeof(cl_object);
  cl_state* s = tw_map(bytes);
  if (!s) return tw_device_failed(d, "no memory", "", 0);
  s->mapped_bytes = bytes;
  d->state = s;
  cl_code code = 0;
  tw_status status = opencl_load(d, s);
  if (status == TW_OK) status = opencl_choose(d, s);
  if (status != TW_OK) return status;
  s->context = s->f.create_context(0, 1, &s->device, 0, 0, &code);
  if (!s->context) return tw_device_failed(d, "no OpenCL context", "", code);
  s->queue = s->f.create_queue(s->context, s->device, 0, &code);
  if (!s->queue) return tw_device_failed(d, "no OpenCL queue", "", code);
  if (d->desc->weight_bytes) {
    s->weights = s->f.create_buffer(s->context, kClReadOnly | kClCopyHost, (size_t)d->desc->weight_bytes, (void*)(uintptr_t)weights, &code);
    if (!s->weights) return tw_device_failed(d, "no memory for the weights", "", code);
  }
  return opencl_build(d, s);
}

static void opencl_close(tw_device* d) {
  cl_state* s = d->state;
  if (!s) return;
  if (s->queue) s->f.finish(s->queue);
  for (uint64_t i = 0; i < d->desc->launch_count; ++i)
    if (s->kernels[i]) s->f.release_kernel(s->kernels[i]);
  if (s->program) s->f.release_program(s->program);
  if (s->arena) s->f.release_buffer(s->arena);
  if (s->weights) s->f.release_buffer(s->weights);
  if (s->queue) s->f.release_queue(s->queue);
  if (s->context) s->f.release_context(s->context);
  munmap(s, (size_t)s->mapped_bytes);
  d->state = 0;
}

static tw_status opencl_reserve(tw_device* d, uint64_t bytes) {
  cl_state* s = d->state;
  cl_code code = 0;
  if (s->arena) s->f.release_buffer(s->arena);
  s->arena = s->f.create_buffer(s->context, kClReadWrite, (size_t)bytes, 0, &code);
  return s->arena ? TW_OK : tw_device_failed(d, "no memory for the arena", "", code);
}

static tw_status opencl_write(tw_device* d, int64_t at, const void* from, int64_t bytes) {
  cl_state* s = d->state;
  cl_code code = s->f.write(s->queue, s->arena, 0, (size_t)at, (size_t)bytes, from, 0, 0, 0);
  return code ? tw_device_failed(d, "a copy to the device failed", "", code) : TW_OK;
}

static tw_status opencl_read(tw_device* d, int64_t at, void* to, int64_t bytes) {
  cl_state* s = d->state;
  cl_code code = s->f.read(s->queue, s->arena, 0, (size_t)at, (size_t)bytes, to, 0, 0, 0);
  return code ? tw_device_failed(d, "a copy from the device failed", "", code) : TW_OK;
}

static tw_status opencl_launch(tw_device* d, int32_t index, const int64_t* arguments) {
  cl_state* s = d->state;
  const tw_launch_desc* desc = &d->desc->launches[index];
  cl_object kernel = s->kernels[index];
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = (size_t)arguments[3 + i];
    global[i] = (size_t)arguments[i] * local[i];
    if (global[i] == 0) return TW_OK;
  }
  const int64_t* next = arguments + 6;
  uint32_t slot = 0;
  cl_code code = 0;
  for (int32_t b = 0; b < desc->buffer_count; ++b, next += 2) {
    const cl_object* base = next[0] ? &s->weights : &s->arena;
    code |= s->f.set_argument(kernel, slot++, sizeof *base, base);
    code |= s->f.set_argument(kernel, slot++, sizeof *next, &next[1]);
  }
  for (int32_t n = 0; n < desc->symbol_count; ++n, ++next) code |= s->f.set_argument(kernel, slot++, sizeof *next, next);
  if (code == 0) code = s->f.enqueue(s->queue, kernel, 3, 0, global, local, 0, 0, 0);
  return code ? tw_device_failed(d, "cannot launch ", desc->function, code) : TW_OK;
}

static tw_status opencl_wait(tw_device* d) {
  cl_state* s = d->state;
  cl_code code = s->f.finish(s->queue);
  return code ? tw_device_failed(d, "the device failed", "", code) : TW_OK;
}

const tw_driver tw_opencl_driver = {"opencl", opencl_open, opencl_close,  opencl_reserve,
                                     opencl_write, opencl_read, opencl_launch, opencl_wait};
