// How many turns the memory that a block's threads share takes for each of their accesses: it lies
// in banks of words, and a bank gives one word a turn to the threads that ask at one time.
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
// Those of a scheduled kernel, of the first threads at the loops' first iterations; not what data
// decide.
std::vector<BankAccess> bank_accesses(const Kernel& scheduled, const Target& target);

}  // namespace tw
