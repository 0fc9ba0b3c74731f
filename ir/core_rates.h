// What a core of a processor does in a cycle, as its description says it: docs/reference/targets.md
// has the keys. Choices read core_rates(target), where what is not said follows from vectors and
// features.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tw {

struct Target;

// 0: not said
struct CoreRates {
  double clock = 0;                                             // cycles a second
  double f32 = 0, f64 = 0, bf16 = 0, f16 = 0, i8 = 0, i16 = 0;  // multiply-adds a cycle, by operand
  double loads = 0, stores = 0;  // of the widest vectors a cycle, in the first-level cache
  // Bytes a cycle that one core alone reads of weights, by where they lie
  double l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;
  double tensor_bytes = 0;  // a cycle, of what one kernel writes and the next one reads
  // Elements a cycle of f32 additions whose operands and results go through the first two caches,
  // which the transforms of Winograd and Strassen consist of
  double sums = 0;
  double scattered = 0;  // cycles that an element costs where neighbours are stored apart
  double fork_join = 0;  // seconds that sharing a loop among threads costs
  // LLVM's names of other processors that have these rates where their descriptions say nothing
  std::vector<std::string> cpus;

  double multiply_adds(DType operand) const;
  bool operator==(const CoreRates&) const = default;
};

// Keys of `rates`, in the order in which they are printed; those of a group stand together.
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

// What the first says, then what the second does. Not `cpus`.
CoreRates with_defaults(CoreRates rates, const CoreRates& defaults);
// Of the target's description, and what follows from its vectors and features.
CoreRates core_rates(const Target& target);
// Multiply-adds of the target's widest vectors of f32 that start in a cycle.
double vector_products(const Target& target);

}  // namespace tw
