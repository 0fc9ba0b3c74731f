// A libcuda.so.1 for tests: memory is the host's, and launches run on the processor, a thread of the GPU a fiber. It takes modules with
// the feature "emulated" (backends/cuda/form.h): object files, linked by the program that TW_FAKE_CUDA_LINKER names. Blocks run one after
// the other, their shared memory begins as NaNs, and threads that do not all reach a barrier are a launch failure.
#include <dlfcn.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

enum Code : int32_t { kOk = 0, kInvalid = 1, kNoMemory = 2, kNoImage = 200, kNoContext = 201, kNotFound = 500, kLaunchFailed = 719 };
constexpr size_t kStack = 256 << 10, kSharedBytes = 48 << 10;
constexpr size_t kMostThreads = 1024;

struct State;
using Kernel = void (*)(State* state, void** parameters);

struct State {            // as backends/cuda/form.h says; then the emulator's own
  int64_t block[3], thread[3];
  void* shared;
  void (*barrier)(State* state);
  ucontext_t here;
  bool done;
  Kernel kernel;
  void** parameters;
};

struct Device {
  int contexts = 0, current = 0;
  std::set<void*> memory;
  int launches = 0, barriers = 0, modules = 0;
};
Device device;            // one a process, as the driver has
ucontext_t scheduler;

void meet(State* state) {
  ++device.barriers;
  swapcontext(&state->here, &scheduler);
}

void enter(uint32_t low, uint32_t high) {
  State* state = reinterpret_cast<State*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
  state->kernel(state, state->parameters);
  state->done = true;
}

void start(State& state, char* stack) {
  state.done = false;
  getcontext(&state.here);
  state.here.uc_stack.ss_sp = stack;
  state.here.uc_stack.ss_size = kStack;
  state.here.uc_link = &scheduler;
  const auto at = reinterpret_cast<uintptr_t>(&state);
  makecontext(&state.here, reinterpret_cast<void (*)()>(enter), 2, static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32));
}

// Rounds of all threads from one barrier to the next.
Code run_block(std::vector<State>& threads) {
  for (size_t done = 0; done < threads.size();) {
    for (State& t : threads)
      if (!t.done) swapcontext(&scheduler, &t.here);
    done = 0;
    for (const State& t : threads) done += t.done;
    if (done != 0 && done != threads.size()) return kLaunchFailed;
  }
  return kOk;
}

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
int32_t stream(void** out, uint32_t) { return *out = &scheduler, kOk; }
int32_t close_stream(void*) { return kOk; }
int32_t wait(void*) { return device.current ? kOk : kNoContext; }

int32_t launch(void* kernel, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, uint32_t, void*, void** parameters, void**) {
  const size_t count = size_t{bx} * by * bz;
  if (device.current == 0 || count == 0 || count > kMostThreads) return device.current ? kInvalid : kNoContext;
  ++device.launches;
  static std::unique_ptr<char[]> stacks(new char[kMostThreads * kStack]);
  alignas(64) static char shared[kSharedBytes];
  std::vector<State> threads(count);
  for (uint64_t b = 0; b < uint64_t{gx} * gy * gz; ++b) {
    std::memset(shared, 0xFF, sizeof shared);
    for (size_t t = 0; t < count; ++t) {
      State& s = threads[t];
      s.block[0] = static_cast<int64_t>(b % gx), s.block[1] = static_cast<int64_t>(b / gx % gy), s.block[2] = static_cast<int64_t>(b / gx / gy);
      s.thread[0] = static_cast<int64_t>(t % bx), s.thread[1] = static_cast<int64_t>(t / bx % by), s.thread[2] = static_cast<int64_t>(t / bx / by);
      s.shared = shared, s.barrier = meet, s.kernel = reinterpret_cast<Kernel>(kernel), s.parameters = parameters;
      start(s, stacks.get() + t * kStack);
    }
    if (Code code = run_block(threads)) return code;
  }
  return kOk;
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
  *launches = device.launches, *barriers = device.barriers;
}
