/* cold_start LIBRARY THREADS: loads a library whose model has fixed sizes, runs it once on zeros
 * and prints the first element of its output. cold_start.py times the process. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/tilewright.h"

static tw_tensor tensor_of(const tw_tensor_info* info, size_t element) {
  tw_tensor t = {NULL, element, info->dtype, info->rank, info->dims};
  for (int32_t d = 0; d < info->rank; ++d) t.bytes *= (uint64_t)info->dims[d];
  t.data = calloc(1, t.bytes);
  return t;
}

int main(int count, char** arguments) {
  void* library = count == 3 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  const tw_query_fn query = library ? (tw_query_fn)dlsym(library, TW_QUERY_SYMBOL) : NULL;
  const tw_api* api = query ? query(TW_ABI_VERSION) : NULL;
  tw_options options = {.size = sizeof options, .threads = count == 3 ? atoi(arguments[2]) : 1};
  tw_context* context = NULL;
  if (!api || api->input_count != 1 || api->output_count != 1 || api->symbol_count) return 2;
  if (api->inputs[0].dtype != TW_F32 || api->outputs[0].dtype != TW_F32) return 2;
  if (api->create(&options, &context) != TW_OK) return 3;
  const tw_tensor input = tensor_of(&api->inputs[0], 4), output = tensor_of(&api->outputs[0], 4);
  if (api->run(context, &input, &output) != TW_OK) return 4;
  printf("%g\n", (double)*(const float*)output.data);
  return 0;
}
