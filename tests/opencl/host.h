// For tests: a minimal OpenCL host. libOpenCL is opened at run time; prototypes are its own, so
// that no headers are needed.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/opencl.h"

namespace tw::test {

class OpenClHost {
 public:
  // Null, with the reason, where there is no library, platform or device.
  static std::unique_ptr<OpenClHost> open(std::string& why_not);
  ~OpenClHost();

  struct Built;  // a compiled program
  // null: `log` is the compiler's
  std::shared_ptr<Built> build(const std::string& program, std::string& log);
  // Runs the launches in order. `buffers`: one a parameter buffer of the kernel, read and written
  // in place, passed at odd offsets of larger memories; returns what went wrong, or "".
  std::string run(Built& program, const Kernel& kernel, const OpenClSource& source,
                  std::vector<std::vector<std::byte>>& buffers,
                  const std::vector<int64_t>& symbols);
  std::string device_name() const;

  // For a caller of its own: a queue (in its context), memory there, a copy of it when the queue is
  // done.
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
