// The rates of this machine's cores, measured.
#pragma once
#include <functional>
#include <string>

#include "ir/target.h"

namespace tw {

// The target must be one that this machine can run. Takes some seconds on its cores; stage tells
// what is being measured. 0 for what is not: multiply-adds of other types than f32 and f64, and
// sums.
Expected<CoreRates> measure_core_rates(const Target& target,
                                       const std::function<void(const std::string&)>& stage);

}  // namespace tw
