// The points of a space that a search has had, and drawing among the others.
#pragma once
#include <optional>
#include <random>
#include <set>

#include "autotune/search.h"

namespace tw {

class Seen {
 public:
  explicit Seen(const Space& space) : space_(space), size_(space.size()) {}

  bool add(const Point& point) { return points_.insert(point).second; }  // false: it was there
  bool has(const Point& point) const { return points_.contains(point); }
  bool exhausted() const { return static_cast<double>(points_.size()) >= size_; }
  // A point that was not there, added; none when the space is exhausted.
  std::optional<Point> draw(std::mt19937_64& random);
  // `count` of them, or as many as there are.
  std::vector<Point> draw(int count, std::mt19937_64& random);
  // A mutation of the point that was not there, after a short walk if need be; else any. Added.
  std::optional<Point> near(const Point& point, std::mt19937_64& random);

 private:
  const Space& space_;
  double size_;
  std::set<Point> points_;
};

double unit(std::mt19937_64& random);  // uniform in [0, 1), the same on every machine

}  // namespace tw
