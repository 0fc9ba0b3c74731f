// Measures the rates of this machine's cores.
#pragma once
#include <functional>
#include <string>

#include "ir/target.h"

namespace tw {

// The target must be one that this machine can run. Takes some seconds on its cores; stage is told
// of each round. Rates that are not measured are 0: multiply-adds of types other than f32 and f64,
// and sums.
Expected<CoreRates> measure_core_rates(const Target& target,
                                       const std::function<void(const std::string&)>& stage);

}  // namespace tw
