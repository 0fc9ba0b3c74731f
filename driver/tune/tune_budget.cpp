#include "driver/tune/tune_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Measuring a gain again takes three processes with three schedules each, and two builds: as long
// as this many trials, each of them a build, a run and its part of the search.
constexpr double kTrialsOfOne = 8;
// Trials that are under way when a search is told to end: they are finished.
constexpr double kUnderWay = 2;
constexpr double kLeastOne = 0.3;        // seconds to start the processes
constexpr double kMostConfirming = 0.3;  // share of the limit
}  // namespace

double TuneBudget::left() const { return limited() ? limit_ - kept_ - clock_() : kInfinity; }

double TuneBudget::search_seconds() const { return limited() ? std::max(left(), 1e-3) : 0; }

double TuneBudget::confirm_one(int trials, double searched) {
  return std::max(kLeastOne, trials > 0 ? kTrialsOfOne * searched / trials : 0);
}

double TuneBudget::confirm_seconds(size_t gains, int trials, double searched) const {
  const double under_way = trials > 0 ? kUnderWay * searched / trials : 0;
  return limited()
             ? std::min(kMostConfirming * limit_,
                        static_cast<double>(gains) * confirm_one(trials, searched) + under_way)
             : 0;
}

}  // namespace tw
