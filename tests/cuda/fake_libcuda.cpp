// A libcuda.so.1 for tests: device memory is the host's, and launches run in the emulator
// (emulator.h). It takes modules with the feature "emulated" (backends/cuda/form.h): object files,
// linked by the program that TW_FAKE_CUDA_LINKER names. A stream is a list that runs only when a
// caller waits, and independent nodes of a graph run in the least expected order. So code that
// needs more than the API promises fails. A broken rule is an error code and is kept for tests to
// see: a handle of the wrong kind or of a dead object, no context or a foreign one, memory or
// modules freed while work waits for them, an unsafe call while a stream captures. With
// TW_FAKE_CUDA_STRICT set, a broken rule, or an object left at the end, sets the exit status of the
// process.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/emulator.h"
#include "tests/cuda/fake_counts.h"

namespace {

using tw::test::FakeCounts;
enum Code : int32_t {
  kOk = 0,
  kInvalid = 1,
  kNoMemory = 2,
  kNoImage = 200,
  kNoContext = 201,
  kBadHandle = 400,
  kNotFound = 500,
  kLaunchFailed = 719,
  kUnsupportedCapture = 900
};
enum class Kind { context, module, function, stream, graph, node, executable };
const char* const kKinds[] = {"context", "module", "function",        "stream",
                              "graph",   "node",   "executable graph"};

using Work = std::function<int32_t()>;
using Size = std::array<uint32_t, 3>;
struct Object {
  Kind kind;
  Object* owner;  // stream: its context; function: its module; node: its graph
  bool alive = true;
  void* library = nullptr;   // module: dlopen's handle; function: its address
  std::vector<Work> work{};  // stream: waiting work; graph and executable: work of each node
  std::vector<std::vector<size_t>> after{};  // graph and executable: nodes before a node
  std::vector<Object*> nodes{};              // graph
  Object* capture = nullptr;                 // stream: the graph that captures its work
  int users = 0;                             // context: how often it is retained
};

class Driver {
 public:
  ~Driver() {
    if (!std::getenv("TW_FAKE_CUDA_STRICT")) return;
    const FakeCounts left = counts();
    if (left.contexts || left.allocations || left.streams || left.modules || left.graphs ||
        left.executables || left.pending)
      breach("something is left at the end");
    if (breaches.empty()) return;
    std::fprintf(stderr, "fake libcuda: %s\n", breaches.c_str());
    _exit(99);
  }

  int32_t breach(const std::string& what, int32_t code = kInvalid) {
    breaches += (breaches.empty() ? "" : "; ") + what;
    return code;
  }
  Object* make(Kind kind, Object* owner) {
    auto made = std::make_unique<Object>(Object{kind, owner});
    return (objects[made.get()] = std::move(made)).get();
  }
  // Returns null if the handle is not of a live object of this kind.
  Object* find(void* handle, Kind kind) {
    const auto found = objects.find(handle);
    Object* o = found == objects.end() ? nullptr : found->second.get();
    if (o && o->kind == kind && o->alive && (!o->owner || o->owner->alive)) return o;
    breach(std::string("a ") + kKinds[static_cast<int>(kind)] + " that is none");
    return nullptr;
  }
  Object* current() { return stack.empty() ? nullptr : stack.back(); }
  bool capturing() const {
    for (const auto& [handle, o] : objects)
      if (o->kind == Kind::stream && o->capture) return true;
    return false;
  }
  int32_t check(const char* call, bool unsafe = false) {
    if (!current()) return breach(std::string(call) + " without a context", kNoContext);
    return unsafe && capturing()
               ? breach(std::string(call) + " while a stream captures", kUnsupportedCapture)
               : kOk;
  }
  Object* stream(void* handle) {  // NULL: the context's own
    if (handle) {
      Object* s = find(handle, Kind::stream);
      if (s && s->owner != current()) breach("a stream of another context");
      return s;
    }
    Object*& own = default_streams[current()];
    return own ? own : own = make(Kind::stream, current());
  }
  int pending() const {
    size_t n = 0;
    for (const auto& [handle, o] : objects)
      if (o->kind == Kind::stream) n += o->work.size();
    return static_cast<int>(n);
  }
  bool inside(uint64_t at, size_t bytes) const {
    for (const auto& [from, size] : memory)
      if (at >= from && at - from <= size && bytes <= size - (at - from)) return true;
    return false;
  }

  // Counts down, and returns true for the call that must fail.
  bool fails() { return fails_in > 0 && --fails_in == 0; }

  FakeCounts counts() const {
    FakeCounts c = done;
    for (const auto& [handle, o] : objects) {
      if (!o->alive) continue;
      c.contexts += o->kind == Kind::context ? o->users : 0;
      c.modules += o->kind == Kind::module;
      c.graphs += o->kind == Kind::graph;
      c.executables += o->kind == Kind::executable;
      c.streams += o->kind == Kind::stream;
    }
    for (const auto& [context, own] : default_streams) c.streams -= own->alive;
    c.current = static_cast<int32_t>(stack.size());
    c.allocations = static_cast<int32_t>(memory.size());
    c.barriers = emulated.barriers;
    c.pending = pending();
    return c;
  }

  // Dead objects stay too, so that no handle is used again.
  std::map<void*, std::unique_ptr<Object>> objects;
  std::map<Object*, Object*> default_streams;
  std::map<uint64_t, size_t> memory;
  // Freed memory stays allocated, so that stale addresses do no harm.
  std::vector<std::unique_ptr<char, decltype(&std::free)>> freed;
  Object* primary = nullptr;
  std::vector<Object*> stack;
  int fails_in = 0;
  FakeCounts done;
  tw::test::EmulatorCounts emulated;
  tw::test::EmulatorChoices choices;
  std::string problem;  // error of the last launch
  std::string breaches;
};
Driver driver;

// Adds work to a stream, or to the graph that captures it.
int32_t enqueue(void* handle, Work work) {
  Object* s = driver.stream(handle);
  if (!s) return kBadHandle;
  if (!s->capture) return s->work.push_back(std::move(work)), kOk;
  Object* g = s->capture;
  g->after.push_back(g->work.empty() ? std::vector<size_t>{}
                                     : std::vector<size_t>{g->work.size() - 1});
  return g->work.push_back(std::move(work)), kOk;
}

Work launch_work(Object* function, const Size& grid, const Size& block, void** parameters) {
  std::vector<uint64_t> values;  // values at the time of the call
  for (; *parameters; ++parameters) {
    values.emplace_back();
    std::memcpy(&values.back(), *parameters, sizeof(uint64_t));
  }
  return [=, choices = driver.choices]() mutable -> int32_t {
    if (!function->owner->alive) return driver.breach("a launch from a module that is gone");
    std::vector<void*> pointers;
    for (uint64_t& v : values) pointers.push_back(&v);
    ++driver.done.launches;
    tw::test::EmulatedLaunch launch{function->library, pointers.data()};
    launch.choices = choices;
    std::memcpy(launch.grid, grid.data(), sizeof launch.grid),
        std::memcpy(launch.block, block.data(), sizeof launch.block);
    driver.problem = tw::test::emulate(launch, driver.emulated);
    return driver.problem.empty() ? kOk : kLaunchFailed;
  };
}

// Runs all nodes, each after its predecessors. Of several ready nodes, the last one runs first.
int32_t run_graph(const std::vector<Work>& work, const std::vector<std::vector<size_t>>& after) {
  std::vector<bool> done(work.size());
  const auto ready = [&](size_t n) {
    bool all = !done[n];
    for (const size_t before : after[n]) all = all && done[before];
    return all;
  };
  for (size_t left = work.size(); left > 0; --left) {
    size_t n = work.size();
    while (n > 0 && !ready(n - 1)) --n;
    if (n == 0) return driver.breach("a graph with a circle");
    if (const int32_t code = work[n - 1]()) return code;
    done[n - 1] = true;
  }
  return kOk;
}

int32_t init(uint32_t) { return kOk; }
int32_t get_device(int32_t* out, int32_t ordinal) {
  return *out = ordinal, ordinal == 0 ? kOk : 101;
}
int32_t attribute(int32_t* value, int32_t which, int32_t) {
  const char* chip = std::getenv("TW_FAKE_CUDA_CHIP");
  const int number = chip ? std::atoi(chip) : 80;
  if (which != 75 && which != 76) return kInvalid;
  return *value = which == 75 ? number / 10 : number % 10, kOk;
}
int32_t retain(void** context, int32_t) {
  if (!driver.primary) driver.primary = driver.make(Kind::context, nullptr);
  return ++driver.primary->users, *context = driver.primary, kOk;
}
int32_t release(int32_t) {
  if (!driver.primary) return driver.breach("no primary context to release", kNoContext);
  if (--driver.primary->users == 0) driver.primary->alive = false, driver.primary = nullptr;
  return kOk;
}
int32_t create_context(void** context, uint32_t, int32_t) {
  return (driver.stack.push_back(driver.make(Kind::context, nullptr)),
          *context = driver.stack.back()),
         kOk;
}
int32_t push(void* context) {
  Object* c = driver.find(context, Kind::context);
  return c ? driver.stack.push_back(c), kOk : kNoContext;
}
int32_t pop(void** context) {
  if (driver.stack.empty()) return driver.breach("no context to pop", kNoContext);
  return *context = driver.stack.back(), driver.stack.pop_back(), kOk;
}

// Returns null if the image is no object file or does not link.
void* load_emulated(const void* image) {
  static int modules = 0;
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (std::memcmp(bytes, "\177ELF", 4) != 0) return nullptr;
  uint64_t headers = 0;  // the section headers end the file
  uint16_t size = 0, count = 0;
  std::memcpy(&headers, bytes + 40, 8), std::memcpy(&size, bytes + 58, 2),
      std::memcpy(&count, bytes + 60, 2);
  const std::string stem = "/tmp/tilewright-fake-" + std::to_string(getpid()) + "-" +
                           std::to_string(modules++),
                    object = stem + ".o", library = stem + ".so";
  FILE* file = std::fopen(object.c_str(), "wb");
  if (!file) return nullptr;
  std::fwrite(bytes, 1, headers + static_cast<uint64_t>(size) * count, file);
  std::fclose(file);
  const char* linker = std::getenv("TW_FAKE_CUDA_LINKER");
  const int status = std::system(
      (std::string(linker ? linker : "ld") + " -shared -o " + library + " " + object).c_str());
  void* loaded = status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(object.c_str());
  unlink(library.c_str());
  return loaded;
}

int32_t load(void** module, const void* image) {
  if (const int32_t code = driver.check("cuModuleLoadData", true)) return code;
  void* library = load_emulated(image);
  if (!library) return kNoImage;
  Object* m = driver.make(Kind::module, driver.current());
  return m->library = library, *module = m, kOk;
}
int32_t unload(void* module) {
  if (const int32_t code = driver.check("cuModuleUnload", true)) return code;
  Object* m = driver.find(module, Kind::module);
  if (!m) return kBadHandle;
  if (driver.pending()) return driver.breach("a module goes while work waits");
  return m->alive = false, dlclose(m->library), kOk;
}
int32_t function(void** out, void* module, const char* name) {
  Object* m = driver.find(module, Kind::module);
  void* address = m ? dlsym(m->library, name) : nullptr;
  if (!address) return m ? kNotFound : kBadHandle;
  Object* f = driver.make(Kind::function, m);
  return f->library = address, *out = f, kOk;
}

int32_t allocate(uint64_t* at, size_t bytes) {
  if (const int32_t code = driver.check("cuMemAlloc", true)) return code;
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!p) return kNoMemory;
  std::memset(p, 0xFF, bytes);
  return *at = reinterpret_cast<uintptr_t>(p), driver.memory[*at] = bytes, kOk;
}
int32_t release_memory(uint64_t at) {
  if (const int32_t code = driver.check("cuMemFree", true)) return code;
  if (driver.pending()) driver.breach("memory goes while work waits");
  const auto found = driver.memory.find(at);
  if (found == driver.memory.end()) return driver.breach("memory that is none is freed");
  std::memset(reinterpret_cast<void*>(at), 0xFF, found->second);
  driver.freed.emplace_back(reinterpret_cast<char*>(at), &std::free);
  return driver.memory.erase(found), kOk;
}
int32_t copy(const char* call, uint64_t to, uint64_t from, size_t bytes, void* stream,
             bool to_device, bool from_device) {
  if (const int32_t code = driver.check(call)) return code;
  if ((to_device && !driver.inside(to, bytes)) || (from_device && !driver.inside(from, bytes)))
    return driver.breach(std::string(call) + " outside the device's memory");
  return enqueue(stream, [=]() -> int32_t {
    return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes),
           kOk;
  });
}
int32_t copy_in(uint64_t to, const void* from, size_t bytes, void* stream) {
  return copy("cuMemcpyHtoDAsync", to, reinterpret_cast<uintptr_t>(from), bytes, stream, true,
              false);
}
int32_t copy_out(void* to, uint64_t from, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoHAsync", reinterpret_cast<uintptr_t>(to), from, bytes, stream, false,
              true);
}
int32_t copy_on(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoDAsync", to, from, bytes, stream, true, true);
}

int32_t make_stream(void** out, uint32_t) {
  if (const int32_t code = driver.check("cuStreamCreate")) return code;
  return *out = driver.make(Kind::stream, driver.current()), kOk;
}
int32_t close_stream(void* handle) {
  Object* s = driver.find(handle, Kind::stream);
  if (!s) return kBadHandle;
  if (!s->work.empty()) driver.breach("a stream goes while work waits");
  return s->alive = false, kOk;
}
int32_t stream_context(void* handle, void** context) {
  if (const int32_t code = driver.check("cuStreamGetCtx")) return code;
  Object* s = handle ? driver.find(handle, Kind::stream) : driver.stream(nullptr);
  return s ? *context = s->owner, kOk : kBadHandle;
}
int32_t wait(void* handle) {
  if (const int32_t code = driver.check("cuStreamSynchronize", true)) return code;
  Object* s = driver.stream(handle);
  if (!s) return kBadHandle;
  const std::vector<Work> work = std::move(s->work);
  s->work.clear();
  int32_t failed = kOk;  // after a failure, the rest is skipped, as on a real device
  for (const Work& w : work)
    if (!failed) failed = w();
  return failed;
}

int32_t launch(void* handle, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
               uint32_t bz, uint32_t, void* stream, void** parameters, void**) {
  if (const int32_t code = driver.check("cuLaunchKernel")) return code;
  if (driver.fails()) return kLaunchFailed;
  Object* f = driver.find(handle, Kind::function);
  if (!f) return kBadHandle;
  return enqueue(stream, launch_work(f, {gx, gy, gz}, {bx, by, bz}, parameters));
}

struct NodeParameters {  // CUDA_KERNEL_NODE_PARAMS_v2
  void* function;
  Size grid, block;
  uint32_t shared_bytes;
  void **parameters, **extra;
  void *kernel, *context;
};
int32_t make_graph(void** graph, uint32_t) {
  if (driver.fails()) return kNoMemory;
  return *graph = driver.make(Kind::graph, driver.current()), kOk;
}
int32_t add_launch(void** node, void* handle, void* const* before, size_t count,
                   const NodeParameters* p) {
  Object* g = driver.find(handle, Kind::graph);
  Object* f = driver.find(p->function, Kind::function);
  if (!g || !f) return kBadHandle;
  if (driver.fails()) return kNoMemory;
  std::vector<size_t> after;
  for (size_t i = 0; i < count; ++i) {
    size_t n = 0;
    while (n < g->nodes.size() && g->nodes[n] != before[i]) ++n;
    if (n == g->nodes.size()) return driver.breach("a node after one of another graph");
    after.push_back(n);
  }
  g->work.push_back(launch_work(f, p->grid, p->block, p->parameters));
  g->after.push_back(std::move(after));
  g->nodes.push_back(driver.make(Kind::node, g));
  return *node = g->nodes.back(), kOk;
}
int32_t instantiate(void** executable, void* handle, uint64_t) {
  if (const int32_t code = driver.check("cuGraphInstantiateWithFlags")) return code;
  if (driver.fails()) return kNoMemory;
  Object* g = driver.find(handle, Kind::graph);
  if (!g) return kBadHandle;
  Object* e = driver.make(Kind::executable, driver.current());
  return e->work = g->work, e->after = g->after, ++driver.done.instantiations, *executable = e, kOk;
}
int32_t replay(void* handle, void* stream) {
  if (const int32_t code = driver.check("cuGraphLaunch")) return code;
  if (driver.fails()) return kLaunchFailed;
  Object* e = driver.find(handle, Kind::executable);
  return e ? enqueue(
                 stream,
                 [=]() -> int32_t { return ++driver.done.replays, run_graph(e->work, e->after); })
           : static_cast<int32_t>(kBadHandle);
}
int32_t close_graph(void* handle) {
  Object* g = driver.find(handle, Kind::graph);
  return g ? g->alive = false, kOk : kBadHandle;
}
int32_t close_executable(void* handle) {
  Object* e = driver.find(handle, Kind::executable);
  return e ? e->alive = false, kOk : kBadHandle;
}
int32_t begin_capture(void* handle, uint32_t) {
  Object* s = driver.find(handle, Kind::stream);
  return s ? s->capture = driver.make(Kind::graph, s->owner), kOk : kBadHandle;
}
int32_t end_capture(void* handle, void** graph) {
  Object* s = driver.find(handle, Kind::stream);
  if (!s || !s->capture) return driver.breach("no capture to end");
  return *graph = s->capture, s->capture = nullptr, kOk;
}

int32_t words(int32_t code, const char** text) {
  return *text = code == kNoImage ? "device kernel image is invalid"
                                  : "a failure of the fake driver",
         kOk;
}

struct Name {
  const char* name;
  void* pointer;
};
template <class F>
Name named(const char* name, F* f) {
  return {name, reinterpret_cast<void*>(f)};
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t cuGetProcAddress(const char* name,
                                                                           void** pointer, int32_t,
                                                                           uint64_t) {
  static const Name names[] = {named("cuInit", init),
                               named("cuDeviceGet", get_device),
                               named("cuDeviceGetAttribute", attribute),
                               named("cuDevicePrimaryCtxRetain", retain),
                               named("cuDevicePrimaryCtxRelease", release),
                               named("cuCtxCreate", create_context),
                               named("cuCtxPushCurrent", push),
                               named("cuCtxPopCurrent", pop),
                               named("cuModuleLoadData", load),
                               named("cuModuleUnload", unload),
                               named("cuModuleGetFunction", function),
                               named("cuMemAlloc", allocate),
                               named("cuMemFree", release_memory),
                               named("cuMemcpyHtoDAsync", copy_in),
                               named("cuMemcpyDtoHAsync", copy_out),
                               named("cuMemcpyDtoDAsync", copy_on),
                               named("cuStreamCreate", make_stream),
                               named("cuStreamDestroy", close_stream),
                               named("cuStreamGetCtx", stream_context),
                               named("cuStreamSynchronize", wait),
                               named("cuStreamBeginCapture", begin_capture),
                               named("cuStreamEndCapture", end_capture),
                               named("cuLaunchKernel", launch),
                               named("cuGraphCreate", make_graph),
                               named("cuGraphAddKernelNode", add_launch),
                               named("cuGraphDestroy", close_graph),
                               named("cuGraphInstantiateWithFlags", instantiate),
                               named("cuGraphExecDestroy", close_executable),
                               named("cuGraphLaunch", replay),
                               named("cuGetErrorString", words)};
  for (const Name& entry : names)
    if (std::strcmp(entry.name, name) == 0) return *pointer = entry.pointer, kOk;
  return kNotFound;
}

// Functions for tests:
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_counts(FakeCounts* counts) {
  *counts = driver.counts();
}
extern "C" __attribute__((visibility("default"))) int tw_fake_cuda_fail(int n) {
  return std::exchange(driver.fails_in, n);
}
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_choose(
    const tw::test::EmulatorChoices* choices) {
  driver.choices = *choices;
}
extern "C" __attribute__((visibility("default"))) void tw_fake_cuda_emulated(
    tw::test::EmulatorCounts* counts) {
  *counts = driver.emulated;
}
extern "C" __attribute__((visibility("default"))) const char* tw_fake_cuda_problem() {
  return driver.problem.c_str();
}
// Returns the rules broken since the last call.
extern "C" __attribute__((visibility("default"))) const char* tw_fake_cuda_breaches() {
  static std::string told;
  return told = std::move(driver.breaches), driver.breaches.clear(), told.c_str();
}
