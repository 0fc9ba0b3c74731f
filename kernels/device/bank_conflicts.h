// Counts the turns that shared memory takes for each access of a block's threads. The memory lies
// in banks of words. In a turn, each bank gives one word to the threads that ask together.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

struct BankAccess {
  std::string stage, buffer;
  bool stores = false;
  int64_t turns = 1;  // 1: no two threads want different words of a bank
};
// The accesses of a scheduled kernel, for the first threads at the loops' first iterations.
// Accesses at places that data decide are left out.
std::vector<BankAccess> bank_accesses(const Kernel& scheduled, const Target& target);

}  // namespace tw
