/* Opens and closes a CUDA device: libcuda, found at run time, the primary context of device 0, the
 * modules of desc->code (backends/cuda/image.h), and the weights. */
#include "cuda.h"

enum { kCuCubin = 1, kCuCubinExact = 2, kCuPtx = 3, kCuHead = 8, kCuRecordBytes = 32 };

static tw_status cuda_find(tw_device* d, cu_state* s) {
  static const char* const library_name = "libcuda.so.1";
  void* library = tw_device_library(d, &library_name, 1,
                                    "no NVIDIA driver on this machine, not found: ");
  if (!library) return TW_E_DEVICE;
  cu_code (*find)(const char* name, void** pointer, int32_t version, uint64_t flags) = 0;
  *(void**)&find = dlsym(library, "cuGetProcAddress");
  if (!find) return tw_device_failed(d, "the NVIDIA driver is too old: ", "no cuGetProcAddress", 0);
  void** pointers = (void**)&s->f;
  for (size_t i = 0; i < sizeof kCuNames / sizeof *kCuNames; ++i)
    if (find(kCuNames[i], &pointers[i], kCuVersion, 0) || !pointers[i]) {
      pointers[i] = 0;
      return tw_device_failed(d, "the NVIDIA driver is too old: it lacks ", kCuNames[i], 0);
    }
  return TW_OK;
}

/* How well an image fits the chip; 0: not at all. */
static int cuda_rank(uint32_t kind, uint32_t image, uint32_t chip) {
  if (kind == kCuCubinExact) return image == chip ? 3 : 0;
  if (kind == kCuCubin) return image / 10 == chip / 10 && image <= chip ? 2 : 0;
  return kind == kCuPtx && image <= chip;
}

typedef struct cu_image {
  uint32_t kind, chip, first, count; /* it has the functions of `count` launches from `first` on */
  uint64_t at, bytes;
} cu_image;
_Static_assert(sizeof(cu_image) == kCuRecordBytes, "as backends/cuda/image.h says");

/* The best of the images that have this launch's function, and its rank. */
static int cuda_best_image(const tw_device_desc* desc, uint64_t launch, uint32_t chip,
                           cu_image* best) {
  uint32_t count = 0;
  int rank = 0;
  if (desc->code_bytes >= kCuHead) memcpy(&count, desc->code + 4, sizeof count);
  for (uint32_t i = 0; i < count; ++i) {
    cu_image image;
    memcpy(&image, desc->code + kCuHead + (size_t)i * kCuRecordBytes, sizeof image);
    if (launch < image.first || launch - image.first >= image.count) continue;
    const int here = cuda_rank(image.kind, image.chip, chip);
    if (here > rank) rank = here, *best = image;
  }
  return rank;
}

static tw_status cuda_load_image(tw_device* d, const cu_image* image, cu_object* module) {
  cu_state* s = d->state;
  void* aligned = tw_map(image->bytes);
  if (!aligned) return tw_device_failed(d, "no memory", "", 0);
  memcpy(aligned, d->desc->code + image->at, (size_t)image->bytes);
  cu_code code = s->f.load(module, aligned);
  munmap(aligned, (size_t)image->bytes);
  return code ? cuda_failed(d, "the kernels do not load", "", code) : TW_OK;
}

static tw_status cuda_load(tw_device* d) {
  cu_state* s = d->state;
  int32_t major = 0, minor = 0;
  cu_image image = {0, 0, 0, 0, 0, 0};
  cu_code code = s->f.attribute(&major, kCuMajor, s->device);
  if (!code) code = s->f.attribute(&minor, kCuMinor, s->device);
  if (code) return cuda_failed(d, "no compute capability", "", code);
  for (uint64_t i = 0; i < d->desc->launch_count; ++i) {
    const tw_launch_desc* launch = &d->desc->launches[i];
    if (i >= (uint64_t)image.first + image.count) {
      if (!cuda_best_image(d->desc, i, (uint32_t)(major * 10 + minor), &image))
        return tw_device_failed(d, "the library has no code for this GPU's compute capability", "",
                                major * 10 + minor);
      tw_status status = cuda_load_image(d, &image, &s->modules[image.first]);
      if (status != TW_OK) return status;
    }
    code = s->f.function(&s->functions[i], s->modules[image.first], launch->function);
    if (code) return cuda_failed(d, "no kernel ", launch->function, code);
    if (launch->buffer_count + launch->symbol_count > kCuMostArguments)
      return tw_device_failed(d, "too many arguments: ", launch->function, 0);
  }
  return TW_OK;
}

static tw_status cuda_take_stream(tw_device* d, const tw_queue* queue) {
  cu_state* s = d->state;
  cu_object context = 0;
  cu_code code = 0;
  if (!queue) {
    code = s->f.stream(&s->stream, kCuNonBlocking);
    if (code) return cuda_failed(d, "no stream", "", code);
    s->stream_is_ours = 1;
  } else {
    code = s->f.stream_context(queue->handle, &context);
    if (code) return cuda_failed(d, "options.queue is no stream", "", code);
    if (context != s->context)
      return tw_device_failed(
          d, "options.queue is a stream of another context than the primary one of device 0", "",
          0);
    s->stream = queue->handle;
  }
  s->entered = 1;
  return TW_OK;
}

/* Fills the state; the context is current. */
static tw_status cuda_fill(tw_device* d, const uint8_t* weights, const tw_queue* queue) {
  cu_state* s = d->state;
  tw_status status = cuda_take_stream(d, queue);
  if (status != TW_OK) return status;
  if (d->desc->weight_bytes) {
    cu_code code = s->f.allocate(&s->weights, (size_t)d->desc->weight_bytes);
    if (!code) code = s->f.write(s->weights, weights, (size_t)d->desc->weight_bytes, s->stream);
    if (!code) code = s->f.wait(s->stream);
    if (code) return cuda_failed(d, "the weights do not fit", "", code);
  }
  return cuda_load(d);
}

static tw_status cuda_open(tw_device* d, const uint8_t* weights, const tw_queue* queue) {
  const uint64_t launches = d->desc->launch_count, calls = (uint64_t)tw_model->call_count,
                 symbols = (uint64_t)tw_model->symbol_count;
  cu_state* s = tw_device_state(d, sizeof(cu_state) + 2 * launches * sizeof(cu_object) +
                                       calls * sizeof(cu_segment) + symbols * sizeof(int64_t) +
                                       kCuMostChains * sizeof(cu_chain) +
                                       (kCuMostWaiting + kCuChainWords) * sizeof(uint64_t));
  if (!s) return TW_E_DEVICE;
  s->symbols = (int64_t*)(s + 1);
  s->segments = (cu_segment*)(s->symbols + symbols);
  s->functions = (cu_object*)(s->segments + calls);
  s->modules = s->functions + launches;
  s->chains = (cu_chain*)(s->modules + launches);
  s->waiting = (uint64_t*)(s->chains + kCuMostChains);
  s->chain_memory = s->waiting + kCuMostWaiting;
  tw_status status = cuda_find(d, s);
  if (status != TW_OK) return status;
  cu_code code = s->f.init(0);
  if (!code) code = s->f.device(&s->device, 0);
  if (code) return cuda_failed(d, "there is no GPU", "", code);
  code = s->f.retain(&s->context, s->device);
  if (code) return cuda_failed(d, "the GPU gives no context", "", code);
  s->retained = 1;
  status = cuda_enter(d);
  if (status != TW_OK) return status;
  status = cuda_fill(d, weights, queue);
  cuda_leave(d);
  return status;
}

static void cuda_close(tw_device* d) {
  cu_state* s = d->state;
  if (!s->retained) return;
  const tw_status status = cuda_enter(d);
  if (s->entered) s->f.wait(s->stream);
  cuda_forget(s);
  cuda_forget_chains(s);
  for (uint64_t i = 0; i < d->desc->launch_count; ++i)
    if (s->modules[i]) s->f.unload(s->modules[i]);
  if (s->arena) s->f.free(s->arena);
  if (s->weights) s->f.free(s->weights);
  if (s->stream_is_ours) s->f.close_stream(s->stream);
  if (status == TW_OK) cuda_leave(d);
  s->f.release(s->device);
}
