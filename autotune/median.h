// Medians of samples, and how certain they are
#pragma once
#include <vector>

namespace tw {

struct MeasureResult;

double median_of(std::vector<double> samples);   // needs at least one sample
double seconds_of(const MeasureResult& result);  // the median time; infinite unless ok
// The fewest samples that give an interval for the median
inline constexpr int kLeastSamples = 6;
struct MedianInterval {
  double low = 0, high = 0;
};
// An interval that contains the median of the distribution with at least 95 %. It comes from order
// statistics, without an assumption about the distribution. Fewer than six samples give 0 and
// infinity. More than a hundred use the normal approximation.
MedianInterval median_interval(std::vector<double> samples);

// How much faster a schedule is than the default one, from times that were taken in turns. A
// machine that becomes faster or slower changes both alike.
struct PairedGain {
  double ratio = 1;  // median of default / schedule: above 1, the schedule is faster
  MedianInterval interval = {1, 1};
};
// The times of both by turn. Needs at least one turn; fewer than six give no interval.
PairedGain paired_gain(const std::vector<double>& by_default, const std::vector<double>& tuned);

}  // namespace tw
