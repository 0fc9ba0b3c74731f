#include "tests/cli/kernel_runner.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "frontend/frontend.h"
#include "ir/program.h"
#include "ir/simplify.h"
#include "tests/cli/amx_emulator.h"
#include "tests/cli/cli_test_util.h"
#include "tests/linked_kernel.h"

namespace tw::test {
namespace {

struct Emulated {
  Arch arch;
  const char *qemu, *machine, *root;  // machine: its name in cross_cc.sh; root: its C library
};
constexpr Emulated kEmulated[] = {
    {Arch::aarch64, "qemu-aarch64", "aarch64", "/usr/aarch64-linux-gnu"},
    {Arch::arm, "qemu-arm", "armv7", "/usr/arm-linux-gnueabihf"},
};

const Emulated* emulated(Arch arch) {
  const auto* found = std::ranges::find(kEmulated, arch, &Emulated::arch);
  return found == std::end(kEmulated) ? nullptr : found;
}

size_t workspace_bytes(const Kernel& kernel) {
  return static_cast<size_t>(as_const(simplify(workspace_layout(kernel).bytes)).value());
}

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void run_under_qemu(const Emulated& emulated, const std::string& library, const Kernel& kernel,
                    std::vector<KernelArgument>& arguments, const TestFolder& folder) {
  const std::string program = folder / "runner";
  REQUIRE(run(std::string("CLANG=" TW_CLANG " LLD=" TW_LLD " " TW_TEST_DIR "/cross_cc.sh ") +
              emulated.machine + " " TW_TEST_DIR "/cli/kernel_runner.c " + program) == 0);
  std::string command = std::string(emulated.qemu) + " -cpu max -L " + emulated.root + " " +
                        program + " " + library + " " + kernel.name + " " +
                        std::to_string(workspace_bytes(kernel));
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
    return std::ranges::all_of(target.features, [&](const std::string& feature) {
      return host.has(feature) || AmxEmulator::has(feature);
    });
  const Emulated* there = emulated(target.arch());
  return there && std::ifstream(std::string(there->root) + "/lib/crt1.o").good() &&
         run(std::string(there->qemu) + " --version > /dev/null 2>&1") == 0;
}

void run_kernel(const Kernel& kernel, const Target& target,
                std::vector<KernelArgument>& arguments) {
  const TestFolder folder;
  const std::string path = folder.write("kernel.so", linked_kernel(kernel, target));
  if (target.arch() != host_target().arch())
    return run_under_qemu(*emulated(target.arch()), path, kernel, arguments, folder);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(library != nullptr, dlerror());
  // Buffers are aligned and padded as an artifact's constants are, since code relies on it.
  const auto aligned = [](size_t bytes) {
    return std::unique_ptr<std::byte, decltype(&std::free)>(
        static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)), &std::free);
  };
  std::vector<decltype(aligned(0))> memory;
  std::vector<void*> buffers;
  for (const KernelArgument& a : arguments) {
    memory.push_back(aligned(a.bytes.size()));
    std::ranges::copy(a.bytes, memory.back().get());
    buffers.push_back(memory.back().get());
  }
  const auto workspace = aligned(workspace_bytes(kernel));
  const AmxEmulator emulator;
  reinterpret_cast<void (*)(void* const*, void*, const int64_t*)>(
      dlsym(library, kernel.name.c_str()))(buffers.data(), workspace.get(), nullptr);
  for (size_t i = 0; i < arguments.size(); ++i)
    std::copy_n(memory[i].get(), arguments[i].bytes.size(), arguments[i].bytes.begin());
  dlclose(library);
}

}  // namespace tw::test
