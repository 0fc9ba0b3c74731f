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

// The same on every machine:
double unit(std::mt19937_64& random);  // uniform in [0, 1)
template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

}  // namespace tw
