// For tests: a minimal OpenCL host. It opens libOpenCL at run time and has prototypes of its own,
// so that it needs no headers.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/opencl.h"

namespace tw::test {

class OpenClHost {
 public:
  // Returns null, with the reason, if there is no library, platform or device.
  static std::unique_ptr<OpenClHost> open(std::string& why_not);
  ~OpenClHost();

  struct Built;  // a compiled program
  // Returns null on an error; then `log` is the compiler's.
  std::shared_ptr<Built> build(const std::string& program, std::string& log);
  // Runs the launches in order. `buffers` has one for each parameter buffer of the kernel. They are
  // read and written in place, at odd offsets of larger memories. Returns the error, or "".
  std::string run(Built& program, const Kernel& kernel, const OpenClSource& source,
                  std::vector<std::vector<std::byte>>& buffers,
                  const std::vector<int64_t>& symbols);
  std::string device_name() const;

  // For tests that act as a caller: a queue and its context, memory on the device, and a copy of it
  // once the queue is done.
  void* queue() const;
  void* memory(const std::vector<std::byte>& bytes);
  std::vector<std::byte> fetch(void* memory, size_t bytes);
  void release(void* memory);

 private:
  struct Api;
  OpenClHost();
  std::unique_ptr<Api> api_;
};

}  // namespace tw::test
