/* driver MODEL.so NAME THREADS OUT_PREFIX [INPUT.raw ...]: runs an artifact for this machine and
 * writes its outputs to OUT_PREFIX0.raw, ... */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tilewright.h"

static size_t element_bytes(int dtype) {
  switch (dtype) {
    case TW_U8:
    case TW_I8:
    case TW_BOOL: return 1;
    case TW_F8E4M3FN:
    case TW_F8E4M3FNUZ:
    case TW_F8E5M2:
    case TW_F8E5M2FNUZ:
    case TW_F8E8M0: return 1;
    case TW_U4:
    case TW_I4:
    case TW_F4E2M1:
    case TW_U2:
    case TW_I2: return 1;
    case TW_U16:
    case TW_I16:
    case TW_F16:
    case TW_BF16: return 2;
    case TW_F32:
    case TW_I32:
    case TW_U32: return 4;
    default: return 8;
  }
}

static void fail(const char* what, const char* detail) {
  fprintf(stderr, "driver: %s: %s\n", what, detail);
  exit(1);
}

static tw_tensor tensor(const tw_tensor_info* info) {
  tw_tensor t = {0};
  t.bytes = element_bytes(info->dtype);
  for (int i = 0; i < info->rank; ++i) t.bytes *= (uint64_t)info->dims[i];
  t.data = aligned_alloc(64, (t.bytes + 63) / 64 * 64 + 64);
  t.dtype = info->dtype;
  t.rank = info->rank;
  t.dims = info->dims;
  return t;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("dlopen", dlerror());
  char symbol[256];
  snprintf(symbol, sizeof symbol, "tw_%s_query", argv[2]);
  tw_query_fn query = (tw_query_fn)(uintptr_t)dlsym(library, symbol);
  if (!query) fail("no query function", symbol);
  const tw_api* api = query(TW_ABI_VERSION);
  if (!api || api->input_count != argc - 5) fail("wrong number of inputs", argv[1]);
  tw_tensor inputs[16], outputs[16];
  for (int i = 0; i < api->input_count; ++i) {
    inputs[i] = tensor(&api->inputs[i]);
    FILE* f = fopen(argv[5 + i], "rb");
    if (!f || fread(inputs[i].data, 1, inputs[i].bytes, f) != inputs[i].bytes)
      fail("cannot read", argv[5 + i]);
    fclose(f);
  }
  for (int i = 0; i < api->output_count; ++i) outputs[i] = tensor(&api->outputs[i]);
  tw_options options = {0};
  options.size = sizeof options;
  options.threads = atoi(argv[3]);
  tw_context* context = NULL;
  tw_status status = api->create(&options, &context);
  if (status == TW_OK) status = api->run(context, inputs, outputs);
  if (status != TW_OK) fail(api->status_text(status), context ? api->last_error(context) : "");
  for (int i = 0; i < api->output_count; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s%d.raw", argv[4], i);
    FILE* f = fopen(path, "wb");
    if (!f || fwrite(outputs[i].data, 1, outputs[i].bytes, f) != outputs[i].bytes)
      fail("cannot write", path);
    fclose(f);
  }
  api->destroy(context);
  return 0;
}
