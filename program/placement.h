// Where what a graph computes runs and lies: 0 the processor, else 1 + index into Target::devices.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/target.h"

namespace tw {

struct Placement {
  std::vector<int> devices;  // by group; empty: all on the processor
  // In whose memory nodes that run regions leave their results, by value index; absent: in the
  // processor's. A carried value of a loop is there before and behind every iteration
  std::map<int32_t, int> results = {};
  // By group on the processor: why not on a device; "" where there is no kernel
  std::vector<std::string> reasons = {};
};

// Whether a device finds a row of so many bytes where it lies between others. Devices without
// threads move blocks, which begin where buffers do.
bool finds_rows(const Target& device, const Expr& bytes);

}  // namespace tw
