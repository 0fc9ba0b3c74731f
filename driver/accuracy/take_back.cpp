#include "driver/accuracy/take_back.h"

#include <queue>
#include <utility>

namespace tw {

Expected<TakenBack> take_back(const ChoiceErrors& errors, double error, double most) {
  struct Run {
    double error;
    size_t first, last;
    bool operator<(const Run& other) const { return error < other.error; }
  };
  TakenBack taken;
  taken.error = error;
  taken.within = error <= most;
  std::priority_queue<Run> runs;
  if (errors.count > 0) runs.push({error, 0, errors.count});
  while (!taken.within && !runs.empty()) {
    const Run worst = runs.top();
    runs.pop();
    if (worst.last - worst.first > 1) {
      const size_t middle = worst.first + (worst.last - worst.first) / 2;
      for (const auto& [first, last] : {std::pair(worst.first, middle), {middle, worst.last}}) {
        TW_ASSIGN(const double alone, errors.alone(first, last));
        runs.push({alone, first, last});
      }
      continue;
    }
    taken.choices.insert(worst.first);
    TW_ASSIGN(taken.error, errors.without(taken.choices));
    taken.within = taken.error <= most;
  }
  return taken;
}

}  // namespace tw
