// Chooses the back end for each driver of the runtime.
#include "backends/backend.h"
#include "backends/cuda/backend.h"
#include "backends/opencl/backend.h"
#include "backends/vdla/backend.h"

namespace tw {
namespace {
struct Entry {
  const char* driver;
  Expected<std::unique_ptr<DeviceBackend>> (*make)(const Target& device);
};
constexpr Entry kDrivers[] = {
    {"cuda", make_cuda_backend}, {"opencl", make_opencl_backend}, {"vdla", make_vdla_backend}};
}  // namespace

bool same_driver(const Target& a, const Target& b) { return a.driver == b.driver; }

Expected<std::unique_ptr<DeviceBackend>> make_device_backend(const Target& device) {
  std::string names;
  for (const Entry& entry : kDrivers) {
    if (device.driver == entry.driver) return entry.make(device);
    names += (names.empty() ? "" : ", ") + std::string(entry.driver);
  }
  return make_error({DiagCode::unsupported,
                     "device '" + device.name + "': there is no driver '" + device.driver + "'",
                     {},
                     {"drivers: " + names}});
}

}  // namespace tw
