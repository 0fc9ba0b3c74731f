#include "tests/opencl/host.h"

#include <dlfcn.h>

#include <cstring>
#include <map>

#include "ir/program.h"

namespace tw::test {
namespace {

using Handle = void*;
constexpr uint64_t kAllDevices = 0xFFFFFFFF, kReadWrite = 1;
constexpr uint32_t kDeviceName = 0x102B, kBuildLog = 0x1183, kTrue = 1;
constexpr size_t kShift = 192;  // offset of buffers in their memories
constexpr std::byte kFill{0xA5};

}  // namespace

struct OpenClHost::Api {
  void* library = nullptr;
  Handle device = nullptr, context = nullptr, queue = nullptr;
  int32_t (*get_platforms)(uint32_t, Handle*, uint32_t*) = nullptr;
  int32_t (*get_devices)(Handle, uint64_t, uint32_t, Handle*, uint32_t*) = nullptr;
  int32_t (*device_info)(Handle, uint32_t, size_t, void*, size_t*) = nullptr;
  Handle (*create_context)(const intptr_t*, uint32_t, const Handle*, void*, void*,
                           int32_t*) = nullptr;
  Handle (*create_queue)(Handle, Handle, uint64_t, int32_t*) = nullptr;
  Handle (*create_program)(Handle, uint32_t, const char**, const size_t*, int32_t*) = nullptr;
  int32_t (*build_program)(Handle, uint32_t, const Handle*, const char*, void*, void*) = nullptr;
  int32_t (*build_info)(Handle, Handle, uint32_t, size_t, void*, size_t*) = nullptr;
  Handle (*create_kernel)(Handle, const char*, int32_t*) = nullptr;
  int32_t (*set_argument)(Handle, uint32_t, size_t, const void*) = nullptr;
  Handle (*create_buffer)(Handle, uint64_t, size_t, void*, int32_t*) = nullptr;
  int32_t (*read_buffer)(Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t, const Handle*,
                         Handle*) = nullptr;
  int32_t (*write_buffer)(Handle, Handle, uint32_t, size_t, size_t, const void*, uint32_t,
                          const Handle*, Handle*) = nullptr;
  int32_t (*enqueue)(Handle, Handle, uint32_t, const size_t*, const size_t*, const size_t*,
                     uint32_t, const Handle*, Handle*) = nullptr;
  int32_t (*finish)(Handle) = nullptr;
  int32_t (*release_buffer)(Handle) = nullptr;
  int32_t (*release_kernel)(Handle) = nullptr;
  int32_t (*release_program)(Handle) = nullptr;
  int32_t (*release_queue)(Handle) = nullptr;
  int32_t (*release_context)(Handle) = nullptr;

  template <class F>
  bool find(F& f, const char* name) {
    return (f = reinterpret_cast<F>(dlsym(library, name))) != nullptr;
  }
  bool find_all() {
    return find(get_platforms, "clGetPlatformIDs") && find(get_devices, "clGetDeviceIDs") &&
           find(device_info, "clGetDeviceInfo") && find(create_context, "clCreateContext") &&
           find(create_queue, "clCreateCommandQueue") &&
           find(create_program, "clCreateProgramWithSource") &&
           find(build_program, "clBuildProgram") && find(build_info, "clGetProgramBuildInfo") &&
           find(create_kernel, "clCreateKernel") && find(set_argument, "clSetKernelArg") &&
           find(create_buffer, "clCreateBuffer") && find(read_buffer, "clEnqueueReadBuffer") &&
           find(write_buffer, "clEnqueueWriteBuffer") && find(enqueue, "clEnqueueNDRangeKernel") &&
           find(finish, "clFinish") && find(release_buffer, "clReleaseMemObject") &&
           find(release_kernel, "clReleaseKernel") && find(release_program, "clReleaseProgram") &&
           find(release_queue, "clReleaseCommandQueue") &&
           find(release_context, "clReleaseContext");
  }
};

struct OpenClHost::Built {
  const Api* api;
  Handle program;
  std::map<std::string, Handle> kernels{};
  Built(const Api* a, Handle p) : api(a), program(p) {}
  Built(const Built&) = delete;
  ~Built() {
    for (auto& [name, kernel] : kernels) api->release_kernel(kernel);
    api->release_program(program);
  }
};

OpenClHost::OpenClHost() : api_(std::make_unique<Api>()) {}
OpenClHost::~OpenClHost() {
  if (api_->queue) api_->release_queue(api_->queue);
  if (api_->context) api_->release_context(api_->context);
}

std::unique_ptr<OpenClHost> OpenClHost::open(std::string& why_not) {
  std::unique_ptr<OpenClHost> host(new OpenClHost());
  Api& a = *host->api_;
  a.library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  why_not = "no libOpenCL.so.1";
  if (!a.library) return nullptr;
  why_not = "libOpenCL.so.1 lacks functions of OpenCL 1.2";
  if (!a.find_all()) return nullptr;
  Handle platform = nullptr;
  uint32_t count = 0;
  why_not = "no OpenCL platform";
  if (a.get_platforms(1, &platform, &count) != 0 || count == 0) return nullptr;
  why_not = "no OpenCL device";
  if (a.get_devices(platform, kAllDevices, 1, &a.device, &count) != 0 || count == 0) return nullptr;
  int32_t error = 0;
  why_not = "no OpenCL context";
  a.context = a.create_context(nullptr, 1, &a.device, nullptr, nullptr, &error);
  if (error != 0) return nullptr;
  a.queue = a.create_queue(a.context, a.device, 0, &error);
  if (error != 0) return nullptr;
  why_not.clear();
  return host;
}

std::string OpenClHost::device_name() const {
  char name[256] = {};
  api_->device_info(api_->device, kDeviceName, sizeof name - 1, name, nullptr);
  return name;
}

void* OpenClHost::queue() const { return api_->queue; }

void* OpenClHost::memory(const std::vector<std::byte>& bytes) {
  int32_t error = 0;
  Handle made = api_->create_buffer(api_->context, kReadWrite, bytes.size(), nullptr, &error);
  if (!error)
    error = api_->write_buffer(api_->queue, made, kTrue, 0, bytes.size(), bytes.data(), 0, nullptr,
                               nullptr);
  return error ? nullptr : made;
}

std::vector<std::byte> OpenClHost::fetch(void* memory, size_t bytes) {
  std::vector<std::byte> out(bytes);
  const int32_t error = api_->read_buffer(api_->queue, memory, kTrue, 0, bytes, out.data(), 0,
                                          nullptr, nullptr);
  return error ? std::vector<std::byte>() : out;
}

void OpenClHost::release(void* memory) { api_->release_buffer(memory); }

std::shared_ptr<OpenClHost::Built> OpenClHost::build(const std::string& text, std::string& log) {
  int32_t error = 0;
  const char* source = text.c_str();
  const size_t size = text.size();
  const std::shared_ptr<Built> built(
      new Built{api_.get(), api_->create_program(api_->context, 1, &source, &size, &error)});
  if (api_->build_program(built->program, 1, &api_->device, "-cl-std=CL1.2", nullptr, nullptr) == 0)
    return built;
  size_t length = 0;
  api_->build_info(built->program, api_->device, kBuildLog, 0, nullptr, &length);
  log.resize(length + 1);
  api_->build_info(built->program, api_->device, kBuildLog, length, log.data(), nullptr);
  return nullptr;
}

std::string OpenClHost::run(Built& program, const Kernel& kernel, const OpenClSource& source,
                            std::vector<std::vector<std::byte>>& buffers,
                            const std::vector<int64_t>& symbols) {
  const Api& a = *api_;
  int32_t error = 0;
  const auto value = [&](const Expr& e) {
    return eval_int(e, [&](std::string_view name) {
      for (size_t i = 0; i < kernel.symbols.size(); ++i)
        if (kernel.symbols[i] == name) return symbols[i];
      return int64_t{0};
    });
  };
  std::vector<Handle> memories;
  const auto memory = [&](const std::vector<std::byte>& bytes) {
    std::vector<std::byte> shifted(bytes.size() + 2 * kShift, kFill);
    std::memcpy(shifted.data() + kShift, bytes.data(), bytes.size());
    memories.push_back(a.create_buffer(a.context, kReadWrite, shifted.size(), nullptr, &error));
    error = a.write_buffer(a.queue, memories.back(), kTrue, 0, shifted.size(), shifted.data(), 0,
                           nullptr, nullptr);
  };
  for (const std::vector<std::byte>& bytes : buffers) memory(bytes);
  memory(std::vector<std::byte>(static_cast<size_t>(value(workspace_layout(kernel).bytes)), kFill));
  std::string problem = error ? "clEnqueueWriteBuffer: " + std::to_string(error) : "";
  for (const OpenClLaunch& launch : source.launches) {
    if (!problem.empty()) break;
    Handle& function = program.kernels[launch.function];
    if (!function) function = a.create_kernel(program.program, launch.function.c_str(), &error);
    if (error != 0) {
      problem = "clCreateKernel " + launch.function + ": " + std::to_string(error);
      break;
    }
    uint32_t next = 0;
    const int64_t at = kShift;
    for (const OpenClArgument& argument : launch.arguments) {
      if (argument.kind == OpenClArgument::Kind::symbol) {
        error |= a.set_argument(function, next++, sizeof(int64_t),
                                &symbols[static_cast<size_t>(argument.index)]);
        continue;
      }
      Handle& mem = argument.kind == OpenClArgument::Kind::workspace
                        ? memories.back()
                        : memories[static_cast<size_t>(argument.index)];
      error |= a.set_argument(function, next++, sizeof mem, &mem);
      error |= a.set_argument(function, next++, sizeof at, &at);
    }
    size_t global[3], local[3];
    for (size_t d = 0; d < 3; ++d)
      global[d] = static_cast<size_t>(value(launch.global[d])),
      local[d] = static_cast<size_t>(value(launch.local[d]));
    if (!error)
      error = a.enqueue(a.queue, function, 3, nullptr, global, local, 0, nullptr, nullptr);
    if (error) problem = launch.function + ": " + std::to_string(error);
  }
  a.finish(a.queue);
  for (size_t i = 0; i < memories.size(); ++i) {
    const size_t size = i < buffers.size()
                            ? buffers[i].size()
                            : static_cast<size_t>(value(workspace_layout(kernel).bytes));
    std::vector<std::byte> shifted(size + 2 * kShift);
    a.read_buffer(a.queue, memories[i], kTrue, 0, shifted.size(), shifted.data(), 0, nullptr,
                  nullptr);
    for (size_t j = 0; j < kShift; ++j)
      if (shifted[j] != kFill || shifted[shifted.size() - 1 - j] != kFill)
        problem = "written beside buffer " + std::to_string(i);
    if (i < buffers.size()) std::memcpy(buffers[i].data(), shifted.data() + kShift, size);
    a.release_buffer(memories[i]);
  }
  return problem;
}

}  // namespace tw::test
