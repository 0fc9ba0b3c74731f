// Description of this machine as a Target, from LLVM's queries and sysfs.
#include <llvm/ADT/StringMap.h>
#include <llvm/Support/Threading.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "frontend/frontend.h"
#include "frontend/intrinsic_library.h"
#include "frontend/target_features.h"

namespace tw {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32K", "1024K" or "32M" in bytes; 0 for other texts.
int64_t parse_cache_size(const std::string& text) {
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && value < (int64_t{1} << 40); ++i)
    value = value * 10 + (text[i] - '0');
  if (i < text.size() && text[i] == 'K') value <<= 10;
  if (i < text.size() && text[i] == 'M') value <<= 20;
  return value;
}

void read_caches(Target& target) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string at = folder + std::to_string(index) + "/", level = read_line(at + "level");
    const int64_t size = parse_cache_size(read_line(at + "size"));
    if (level.empty() || size == 0 || read_line(at + "type") == "Instruction") continue;
    if (level == "1") target.l1_bytes = size;
    if (level == "2") target.l2_bytes = size;
    if (level == "3") target.l3_bytes = size;
  }
}

}  // namespace

Target host_target() {
  Target target;
  target.name = kHostTarget;
#if defined(__x86_64__)
  target.triple = "x86_64-linux-gnu";
#elif defined(__aarch64__)
  target.triple = "aarch64-linux-gnu";
#elif defined(__riscv)
  target.triple = "riscv64-linux-gnu";
#else
  target.triple = "armv7-linux-gnueabihf";
#endif
  const Arch arch = target.arch();
  target.cpu = llvm::sys::getHostCPUName().str();
  if (!known_cpu(arch, target.cpu)) target.cpu = "generic";
  std::vector<std::string> features;
  for (const auto& entry : llvm::sys::getHostCPUFeatures())
    if (entry.getValue()) features.push_back(entry.getKey().str());
  target.features = normal_features(arch, features);
  const int cores = llvm::get_physical_cores();
  target.cores = std::max(
      1, cores > 0 ? cores : static_cast<int>(std::thread::hardware_concurrency()));
  read_caches(target);
  target.vector_bits = default_vector_bits(arch, target.features);
  target.vector_registers = default_vector_registers(arch, target.features);
  add_shipped_intrinsics(target);
  return target;
}

}  // namespace tw
