/* NVIDIA's driver API through libcuda, found at run time: the device's primary context, one stream, an arena and the weights as one
 * allocation each. Signatures and numbers are those of CUDA 12's driver API; the code is a table of images (backends/cuda/image.h). */
#include "device.h"

typedef int32_t cu_code;
typedef void* cu_object;      /* contexts, modules, functions, streams */
typedef uint64_t cu_address;
enum { kCuVersion = 12000, kCuMajor = 75, kCuMinor = 76, kCuNonBlocking = 1, kCuMostArguments = 512 };
enum { kCuCubin = 1, kCuCubinExact = 2, kCuPtx = 3, kCuHead = 8, kCuRecord = 24 };

typedef struct cu_functions {
  cu_code (*init)(uint32_t flags);
  cu_code (*device)(int32_t* device, int32_t ordinal);
  cu_code (*attribute)(int32_t* value, int32_t which, int32_t device);
  cu_code (*retain)(cu_object* context, int32_t device);
  cu_code (*release)(int32_t device);
  cu_code (*push)(cu_object context);
  cu_code (*pop)(cu_object* context);
  cu_code (*load)(cu_object* module, const void* image);
  cu_code (*unload)(cu_object module);
  cu_code (*function)(cu_object* function, cu_object module, const char* name);
  cu_code (*allocate)(cu_address* at, size_t bytes);
  cu_code (*free)(cu_address at);
  cu_code (*write)(cu_address to, const void* from, size_t bytes, cu_object stream);
  cu_code (*read)(void* to, cu_address from, size_t bytes, cu_object stream);
  cu_code (*stream)(cu_object* stream, uint32_t flags);
  cu_code (*close_stream)(cu_object stream);
  cu_code (*wait)(cu_object stream);
  cu_code (*launch)(cu_object function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                    uint32_t shared_bytes, cu_object stream, void** parameters, void** extra);
  cu_code (*words)(cu_code code, const char** text);
} cu_functions;

/* In the order of cu_functions, which holds nothing but pointers. */
static const char* const kCuNames[] = {
    "cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease", "cuCtxPushCurrent", "cuCtxPopCurrent",
    "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamCreate",
    "cuStreamDestroy", "cuStreamSynchronize", "cuLaunchKernel", "cuGetErrorString"};
_Static_assert(sizeof(cu_functions) == sizeof kCuNames, "a name for every function");

typedef struct cu_state {
  cu_functions f;
  uint64_t mapped_bytes;
  int32_t device, retained;
  cu_object context, stream, module;
  cu_address arena, weights;
  cu_object functions[];      /* of desc->launches */
} cu_state;

static tw_status cuda_failed(tw_device* d, const char* what, const char* which, cu_code code) {
  const cu_state* s = d->state;
  const char* words = 0;
  const int first = d->status == TW_OK;
  tw_device_failed(d, what, which, code);
  if (first && s && s->f.words && !s->f.words(code, &words) && words) {
    text_add(d->error, " (");
    text_add(d->error, words);
    text_add(d->error, ")");
  }
  return d->status;
}

/* The caller's own context is back after `leave`. */
static cu_code cuda_enter(cu_state* s) { return s->f.push(s->context); }
static cu_code cuda_leave(cu_state* s) {
  cu_object popped;
  return s->f.pop(&popped);
}

static tw_status cuda_find(tw_device* d, cu_state* s) {
  if (!dlopen || !dlsym) return tw_device_failed(d, "the program that loads this library has no dlopen", "", 0);
  void* library = dlopen("libcuda.so.1", 2 /* RTLD_NOW */);
  if (!library) return tw_device_failed(d, "no NVIDIA driver on this machine: ", "libcuda.so.1 is not found", 0);
  cu_code (*find)(const char* name, void** pointer, int32_t version, uint64_t flags) = 0;
  *(void**)&find = dlsym(library, "cuGetProcAddress");
  if (!find) return tw_device_failed(d, "the NVIDIA driver is too old: ", "no cuGetProcAddress", 0);
  void** pointers = (void**)&s->f;
  for (size_t i = 0; i < sizeof kCuNames / sizeof *kCuNames; ++i)
    if (find(kCuNames[i], &pointers[i], kCuVersion, 0) || !pointers[i]) {
      pointers[i] = 0;
      return tw_device_failed(d, "the NVIDIA driver is too old: it lacks ", kCuNames[i], 0);
    }
  return TW_OK;   /* the library stays loaded */
}

/* The best image for the chip: 0 when there is none. */
static int cuda_rank(uint32_t kind, uint32_t image, uint32_t chip) {
  if (kind == kCuCubinExact) return image == chip ? 3 : 0;
  if (kind == kCuCubin) return image / 10 == chip / 10 && image <= chip ? 2 : 0;
  return kind == kCuPtx && image <= chip;
}

static tw_status cuda_load_image(tw_device* d, cu_state* s, const uint8_t* record) {
  uint64_t at = 0, bytes = 0;
  memcpy(&at, record + 8, sizeof at);
  memcpy(&bytes, record + 16, sizeof bytes);
  void* aligned = tw_map(bytes);
  if (!aligned) return tw_device_failed(d, "no memory", "", 0);
  memcpy(aligned, d->desc->code + at, (size_t)bytes);
  cu_code code = s->f.load(&s->module, aligned);
  munmap(aligned, (size_t)bytes);
  return code ? cuda_failed(d, "the kernels do not load", "", code) : TW_OK;
}

static tw_status cuda_load(tw_device* d, cu_state* s) {
  int32_t major = 0, minor = 0;
  cu_code code = s->f.attribute(&major, kCuMajor, s->device);
  if (!code) code = s->f.attribute(&minor, kCuMinor, s->device);
  if (code) return cuda_failed(d, "no compute capability", "", code);
  const uint8_t *table = (const uint8_t*)d->desc->code, *best = 0;
  uint32_t count = 0;
  int rank = 0;
  if (d->desc->code_bytes >= kCuHead) memcpy(&count, table + 4, sizeof count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* record = table + kCuHead + (size_t)i * kCuRecord;
    uint32_t kind = 0, chip = 0;
    memcpy(&kind, record, sizeof kind);
    memcpy(&chip, record + 4, sizeof chip);
    const int here = cuda_rank(kind, chip, (uint32_t)(major * 10 + minor));
    if (here > rank) rank = here, best = record;
  }
  if (!best) return tw_device_failed(d, "the library has no code for this GPU's compute capability", "", major * 10 + minor);
  tw_status status = cuda_load_image(d, s, best);
  for (uint64_t i = 0; i < d->desc->launch_count && status == TW_OK; ++i) {
    code = s->f.function(&s->functions[i], s->module, d->desc->launches[i].function);
    if (code) status = cuda_failed(d, "no kernel ", d->desc->launches[i].function, code);
    if (d->desc->launches[i].buffer_count + d->desc->launches[i].symbol_count > kCuMostArguments)
      status = tw_device_failed(d, "too many arguments: ", d->desc->launches[i].function, 0);
  }
  return status;
}

/* With the context current. */
static tw_status cuda_fill(tw_device* d, cu_state* s, const uint8_t* weights) {
  cu_code code = s->f.stream(&s->stream, kCuNonBlocking);
  if (code) return cuda_failed(d, "no stream", "", code);
  if (d->desc->weight_bytes) {
    code = s->f.allocate(&s->weights, (size_t)d->desc->weight_bytes);
    if (!code) code = s->f.write(s->weights, weights, (size_t)d->desc->weight_bytes, s->stream);
    if (!code) code = s->f.wait(s->stream);
    if (code) return cuda_failed(d, "the weights do not fit", "", code);
  }
  return cuda_load(d, s);
}

static tw_status cuda_open(tw_device* d, const uint8_t* weights) {
  uint64_t bytes = sizeof(cu_state) + (uint64_t)d->desc->launch_count * sizeof(cu_object);
  cu_state* s = tw_map(bytes);
  if (!s) return tw_device_failed(d, "no memory", "", 0);
  s->mapped_bytes = bytes;
  d->state = s;
  tw_status status = cuda_find(d, s);
  if (status != TW_OK) return status;
  cu_code code = s->f.init(0);
  if (!code) code = s->f.device(&s->device, 0);
  if (code) return cuda_failed(d, "there is no GPU", "", code);
  code = s->f.retain(&s->context, s->device);
  if (code) return cuda_failed(d, "the GPU gives no context", "", code);
  s->retained = 1;
  code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  status = cuda_fill(d, s, weights);
  cuda_leave(s);
  return status;
}

static void cuda_close(tw_device* d) {
  cu_state* s = d->state;
  if (!s) return;
  if (s->retained) {
    const cu_code entered = cuda_enter(s);
    if (s->stream) s->f.wait(s->stream);
    if (s->module) s->f.unload(s->module);
    if (s->arena) s->f.free(s->arena);
    if (s->weights) s->f.free(s->weights);
    if (s->stream) s->f.close_stream(s->stream);
    if (!entered) cuda_leave(s);
    s->f.release(s->device);
  }
  munmap(s, (size_t)s->mapped_bytes);
  d->state = 0;
}

static tw_status cuda_reserve(tw_device* d, uint64_t bytes) {
  cu_state* s = d->state;
  cu_code code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  if (s->arena) code = s->f.free(s->arena);
  s->arena = 0;
  if (!code) code = s->f.allocate(&s->arena, (size_t)bytes);
  cuda_leave(s);
  return code ? cuda_failed(d, "no memory for the arena", "", code) : TW_OK;
}

static tw_status cuda_write(tw_device* d, int64_t at, const void* from, int64_t bytes) {
  cu_state* s = d->state;
  cu_code code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  code = s->f.write(s->arena + (uint64_t)at, from, (size_t)bytes, s->stream);
  cuda_leave(s);
  return code ? cuda_failed(d, "a copy to the device failed", "", code) : TW_OK;
}

static tw_status cuda_read(tw_device* d, int64_t at, void* to, int64_t bytes) {
  cu_state* s = d->state;
  cu_code code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  code = s->f.read(to, s->arena + (uint64_t)at, (size_t)bytes, s->stream);
  cuda_leave(s);
  return code ? cuda_failed(d, "a copy from the device failed", "", code) : TW_OK;
}

static tw_status cuda_launch(tw_device* d, int32_t index, const int64_t* arguments) {
  cu_state* s = d->state;
  const tw_launch_desc* desc = &d->desc->launches[index];
  uint32_t grid[3], block[3];
  for (int i = 0; i < 3; ++i) {
    if (arguments[i] == 0) return TW_OK;
    block[i] = (uint32_t)arguments[3 + i];
    grid[i] = (uint32_t)arguments[i];
  }
  uint64_t values[kCuMostArguments];
  void* parameters[kCuMostArguments];
  const int64_t* next = arguments + 6;
  int32_t count = 0;
  for (int32_t b = 0; b < desc->buffer_count; ++b, next += 2) values[count++] = (next[0] ? s->weights : s->arena) + (uint64_t)next[1];
  for (int32_t n = 0; n < desc->symbol_count; ++n) values[count++] = (uint64_t)*next++;
  for (int32_t i = 0; i < count; ++i) parameters[i] = &values[i];
  cu_code code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  code = s->f.launch(s->functions[index], grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, s->stream, parameters, 0);
  cuda_leave(s);
  return code ? cuda_failed(d, "cannot launch ", desc->function, code) : TW_OK;
}

static tw_status cuda_wait(tw_device* d) {
  cu_state* s = d->state;
  cu_code code = cuda_enter(s);
  if (code) return cuda_failed(d, "the GPU's context is not taken", "", code);
  code = s->f.wait(s->stream);
  cuda_leave(s);
  return code ? cuda_failed(d, "the device failed", "", code) : TW_OK;
}

const tw_driver tw_cuda_driver = {"cuda", cuda_open, cuda_close, cuda_reserve, cuda_write, cuda_read, cuda_launch, cuda_wait};
