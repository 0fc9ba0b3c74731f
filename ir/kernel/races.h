// Detects races with vector clocks, which say how far each thread knows the others. Two accesses to
// one element, one of them a write, must be ordered by tokens, barriers, forks or ends of threads.
// The order in which the interpreter happens to run them does not count.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tw::interpreter {

class Clock {  // how far each thread's past is known
 public:
  uint32_t of(int thread) const {
    return static_cast<size_t>(thread) < at_.size() ? at_[static_cast<size_t>(thread)] : 0;
  }
  void tick(int thread);
  void join(const Clock& other);

 private:
  std::vector<uint32_t> at_;
};

struct Epoch {
  int thread = -1;
  uint32_t time = 0;
};

class Races {  // the last accesses of every element of one memory
 public:
  explicit Races(size_t elements) : writes_(elements), reads_(elements) {}
  // Notes the access. Returns the thread of an earlier access that is not ordered before it; -1:
  // none.
  int read(size_t element, int thread, const Clock& clock);
  int write(size_t element, int thread, const Clock& clock);

 private:
  std::vector<Epoch> writes_;
  // For each element, reads that are not ordered among each other
  std::vector<std::vector<Epoch>> reads_;
};

}  // namespace tw::interpreter
