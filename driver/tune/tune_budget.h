// How the time of a tuning is shared: the search, then measuring again what it found, all of it
// within the limit.
#pragma once
#include <cstddef>
#include <functional>

namespace tw {

using Clock = std::function<double()>;  // seconds since the command began; from any thread

class TuneBudget {
 public:
  // limit: seconds of everything, 0: none. kept: of them those for what comes behind the tuning.
  TuneBudget(double limit, double kept, Clock clock)
      : limit_(limit), kept_(kept), clock_(std::move(clock)) {}

  bool limited() const { return limit_ > 0; }
  double limit() const { return limit_; }
  double now() const { return clock_(); }
  // Until the tuning must be over; infinite: no limit
  double left() const;
  bool fits(double seconds) const { return seconds <= left(); }
  // Of a search that begins now; 0: no limit. Never 0 with one: then the search ends at once.
  double search_seconds() const;
  // Seconds that measuring so many gains again will take, where so many trials took so long, and
  // until a search that is told to end has ended; no more than a share of the limit.
  double confirm_seconds(size_t gains, int trials, double searched) const;
  // Of one gain, by the same figures.
  static double confirm_one(int trials, double searched);

 private:
  double limit_, kept_;
  Clock clock_;
};

}  // namespace tw
