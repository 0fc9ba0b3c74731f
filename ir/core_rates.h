// Rates of a core, from what its description says.
#pragma once
#include "ir/target.h"

namespace tw {

// What a core does in a cycle, where chips differ so much that other algorithms pay.
struct CoreRates {
  double multiply_adds = 1;  // of the widest vectors, started
  // Speed of additions through the first two caches, which transforms consist of, against Zen 4's
  double sums = 1;
  double l2_bytes = 32, l3_bytes = 20, memory_bytes = 8;  // read by one core alone
};
CoreRates core_rates(const Target& target);

}  // namespace tw
