/* kernel_runner LIBRARY SYMBOL WORKSPACE FILE...: runs a kernel with WORKSPACE bytes of workspace
 * on buffers that hold the files' bytes, and writes them back. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*kernel)(void* const* buffers, void* workspace, const int64_t* symbols);

int main(int argc, char** argv) {
  void *buffers[16], *library = argc > 4 ? dlopen(argv[1], RTLD_NOW) : 0;
  if (!library) return printf("%s\n", argc > 4 ? dlerror() : "no files"), 1;
  long sizes[16];
  for (int i = 4; i < argc && i < 20; ++i) {
    FILE* file = fopen(argv[i], "rb");
    if (!file || fseek(file, 0, SEEK_END)) return 2;
    sizes[i - 4] = ftell(file);
    rewind(file);
    buffers[i - 4] = aligned_alloc(64, ((size_t)sizes[i - 4] + 63) / 64 * 64);
    if (fread(buffers[i - 4], 1, (size_t)sizes[i - 4], file) != (size_t)sizes[i - 4]) return 3;
    fclose(file);
  }
  ((kernel)dlsym(library, argv[2]))(buffers,
                                    aligned_alloc(64, ((size_t)atol(argv[3]) + 127) / 64 * 64), 0);
  for (int i = 4; i < argc && i < 20; ++i) {
    FILE* file = fopen(argv[i], "wb");
    if (!file || fwrite(buffers[i - 4], 1, (size_t)sizes[i - 4], file) != (size_t)sizes[i - 4])
      return 4;
    fclose(file);
  }
  return 0;
}
