#include "ir/core_rates.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tw {
namespace {

// LLVM's names of Intel's server chips: two units of 512 bits behind a slow third cache. Figures of
// a Cascade Lake core at 2.4 GHz (11 GB/s from memory), where the defaults are a Zen 4 core's.
constexpr std::array<std::string_view, 10> kIntelServers = {
    "skx",           "skylake-avx512", "cascadelake",
    "cooperlake",    "icelake-server", "sapphirerapids",
    "emeraldrapids", "graniterapids",  "graniterapids-d",
    "diamondrapids"};
constexpr CoreRates kIntelServer = {
    .multiply_adds = 2, .sums = 0.5, .l3_bytes = 10, .memory_bytes = 5};
// Twice Zen 4's units, loads and stores, at 4 GHz (docs/journal/README.md).
constexpr CoreRates kZen5 = {
    .multiply_adds = 2, .sums = 1.5, .l2_bytes = 64, .l3_bytes = 30, .memory_bytes = 9};

}  // namespace

CoreRates core_rates(const Target& target) {
  // The widest units come singly, narrower ones in pairs
  if (target.vector_bits < 512) return {.multiply_adds = 2};
  if (target.cpu == "znver5") return kZen5;
  // Virtual machines give other names
  const bool server = target.has("amx-tile") ||
                      std::ranges::find(kIntelServers, target.cpu) != kIntelServers.end();
  return server ? kIntelServer : CoreRates{};
}

}  // namespace tw
