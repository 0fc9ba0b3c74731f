// The best-scored points of a search, and the batch that is picked from them.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "autotune/space.h"

namespace tw {

// The `count` best of what is offered; ties by the points' order, so that the result does not
// depend on that of the offers.
class Best {
 public:
  explicit Best(int count) : count_(static_cast<size_t>(count > 0 ? count : 0)) {}

  // true: it is among the best now, and was not before
  bool offer(const Point& point, double score) {
    if (count_ == 0 || score == -std::numeric_limits<double>::infinity()) return false;
    if (entries_.size() == count_ && score <= -entries_.rbegin()->first) return false;
    if (!entries_.insert({-score, point}).second) return false;
    if (entries_.size() > count_) entries_.erase(std::prev(entries_.end()));
    return true;
  }
  std::vector<Point> points() const {  // the best first
    std::vector<Point> out;
    for (const auto& entry : entries_) out.push_back(entry.second);
    return out;
  }

 private:
  size_t count_;
  std::set<std::pair<double, Point>> entries_;  // by -score
};

// Of `count` proposals, how many are random: one at least, but never all.
inline int random_share(double epsilon, int count) {
  return epsilon > 0 ? std::min(count - 1, static_cast<int>(std::ceil(epsilon * count))) : 0;
}

// `count` of the points (the best first), one after the other: each time the one whose rank and
// whose knob values that no chosen one has count most.
std::vector<Point> pick_diverse(const std::vector<Point>& points, int count);

}  // namespace tw
