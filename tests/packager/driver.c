/* driver LIBRARY THREADS: runs the fake model from a plain C program, also with musl and on other
 * machines. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tilewright.h"

int main(int count, char** arguments) {
  static float a[4000], b[4000], c[2000], y[4000];
  int64_t rows[2] = {1000, 4}, twice[1] = {2000}, n = 0;
  tw_options options;
  tw_context* context = NULL;
  tw_query_fn query;
  const tw_api* api;
  void* library;
  int i, round;
  if (count != 3 || !(library = dlopen(arguments[1], RTLD_NOW))) {
    printf("cannot load: %s\n", count == 3 ? dlerror() : "arguments");
    return 1;
  }
  *(void**)&query = dlsym(library, "tw_fake_query");
  if (!query || !(api = query(TW_ABI_VERSION))) return 2;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.threads = atoi(arguments[2]);
  i = api->create(&options, &context);
  if (i != TW_OK) {
    printf("create: %s\n", api->status_text((tw_status)i));
    return 3;
  }
  for (i = 0; i < 4000; ++i) a[i] = (float)i, b[i] = 2.0f * (float)i, c[i / 2] = (float)(i / 2);
  for (round = 0; round < 50; ++round) {
    tw_tensor inputs[3], outputs[2];
    memset(inputs, 0, sizeof inputs);
    memset(outputs, 0, sizeof outputs);
    inputs[0].data = a, inputs[0].bytes = sizeof a, inputs[0].dtype = TW_F32, inputs[0].rank = 2,
    inputs[0].dims = rows;
    inputs[1].data = b, inputs[1].bytes = sizeof b, inputs[1].dtype = TW_F32, inputs[1].rank = 2,
    inputs[1].dims = rows;
    inputs[2].data = c, inputs[2].bytes = sizeof c, inputs[2].dtype = TW_F32, inputs[2].rank = 1,
    inputs[2].dims = twice;
    outputs[0].data = y, outputs[0].bytes = sizeof y, outputs[0].dtype = TW_F32,
    outputs[0].rank = 2;
    outputs[1].data = &n, outputs[1].bytes = sizeof n, outputs[1].dtype = TW_I64;
    if (api->run(context, inputs, outputs) != TW_OK) {
      printf("run: %s\n", api->last_error(context));
      return 4;
    }
    for (i = 0; i < 4000; ++i)
      if (y[i] != a[i] + b[i] + 100.0f * (float)(i % 4 + 1) + c[i / 4 * 2]) return 5;
    memset(y, 0, sizeof y);
  }
  rows[1] = 5;
  {
    tw_tensor inputs[3], outputs[2];
    memset(inputs, 0, sizeof inputs);
    memset(outputs, 0, sizeof outputs);
    inputs[0].data = a, inputs[0].bytes = sizeof a, inputs[0].dtype = TW_F32, inputs[0].rank = 2,
    inputs[0].dims = rows;
    if (api->run(context, inputs, outputs) != TW_E_SHAPE) return 6;
    printf("%s; ", api->last_error(context));
  }
  api->destroy(context);
  dlclose(library);
  printf("right\n");
  return n == 1000 ? 0 : 7;
}
