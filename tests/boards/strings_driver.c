/* strings_driver MODEL.so TEXT...: runs a library of one input, the texts as a vector, and prints
 * its outputs, an element a line. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/tilewright.h"

#if UINTPTR_MAX == UINT64_MAX
#define TEXT(string) (string)
#else
#define TEXT(string) ((string).text)
#endif

static void fail(const char* what, const char* detail) {
  fprintf(stderr, "%s: %s\n", what, detail);
  exit(1);
}

static void print(const tw_tensor_info* info, const void* data, int64_t i) {
  const char* text = info->dtype == TW_STRING ? TEXT(((const tw_string*)data)[i]) : 0;
  if (info->dtype == TW_STRING) printf("%s\n", text ? text : "");
  else if (info->dtype == TW_I64) printf("%" PRId64 "\n", ((const int64_t*)data)[i]);
  else printf("%.6g\n", (double)((const float*)data)[i]);
}

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
  if (!library) fail("dlopen", dlerror());
  const tw_api* api = ((tw_query_fn)(uintptr_t)dlsym(library, TW_QUERY_SYMBOL))(TW_ABI_VERSION);
  const int64_t count = argc - 2;
  tw_string texts[64];
  for (int64_t i = 0; i < count; ++i) TEXT(texts[i]) = argv[2 + i];
  const tw_tensor input = {
      .data = texts, .bytes = 8 * (uint64_t)count, .dtype = TW_STRING, .rank = 1, .dims = &count};
  tw_tensor outputs[4] = {0};
  uint64_t memory[4][256];
  int64_t dims[8];
  tw_context* context = 0;
  if (api->create(0, &context) != TW_OK) fail("create", api->last_error(0));
  for (int32_t i = 0; i < api->output_count; ++i) {
    outputs[i] = (tw_tensor){.data = memory[i],
                             .bytes = sizeof memory[i],
                             .dtype = api->outputs[i].dtype,
                             .rank = api->outputs[i].rank};
    api->output_dims(i, &count, dims);
    for (int32_t d = 0; d < api->outputs[i].rank; ++d)
      if (dims[d] < 0) outputs[i].data = 0, outputs[i].bytes = 0;
  }
  if (api->run(context, &input, outputs) != TW_OK) fail("run", api->last_error(context));
  for (int32_t i = 0; i < api->output_count; ++i) {
    void* data = 0;
    if (api->output_of_run(context, i, dims, &data) != TW_OK)
      fail("output_of_run", api->last_error(context));
    int64_t elements = 1;
    for (int32_t d = 0; d < api->outputs[i].rank; ++d) elements *= dims[d];
    for (int64_t e = 0; e < elements; ++e) print(&api->outputs[i], data, e);
  }
  api->destroy(context);
  return 0;
}
