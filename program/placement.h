// Places of groups and results: 0 is the processor, else 1 + index into Target::devices.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/target.h"

namespace tw {

struct Placement {
  std::vector<int> devices;  // by group; empty: all run on the processor
  // By value index: the memory in which a node that runs regions leaves a result. An absent value
  // is in the processor's memory. A carried value lies there before and after every iteration
  std::map<int32_t, int> results = {};
  // By group on the processor: why it is not on a device; "" if it has no kernel
  std::vector<std::string> reasons = {};
};

// True if a device can address a row of `bytes` bytes inside a stack of rows. Devices without
// threads move blocks, which must begin at a multiple of 64 bytes as buffers do.
bool finds_rows(const Target& device, const Expr& bytes);

}  // namespace tw
