// The best-scored points of a search, and the batch that is picked from them
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "autotune/space.h"

namespace tw {

// Keeps the `count` best points that are offered. The points' order breaks ties, so that the order
// of the offers does not matter.
class Best {
 public:
  explicit Best(int count) : count_(static_cast<size_t>(count > 0 ? count : 0)) {}

  // true: the point becomes one of the best
  bool offer(const Point& point, double score) {
    if (count_ == 0 || score == -std::numeric_limits<double>::infinity()) return false;
    if (entries_.size() == count_ && score <= -entries_.rbegin()->first) return false;
    if (!entries_.insert({-score, point}).second) return false;
    if (entries_.size() > count_) entries_.erase(std::prev(entries_.end()));
    return true;
  }
  std::vector<Point> points() const {  // best first
    std::vector<Point> out;
    for (const auto& entry : entries_) out.push_back(entry.second);
    return out;
  }

 private:
  size_t count_;
  std::set<std::pair<double, Point>> entries_;  // by -score
};

// The number of random points among `count` proposals: at least one, but never all.
inline int random_share(double epsilon, int count) {
  return epsilon > 0 ? std::min(count - 1, static_cast<int>(std::ceil(epsilon * count))) : 0;
}

// Picks `count` of the points, which are sorted best first. Each pick has the largest sum of its
// rank and its share of knob values that no earlier pick has.
std::vector<Point> pick_diverse(const std::vector<Point>& points, int count);

}  // namespace tw
