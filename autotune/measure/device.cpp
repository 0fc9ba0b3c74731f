#include "autotune/measure/device.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <thread>

#include "support/hash.h"

namespace tw {
namespace {

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of the first line "KEY : VALUE" in /proc/cpuinfo
std::string cpu_info(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string::npos || line[colon] != ':') continue;
    const size_t value = line.find_first_not_of(' ', colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

// x86 gives names, ARM numbers of vendor and part, RISC-V a microarchitecture.
std::string model_name() {
  for (const char* key : {"model name", "uarch"})
    if (std::string name = cpu_info(key); !name.empty()) return name;
  const std::string part = cpu_info("CPU part");
  return part.empty() ? "unknown" : "CPU " + cpu_info("CPU implementer") + ":" + part;
}

std::string features() {
  for (const char* key : {"flags", "Features", "isa"})
    if (std::string list = cpu_info(key); !list.empty()) return list;
  return "";
}

}  // namespace

int64_t cache_bytes(int level) {
  const std::string cpu = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int i = 0; i < 8; ++i) {
    const std::string cache = cpu + std::to_string(i) + "/";
    if (line_of(cache + "level") != std::to_string(level) ||
        line_of(cache + "type") == "Instruction")
      continue;
    const std::string size = line_of(cache + "size");  // "48K"
    const size_t digits = std::min(size.find_first_not_of("0123456789"), size.size());
    if (digits == 0 || digits > 12) return 0;
    const std::string unit = size.substr(digits);
    return std::stoll(size.substr(0, digits)) * (unit == "K" ? 1024 : unit == "M" ? 1 << 20 : 1);
  }
  return 0;
}

int64_t cold_bytes() {
  const int64_t least = std::max<int64_t>(4 * cache_bytes(2), 4 << 20);
  return std::max(least, std::min<int64_t>(2 * cache_bytes(3), 64 << 20));
}

std::string device_fingerprint() {
  std::string text = model_name() + ", " + std::to_string(std::thread::hardware_concurrency()) +
                     " cores";
  for (int level = 1; level <= 3; ++level)
    text += ", L" + std::to_string(level) + " " + std::to_string(cache_bytes(level) / 1024) + "K";
  return text + ", features " + short_hash(features());
}

}  // namespace tw
