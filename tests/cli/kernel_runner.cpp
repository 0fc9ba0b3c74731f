#include "tests/cli/kernel_runner.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "frontend/frontend.h"
#include "tests/cli/cli_test_util.h"
#include "tests/linked_kernel.h"

namespace tw::test {
namespace {

constexpr const char* kMissing = "/usr/aarch64-linux-gnu/lib/crt1.o";

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void run_under_qemu(const std::string& library, const std::string& symbol,
                    std::vector<KernelArgument>& arguments, const TestFolder& folder) {
  const std::string program = folder / "runner";
  REQUIRE(run("CLANG=" TW_CLANG " LLD=" TW_LLD " " TW_TEST_DIR "/cross_cc.sh aarch64 " TW_TEST_DIR
              "/cli/kernel_runner.c " +
              program) == 0);
  std::string command = "qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu " + program + " " +
                        library + " " + symbol;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::vector<std::byte>& bytes = arguments[i].bytes;
    command += " " + folder.write("buffer" + std::to_string(i),
                                  {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  REQUIRE(run(command) == 0);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string bytes = slurp(folder / ("buffer" + std::to_string(i)));
    REQUIRE(bytes.size() == arguments[i].bytes.size());
    std::ranges::transform(bytes, arguments[i].bytes.begin(),
                           [](char c) { return static_cast<std::byte>(c); });
  }
}

}  // namespace

bool runs(const Target& target) {
  const Target host = host_target();
  if (target.arch() == host.arch())
    return std::ranges::all_of(target.features,
                               [&](const std::string& feature) { return host.has(feature); });
  return target.arch() == Arch::aarch64 && std::ifstream(kMissing).good() &&
         run("qemu-aarch64 --version > /dev/null 2>&1") == 0;
}

void run_kernel(const Kernel& kernel, const Target& target,
                std::vector<KernelArgument>& arguments) {
  const TestFolder folder;
  const std::string path = folder.write("kernel.so", linked_kernel(kernel, target));
  if (target.arch() != host_target().arch())
    return run_under_qemu(path, kernel.name, arguments, folder);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(library != nullptr, dlerror());
  std::vector<void*> buffers;
  for (KernelArgument& a : arguments) buffers.push_back(a.bytes.data());
  reinterpret_cast<void (*)(void* const*, void*, const int64_t*)>(
      dlsym(library, kernel.name.c_str()))(buffers.data(), nullptr, nullptr);
  dlclose(library);
}

}  // namespace tw::test
