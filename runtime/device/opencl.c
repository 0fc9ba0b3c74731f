/* OpenCL 1.2 through libOpenCL, found at run time. A device has one in-order queue and one buffer
 * as its arena. All devices of the process that can share an OpenCL context, the built program and
 * the weights do so. Numbers and signatures are those of the Khronos headers (OpenCL 1.2
 * specification). */
#include "device.h"

typedef int32_t cl_code;
typedef void*
    cl_object; /* platforms, devices, contexts, queues, programs, kernels, buffers, events */
enum {
  kClGpu = 4,
  kClAll = -1,
  kClReadWrite = 1,
  kClReadOnly = 4,
  kClCopyHost = 32,
  kClBuildLog = 0x1183,
  kClSingleFpConfig = 0x101b,
  kClRoundedDivision = 1 << 7,
  kClQueueContext = 0x1090,
  kClQueueDevice = 0x1091,
  kClQueueProperties = 0x1093,
  kClOutOfOrder = 1
};

typedef struct cl_functions {
  cl_code (*get_platforms)(uint32_t capacity, cl_object* list, uint32_t* count);
  cl_code (*get_devices)(cl_object platform, uint64_t type, uint32_t capacity, cl_object* list,
                         uint32_t* count);
  cl_code (*device_info)(cl_object device, uint32_t what, size_t capacity, void* value,
                         size_t* size);
  cl_object (*create_context)(const intptr_t* properties, uint32_t count, const cl_object* devices,
                              void* notify, void* user, cl_code* code);
  cl_object (*create_queue)(cl_object context, cl_object device, uint64_t properties,
                            cl_code* code);
  cl_object (*create_program)(cl_object context, uint32_t count, const char** texts,
                              const size_t* lengths, cl_code* code);
  cl_code (*build)(cl_object program, uint32_t count, const cl_object* devices, const char* options,
                   void* notify, void* user);
  cl_code (*build_info)(cl_object program, cl_object device, uint32_t what, size_t capacity,
                        void* value, size_t* size);
  cl_object (*create_kernel)(cl_object program, const char* name, cl_code* code);
  cl_object (*create_buffer)(cl_object context, uint64_t flags, size_t bytes, void* host,
                             cl_code* code);
  cl_code (*set_argument)(cl_object kernel, uint32_t index, size_t bytes, const void* value);
  cl_code (*enqueue)(cl_object queue, cl_object kernel, uint32_t dimensions, const size_t* offset,
                     const size_t* global, const size_t* local, uint32_t waits,
                     const cl_object* list, cl_object* event);
  cl_code (*write)(cl_object queue, cl_object buffer, uint32_t blocking, size_t at, size_t bytes,
                   const void* from, uint32_t waits, const cl_object* list, cl_object* event);
  cl_code (*read)(cl_object queue, cl_object buffer, uint32_t blocking, size_t at, size_t bytes,
                  void* to, uint32_t waits, const cl_object* list, cl_object* event);
  cl_code (*copy)(cl_object queue, cl_object from, cl_object to, size_t from_at, size_t to_at,
                  size_t bytes, uint32_t waits, const cl_object* list, cl_object* event);
  cl_code (*queue_info)(cl_object queue, uint32_t what, size_t capacity, void* value, size_t* size);
  cl_code (*finish)(cl_object queue);
  cl_code (*retain_context)(cl_object), (*retain_queue)(cl_object);
  cl_code (*release_context)(cl_object), (*release_queue)(cl_object), (*release_program)(cl_object),
      (*release_kernel)(cl_object), (*release_buffer)(cl_object);
} cl_functions;

/* Names in the order of cl_functions, which contains nothing but pointers. */
static const char* const kNames[] = {"clGetPlatformIDs",
                                     "clGetDeviceIDs",
                                     "clGetDeviceInfo",
                                     "clCreateContext",
                                     "clCreateCommandQueue",
                                     "clCreateProgramWithSource",
                                     "clBuildProgram",
                                     "clGetProgramBuildInfo",
                                     "clCreateKernel",
                                     "clCreateBuffer",
                                     "clSetKernelArg",
                                     "clEnqueueNDRangeKernel",
                                     "clEnqueueWriteBuffer",
                                     "clEnqueueReadBuffer",
                                     "clEnqueueCopyBuffer",
                                     "clGetCommandQueueInfo",
                                     "clFinish",
                                     "clRetainContext",
                                     "clRetainCommandQueue",
                                     "clReleaseContext",
                                     "clReleaseCommandQueue",
                                     "clReleaseProgram",
                                     "clReleaseKernel",
                                     "clReleaseMemObject"};
static const char* const kLibraries[] = {"libOpenCL.so.1",
                                         "libOpenCL.so",
                                         "/vendor/lib64/libOpenCL.so",
                                         "/system/vendor/lib64/libOpenCL.so",
                                         "/system/vendor/lib64/egl/libGLES_mali.so",
                                         "libmali.so.1",
                                         "libmali.so"};
_Static_assert(sizeof(cl_functions) == sizeof kNames, "a name for every function");

/* State shared by those devices of a process that have the same description and the same OpenCL
 * context: one of their own, or the caller's. */
typedef struct cl_shared {
  struct cl_shared* next;
  const tw_device_desc* desc;
  cl_object callers; /* the OpenCL context of the caller's queue; NULL: it is our own */
  int32_t users;
  cl_object device, context, program, weights;
} cl_shared;
static _Atomic uint32_t g_cl_lock;
static cl_shared* g_cl_shared;

typedef struct cl_state {
  cl_functions f;
  cl_shared* shared;
  cl_object queue, arena;
  cl_object kernels[]; /* kernels of desc->launches */
} cl_state;

static tw_status opencl_load(tw_device* d, cl_state* s) {
  void* library = tw_device_library(d, kLibraries, sizeof kLibraries / sizeof *kLibraries,
                                    "no OpenCL on this machine, not found: ");
  void** pointers = (void**)&s->f;
  if (!library) return TW_E_DEVICE;
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (!(pointers[i] = dlsym(library, kNames[i])))
      return tw_device_failed(d, "libOpenCL lacks ", kNames[i], 0);
  return TW_OK;
}

/* The first GPU of any platform, or else the first device. */
static tw_status opencl_choose(tw_device* d, const cl_functions* f, cl_object* device) {
  cl_object platforms[16];
  uint32_t count = 0, found = 0;
  cl_code code = f->get_platforms(16, platforms, &count);
  if (code || !count) return tw_device_failed(d, "there is no OpenCL platform", "", code);
  if (count > 16) count = 16;
  for (int pass = 0; pass < 2; ++pass)
    for (uint32_t p = 0; p < count; ++p)
      if (!f->get_devices(platforms[p], pass == 0 ? kClGpu : (uint32_t)kClAll, 1, device, &found) &&
          found)
        return TW_OK;
  return tw_device_failed(d, "no OpenCL platform has a device", "", 0);
}

static tw_status opencl_build(tw_device* d, const cl_functions* f, cl_shared* h) {
  cl_code code = 0;
  const char* text = d->desc->code;
  size_t length = (size_t)d->desc->code_bytes;
  h->program = f->create_program(h->context, 1, &text, &length, &code);
  if (!h->program) return tw_device_failed(d, "the program's text is not taken", "", code);
  uint64_t arithmetic = 0;
  f->device_info(h->device, kClSingleFpConfig, sizeof arithmetic, &arithmetic, 0);
  const char* options = arithmetic & kClRoundedDivision
                            ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                            : "-cl-std=CL1.2";
  code = f->build(h->program, 1, &h->device, options, 0, 0);
  if (!code) return TW_OK;
  char log[160] = {0};
  f->build_info(h->program, h->device, kClBuildLog, sizeof log - 1, log, 0);
  return tw_device_failed(d, "the kernels do not build: ", log, code);
}

static void opencl_drop(const cl_functions* f, cl_shared* h) {
  if (h->program) f->release_program(h->program);
  if (h->weights) f->release_buffer(h->weights);
  if (h->context) f->release_context(h->context);
  munmap(h, sizeof *h);
}

/* Fills the shared state. With a context of the caller's, h->device is already set. */
static tw_status opencl_fill(tw_device* d, const cl_functions* f, cl_shared* h,
                             const uint8_t* weights) {
  cl_code code = 0;
  tw_status status = h->callers ? TW_OK : opencl_choose(d, f, &h->device);
  if (status != TW_OK) return status;
  if (!h->callers) h->context = f->create_context(0, 1, &h->device, 0, 0, &code);
  else if (!(code = f->retain_context(h->callers))) h->context = h->callers;
  if (!h->context) return tw_device_failed(d, "no OpenCL context", "", code);
  if (d->desc->weight_bytes) {
    h->weights = f->create_buffer(h->context, kClReadOnly | kClCopyHost,
                                  (size_t)d->desc->weight_bytes, (void*)(uintptr_t)weights, &code);
    if (!h->weights) return tw_device_failed(d, "no memory for the weights", "", code);
  }
  return opencl_build(d, f, h);
}

/* Takes the shared state; the first device that asks makes it. */
static tw_status opencl_share(tw_device* d, cl_state* s, cl_object callers, cl_object device,
                              const uint8_t* weights) {
  tw_status status = TW_OK;
  tw_lock(&g_cl_lock);
  cl_shared* h = g_cl_shared;
  while (h && (h->desc != d->desc || h->callers != callers || (callers && h->device != device)))
    h = h->next;
  if (!h) {
    h = tw_map(sizeof *h);
    if (!h) status = tw_device_failed(d, "no memory", "", 0);
    if (h) {
      *h = (cl_shared){.next = g_cl_shared, .desc = d->desc, .callers = callers, .device = device};
      status = opencl_fill(d, &s->f, h, weights);
      if (status == TW_OK) g_cl_shared = h;
      else opencl_drop(&s->f, h);
    }
  }
  if (status == TW_OK) ++h->users, s->shared = h;
  tw_unlock(&g_cl_lock);
  return status;
}

static void opencl_leave(cl_state* s) {
  tw_lock(&g_cl_lock);
  if (--s->shared->users == 0) {
    cl_shared** at = &g_cl_shared;
    while (*at != s->shared) at = &(*at)->next;
    *at = s->shared->next;
    opencl_drop(&s->f, s->shared);
  }
  tw_unlock(&g_cl_lock);
}

/* The OpenCL context and device of the caller's queue. */
static tw_status opencl_adopt(tw_device* d, cl_state* s, cl_object queue, cl_object* context,
                              cl_object* device) {
  uint64_t properties = 0;
  cl_code code = queue ? s->f.queue_info(queue, kClQueueContext, sizeof *context, context, 0) : 1;
  if (!code) code = s->f.queue_info(queue, kClQueueDevice, sizeof *device, device, 0);
  if (!code) code = s->f.queue_info(queue, kClQueueProperties, sizeof properties, &properties, 0);
  if (code) return tw_device_failed(d, "options.queue is no command queue", "", code);
  if (properties & kClOutOfOrder)
    return tw_device_failed(d, "options.queue runs out of order", "", 0);
  code = s->f.retain_queue(queue);
  if (code) return tw_device_failed(d, "options.queue is not taken", "", code);
  s->queue = queue;
  return TW_OK;
}

static tw_status opencl_open(tw_device* d, const uint8_t* weights, const tw_queue* queue) {
  cl_state* s = tw_device_state(
      d, sizeof(cl_state) + (uint64_t)d->desc->launch_count * sizeof(cl_object));
  cl_object context = 0, device = 0;
  cl_code code = 0;
  tw_status status = s ? opencl_load(d, s) : TW_E_DEVICE;
  if (status == TW_OK && queue) status = opencl_adopt(d, s, queue->handle, &context, &device);
  if (status == TW_OK) status = opencl_share(d, s, context, device, weights);
  if (status != TW_OK) return status;
  if (!s->queue) s->queue = s->f.create_queue(s->shared->context, s->shared->device, 0, &code);
  if (!s->queue) return tw_device_failed(d, "no OpenCL queue", "", code);
  for (uint64_t i = 0; i < d->desc->launch_count; ++i)
    if (!(s->kernels[i] = s->f.create_kernel(s->shared->program, d->desc->launches[i].function,
                                             &code)))
      return tw_device_failed(d, "no kernel ", d->desc->launches[i].function, code);
  return TW_OK;
}

static void opencl_close(tw_device* d) {
  cl_state* s = d->state;
  if (s->queue) s->f.finish(s->queue);
  for (uint64_t i = 0; i < d->desc->launch_count; ++i)
    if (s->kernels[i]) s->f.release_kernel(s->kernels[i]);
  if (s->arena) s->f.release_buffer(s->arena);
  if (s->queue) s->f.release_queue(s->queue);
  if (s->shared) opencl_leave(s);
}

static tw_status opencl_reserve(tw_device* d, uint64_t bytes) {
  cl_state* s = d->state;
  cl_code code = 0;
  if (s->arena) s->f.release_buffer(s->arena);
  s->arena = s->f.create_buffer(s->shared->context, kClReadWrite, (size_t)bytes, 0, &code);
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

static tw_status opencl_copy(tw_device* d, int64_t at, void* memory, int64_t offset, int64_t bytes,
                             int32_t out) {
  cl_state* s = d->state;
  cl_code code = out ? s->f.copy(s->queue, s->arena, memory, (size_t)at, (size_t)offset,
                                 (size_t)bytes, 0, 0, 0)
                     : s->f.copy(s->queue, memory, s->arena, (size_t)offset, (size_t)at,
                                 (size_t)bytes, 0, 0, 0);
  return code ? tw_device_failed(d, "a copy of the caller's memory failed", "", code) : TW_OK;
}

static tw_status opencl_move(tw_device* d, int64_t to, int64_t from, int64_t bytes,
                             int32_t weights) {
  cl_state* s = d->state;
  cl_code code = s->f.copy(s->queue, weights ? s->shared->weights : s->arena, s->arena,
                           (size_t)from, (size_t)to, (size_t)bytes, 0, 0, 0);
  return code ? tw_device_failed(d, "a copy within the device failed", "", code) : TW_OK;
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
    const cl_object* base = next[0] ? &s->shared->weights : &s->arena;
    code |= s->f.set_argument(kernel, slot++, sizeof *base, base);
    code |= s->f.set_argument(kernel, slot++, sizeof *next, &next[1]);
  }
  for (int32_t n = 0; n < desc->symbol_count; ++n, ++next)
    code |= s->f.set_argument(kernel, slot++, sizeof *next, next);
  if (code == 0) code = s->f.enqueue(s->queue, kernel, 3, 0, global, local, 0, 0, 0);
  return code ? tw_device_failed(d, "cannot launch ", desc->function, code) : TW_OK;
}

static tw_status opencl_wait(tw_device* d) {
  cl_state* s = d->state;
  cl_code code = s->f.finish(s->queue);
  return code ? tw_device_failed(d, "the device failed", "", code) : TW_OK;
}

const tw_driver tw_opencl_driver = {.name = "opencl",
                                    .open = opencl_open,
                                    .close = opencl_close,
                                    .reserve = opencl_reserve,
                                    .write = opencl_write,
                                    .read = opencl_read,
                                    .launch = opencl_launch,
                                    .wait = opencl_wait,
                                    .move = opencl_move,
                                    .copy = opencl_copy};
