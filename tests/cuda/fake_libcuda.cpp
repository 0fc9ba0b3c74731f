// A libcuda.so.1 for tests: memory is the host's, and launches run in the emulator (emulator.h). It takes modules with the feature "emulated"
// (backends/cuda/form.h): object files, linked by the program that TW_FAKE_CUDA_LINKER names.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/emulator.h"

namespace {

enum Code : int32_t { kOk = 0, kInvalid = 1, kNoMemory = 2, kNoImage = 200, kNoContext = 201, kNotFound = 500, kLaunchFailed = 719 };
struct Device {
  int contexts = 0, current = 0;
  std::set<void*> memory;
  int launches = 0, modules = 0;
  tw::test::EmulatorCounts emulated;
  tw::test::EmulatorChoices choices;
  std::string problem;   // of the last launch
};
Device device;            // one a process, as the driver has

int32_t init(uint32_t) { return kOk; }
int32_t get_device(int32_t* out, int32_t ordinal) { return *out = ordinal, ordinal == 0 ? kOk : 101; }
int32_t attribute(int32_t* value, int32_t which, int32_t) {
  const char* chip = std::getenv("TW_FAKE_CUDA_CHIP");
  const int number = chip ? std::atoi(chip) : 80;
  if (which != 75 && which != 76) return kInvalid;
  return *value = which == 75 ? number / 10 : number % 10, kOk;
}
int32_t retain(void** context, int32_t) { return *context = &device, ++device.contexts, kOk; }
int32_t release(int32_t) { return --device.contexts >= 0 ? kOk : kNoContext; }
int32_t push(void* context) { return context == &device ? ++device.current, kOk : kNoContext; }
int32_t pop(void** context) { return *context = &device, --device.current >= 0 ? kOk : kNoContext; }

int32_t load(void** module, const void* image) {
  if (device.current == 0) return kNoContext;
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (std::memcmp(bytes, "\177ELF", 4) != 0) return kNoImage;
  uint64_t headers = 0;   // the section headers end the file
  uint16_t size = 0, count = 0;
  std::memcpy(&headers, bytes + 40, 8), std::memcpy(&size, bytes + 58, 2), std::memcpy(&count, bytes + 60, 2);
  const std::string stem = "/tmp/tilewright-fake-" + std::to_string(getpid()) + "-" + std::to_string(device.modules++), object = stem + ".o", library = stem + ".so";
  FILE* file = std::fopen(object.c_str(), "wb");
  if (!file) return kNoImage;
  std::fwrite(bytes, 1, headers + static_cast<uint64_t>(size) * count, file);
  std::fclose(file);
  const char* linker = std::getenv("TW_FAKE_CUDA_LINKER");
  const int status = std::system((std::string(linker ? linker : "ld") + " -shared -o " + library + " " + object).c_str());
  *module = status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(object.c_str());
  unlink(library.c_str());
  return *module ? kOk : kNoImage;
}
int32_t unload(void* module) { return dlclose(module), kOk; }
int32_t function(void** out, void* module, const char* name) { return (*out = dlsym(module, name)) ? kOk : kNotFound; }

int32_t allocate(uint64_t* at, size_t bytes) {
  if (device.current == 0) return kNoContext;
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!p) return kNoMemory;
  std::memset(p, 0xFF, bytes);
  device.memory.insert(p);
  return *at = reinterpret_cast<uintptr_t>(p), kOk;
}
int32_t release_memory(uint64_t at) {
  if (device.memory.erase(reinterpret_cast<void*>(at)) == 0) return kInvalid;
  return std::free(reinterpret_cast<void*>(at)), kOk;
}
int32_t copy_in(uint64_t to, const void* from, size_t bytes, void*) {
  return device.current ? std::memcpy(reinterpret_cast<void*>(to), from, bytes), kOk : kNoContext;
}
int32_t copy_out(void* to, uint64_t from, size_t bytes, void*) {
  return device.current ? std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kOk : kNoContext;
}
int32_t stream(void** out, uint32_t) { return *out = &device, kOk; }
int32_t close_stream(void*) { return kOk; }
int32_t wait(void*) { return device.current ? kOk : kNoContext; }

int32_t launch(void* kernel, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, uint32_t, void*, void** parameters, void**) {
  if (device.current == 0 || bx * by * bz == 0) return device.current ? kInvalid : kNoContext;
  ++device.launches;
  device.problem = tw::test::emulate({kernel, parameters, {gx, gy, gz}, {bx, by, bz}, device.choices}, device.emulated);
  return device.problem.empty() ? kOk : kLaunchFailed;
}

int32_t words(int32_t code, const char** text) { return *text = code == kNoImage ? "device kernel image is invalid" : "a failure of the fake driver", kOk; }

struct Name {
  const char* name;
  void* pointer;
};
template <class F>
Name named(const char* name, F* f) { return {name, reinterpret_cast<void*>(f)}; }

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t cuGetProcAddress(const char* name, void** pointer, int32_t, uint64_t) {
  static const Name names[] = {named("cuInit", init), named("cuDeviceGet", get_device), named("cuDeviceGetAttribute", attribute),
      named("cuDevicePrimaryCtxRetain", retain), named("cuDevicePrimaryCtxRelease", release), named("cuCtxPushCurrent", push),
      named("cuCtxPopCurrent", pop), named("cuModuleLoadData", load), named("cuModuleUnload", unload), named("cuModuleGetFunction", function),
      named("cuMemAlloc", allocate), named("cuMemFree", release_memory), named("cuMemcpyHtoDAsync", copy_in), named("cuMemcpyDtoHAsync", copy_out),
      named("cuStreamCreate", stream), named("cuStreamDestroy", close_stream), named("cuStreamSynchronize", wait), named("cuLaunchKernel", launch),
      named("cuGetErrorString", words)};
  for (const Name& entry : names)
    if (std::strcmp(entry.name, name) == 0) return *pointer = entry.pointer, kOk;
  return kNotFound;
}

// For tests: what is left, and what was done.
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_counts(int32_t* contexts, int32_t* current, int32_t* allocations, int32_t* launches, int32_t* barriers) {
  *contexts = device.contexts, *current = device.current, *allocations = static_cast<int32_t>(device.memory.size());
  *launches = device.launches, *barriers = device.emulated.barriers;
}
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_choose(const tw::test::EmulatorChoices* choices) { device.choices = *choices; }
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_emulated(tw::test::EmulatorCounts* counts) { *counts = device.emulated; }
extern "C" __attribute__((visibility("default"))) const char* tw_fake_cuda_problem() { return device.problem.c_str(); }
