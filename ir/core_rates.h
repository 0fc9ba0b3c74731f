// Work that one processor core does in a cycle, as its target description states it.
// docs/reference/targets.md lists the keys. Code that makes choices reads core_rates(target), which
// fills unstated rates in from the vectors and features.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tw {

struct Target;

// A rate of 0 is not stated.
struct CoreRates {
  double clock = 0;  // cycles a second
  // Multiply-adds a cycle, by operand type
  double f32 = 0, f64 = 0, bf16 = 0, f16 = 0, i8 = 0, i16 = 0;
  double loads = 0, stores = 0;  // vectors of the widest kind a cycle, first-level cache
  // Bytes of weights a cycle that one core alone reads, by where the weights lie
  double l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;
  double tensor_bytes = 0;  // bytes a cycle that one kernel writes and the next one reads
  // f32 additions a cycle, in elements, whose operands and results go through the first two caches.
  // The transforms of Winograd and Strassen consist of them.
  double sums = 0;
  double scattered = 0;  // cycles an element costs where its neighbours are stored apart
  double fork_join = 0;  // seconds it costs to share a loop among threads
  // LLVM's names of other processors with these rates; used where their descriptions state none
  std::vector<std::string> cpus;

  double multiply_adds(DType operand) const;
  bool operator==(const CoreRates&) const = default;
};

// Keys of `rates` in print order. The keys of a group are adjacent.
struct CoreRateKey {
  const char *group, *name;  // group "": none
  double CoreRates::* rate;
};
inline constexpr std::array kCoreRateKeys = {
    CoreRateKey{"", "clock", &CoreRates::clock},
    CoreRateKey{"multiply_adds", "f32", &CoreRates::f32},
    CoreRateKey{"multiply_adds", "f64", &CoreRates::f64},
    CoreRateKey{"multiply_adds", "bf16", &CoreRates::bf16},
    CoreRateKey{"multiply_adds", "f16", &CoreRates::f16},
    CoreRateKey{"multiply_adds", "i8", &CoreRates::i8},
    CoreRateKey{"multiply_adds", "i16", &CoreRates::i16},
    CoreRateKey{"", "loads", &CoreRates::loads},
    CoreRateKey{"", "stores", &CoreRates::stores},
    CoreRateKey{"bytes", "l2", &CoreRates::l2_bytes},
    CoreRateKey{"bytes", "l3", &CoreRates::l3_bytes},
    CoreRateKey{"bytes", "memory", &CoreRates::memory_bytes},
    CoreRateKey{"bytes", "tensors", &CoreRates::tensor_bytes},
    CoreRateKey{"", "sums", &CoreRates::sums},
    CoreRateKey{"", "scattered", &CoreRates::scattered},
    CoreRateKey{"", "fork_join", &CoreRates::fork_join},
};

// `rates`, with the unstated ones taken from `defaults`. `cpus` is not merged.
CoreRates with_defaults(CoreRates rates, const CoreRates& defaults);
// The rates of the target's description, completed from its vectors and features
CoreRates core_rates(const Target& target);
// Multiply-adds of the target's widest f32 vectors that start in a cycle
double vector_products(const Target& target);

}  // namespace tw
