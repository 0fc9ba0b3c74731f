// Remembers the points of a space that a search has had, and draws others.
#pragma once
#include <optional>
#include <random>
#include <set>

#include "autotune/search.h"

namespace tw {

class Seen {
 public:
  explicit Seen(const Space& space) : space_(space), size_(space.size()) {}

  bool add(const Point& point) { return points_.insert(point).second; }  // false: it is known
  bool has(const Point& point) const { return points_.contains(point); }
  bool exhausted() const { return static_cast<double>(points_.size()) >= size_; }
  // Draws a new point and adds it; none when the space is exhausted.
  std::optional<Point> draw(std::mt19937_64& random);
  // Draws `count` new points, or all that are left.
  std::vector<Point> draw(int count, std::mt19937_64& random);
  // Draws a new mutation of the point and adds it, after a short walk if need be; else any new
  // point.
  std::optional<Point> near(const Point& point, std::mt19937_64& random);

 private:
  const Space& space_;
  double size_;
  std::set<Point> points_;
};

// These give the same numbers with every standard library:
double unit(std::mt19937_64& random);  // uniform in [0, 1)
template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

}  // namespace tw
