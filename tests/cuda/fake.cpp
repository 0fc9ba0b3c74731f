#include "tests/cuda/fake.h"

#include <cstdlib>
#include <cstring>

#include "frontend/frontend.h"

namespace tw::test {
namespace {
constexpr size_t kShift = 192, kAlign = 64;  // offset of buffers in their memories
constexpr std::byte kFill{0xA5};
}  // namespace

Target cuda_target(const std::string& name) {
  Expected<Target> target = load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return *target;
}

Target emulated() {
  Target target = cuda_target();
  target.devices[0].features.insert(target.devices[0].features.begin(), "emulated");
  return target;
}

FakeCuda& FakeCuda::get() {
  static FakeCuda fake;
  return fake;
}

FakeCuda::FakeCuda() {
  setenv("TW_FAKE_CUDA_LINKER", TW_FAKE_CUDA_LINKER, 1);
  library_ = dlopen(TW_FAKE_CUDA, RTLD_NOW);
  REQUIRE_MESSAGE(library_, dlerror());
  void* context = nullptr;
  find<int32_t(void**, int32_t)>("cuDevicePrimaryCtxRetain")(&context, 0);
  // This context is the caller's own.
  REQUIRE(find<int32_t(void*)>("cuCtxPushCurrent")(context) == 0);
}

FakeCounts FakeCuda::counts() const {
  FakeCounts c;
  auto* ask = reinterpret_cast<void (*)(FakeCounts*)>(dlsym(library_, "tw_fake_cuda_counts"));
  REQUIRE((ask != nullptr));
  return ask(&c), c;
}

std::string FakeCuda::breaches() const {
  auto* ask = reinterpret_cast<const char* (*)()>(dlsym(library_, "tw_fake_cuda_breaches"));
  REQUIRE((ask != nullptr));
  return ask();
}

EmulatorCounts FakeCuda::emulated() const {
  EmulatorCounts c;
  reinterpret_cast<void (*)(EmulatorCounts*)>(dlsym(library_, "tw_fake_cuda_emulated"))(&c);
  return c;
}

int FakeCuda::fail_call(int n) const {
  return reinterpret_cast<int (*)(int)>(dlsym(library_, "tw_fake_cuda_fail"))(n);
}

void FakeCuda::choose(const EmulatorChoices& choices) const {
  reinterpret_cast<void (*)(const EmulatorChoices*)>(dlsym(library_, "tw_fake_cuda_choose"))(
      &choices);
}

std::string FakeCuda::load(const std::string& object) {
  const int32_t code = find<int32_t(void**, const void*)>("cuModuleLoadData")(&module_,
                                                                              object.data());
  return code ? "cuModuleLoadData: " + std::to_string(code) : "";
}

std::string FakeCuda::run(const Kernel& kernel, const std::vector<DeviceLaunch>& launches,
                          std::vector<std::vector<std::byte>>& buffers,
                          const std::vector<int64_t>& symbols) {
  const auto value = [&](const Expr& e) {
    return eval_int(e, [&](std::string_view name) {
      for (size_t i = 0; i < kernel.symbols.size(); ++i)
        if (kernel.symbols[i] == name) return symbols[i];
      return int64_t{0};
    });
  };
  std::vector<std::vector<std::byte>> memories;
  const auto place = [&](size_t i) {
    return (reinterpret_cast<uintptr_t>(memories[i].data()) + kShift + kAlign - 1) / kAlign *
           kAlign;
  };
  const size_t workspace = static_cast<size_t>(value(workspace_layout(kernel).bytes));
  for (size_t i = 0; i <= buffers.size(); ++i)
    memories.emplace_back(
        (i < buffers.size() ? buffers[i].size() : workspace) + 2 * kShift + kAlign, kFill);
  for (size_t i = 0; i < buffers.size(); ++i)
    std::memcpy(reinterpret_cast<void*>(place(i)), buffers[i].data(), buffers[i].size());
  auto* launch_kernel = find<int32_t(void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                                     uint32_t, uint32_t, void*, void**, void**)>("cuLaunchKernel");
  for (const DeviceLaunch& launch : launches) {
    void* function = nullptr;
    if (find<int32_t(void**, void*, const char*)>("cuModuleGetFunction")(&function, module_,
                                                                         launch.function.c_str()))
      return "no function " + launch.function;
    std::vector<uint64_t> values;
    for (const int b : launch.buffers)
      values.push_back(place(b < 0 ? buffers.size() : static_cast<size_t>(b)));
    for (const int s : launch.symbols)
      values.push_back(static_cast<uint64_t>(symbols[static_cast<size_t>(s)]));
    std::vector<void*> parameters;
    for (uint64_t& v : values) parameters.push_back(&v);
    parameters.push_back(nullptr);  // the fake counts parameters up to this null
    uint32_t grid[3], block[3];
    for (size_t d = 0; d < 3; ++d) {
      block[d] = static_cast<uint32_t>(value(launch.local[d]));
      grid[d] = static_cast<uint32_t>(value(launch.global[d])) / block[d];
    }
    const int32_t code = launch_kernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                       block[2], 0, nullptr, parameters.data(), nullptr);
    if (code)
      return launch.function + ": " + std::to_string(code) + " (" +
             reinterpret_cast<const char* (*)()>(dlsym(library_, "tw_fake_cuda_problem"))() + ")";
  }
  if (const int32_t code = find<int32_t(void*)>("cuStreamSynchronize")(nullptr))
    return kernel.name + ": " + std::to_string(code) + " (" +
           reinterpret_cast<const char* (*)()>(dlsym(library_, "tw_fake_cuda_problem"))() + ")";
  for (size_t i = 0; i < memories.size(); ++i) {
    const size_t bytes = i < buffers.size() ? buffers[i].size() : workspace;
    const std::byte* at = reinterpret_cast<const std::byte*>(place(i));
    for (size_t j = 1; j <= kShift; ++j)
      if (at[bytes - 1 + j] != kFill || *(at - j) != kFill)
        return "written beside buffer " + std::to_string(i);
    if (i < buffers.size()) std::memcpy(buffers[i].data(), at, bytes);
  }
  return "";
}

}  // namespace tw::test
