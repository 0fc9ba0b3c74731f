#include "ir/kernel/races.h"

#include <algorithm>

namespace tw::interpreter {

void Clock::tick(int thread) {
  if (at_.size() <= static_cast<size_t>(thread)) at_.resize(static_cast<size_t>(thread) + 1);
  ++at_[static_cast<size_t>(thread)];
}

void Clock::join(const Clock& other) {
  if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
  for (size_t i = 0; i < other.at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
}

namespace {
bool before(const Epoch& e, const Clock& clock) {
  return e.thread < 0 || e.time <= clock.of(e.thread);
}
}  // namespace

int Races::read(size_t element, int thread, const Clock& clock) {
  const Epoch& write = writes_[element];
  const int found = before(write, clock) ? -1 : write.thread;
  std::vector<Epoch>& reads = reads_[element];
  std::erase_if(reads, [&](const Epoch& e) { return before(e, clock); });
  reads.push_back({thread, clock.of(thread)});
  return found;
}

int Races::write(size_t element, int thread, const Clock& clock) {
  int found = before(writes_[element], clock) ? -1 : writes_[element].thread;
  for (const Epoch& e : reads_[element])
    if (!before(e, clock)) found = e.thread;
  reads_[element].clear();
  writes_[element] = {thread, clock.of(thread)};
  return found;
}

}  // namespace tw::interpreter
