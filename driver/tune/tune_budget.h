// The time of a tuning: the search, then measuring again what it found, all of it within one limit.
#pragma once
#include <cstddef>
#include <functional>

namespace tw {

using Clock = std::function<double()>;  // seconds since the command began; from any thread

class TuneBudget {
 public:
  // limit: seconds for everything; 0: none. kept: seconds of it for the steps behind the tuning
  TuneBudget(double limit, double kept, Clock clock)
      : limit_(limit), kept_(kept), clock_(std::move(clock)) {}

  bool limited() const { return limit_ > 0; }
  double limit() const { return limit_; }
  double now() const { return clock_(); }
  // Seconds until the tuning must be over; infinite: no limit
  double left() const;
  bool fits(double seconds) const { return seconds <= left(); }
  // Seconds of a search that begins now; 0: no limit. With a limit it is never 0: a search without
  // time left ends at once.
  double search_seconds() const;
  // Seconds to end a search and to measure the gains again, if `trials` trials took `searched`
  // seconds; at most a share of the limit
  double confirm_seconds(size_t gains, int trials, double searched) const;
  // Seconds for one gain, by the same figures
  static double confirm_one(int trials, double searched);

 private:
  double limit_, kept_;
  Clock clock_;
};

}  // namespace tw
