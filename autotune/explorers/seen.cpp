#include "autotune/explorers/seen.h"

#include <cmath>

namespace tw {
namespace {
// Draws that may meet known points, before the space counts as nearly exhausted
constexpr int kTries = 32;
constexpr int kWalk = 8;
}  // namespace

std::optional<Point> Seen::draw(std::mt19937_64& random) {
  if (exhausted()) return std::nullopt;
  for (int i = 0; i < kTries; ++i)
    if (Point point = space_.sample(random); add(point)) return point;
  // Searches from a random place on. There are more points than known ones, so a new one is found.
  double index = std::min(size_ - 1, std::floor(unit(random) * size_));
  for (size_t i = 0; i <= points_.size(); ++i) {
    if (Point point = space_.at(index); add(point)) return point;
    index = index + 1 < size_ ? index + 1 : 0;
  }
  return std::nullopt;
}

std::vector<Point> Seen::draw(int count, std::mt19937_64& random) {
  std::vector<Point> out;
  while (static_cast<int>(out.size()) < count) {
    std::optional<Point> point = draw(random);
    if (!point) break;
    out.push_back(std::move(*point));
  }
  return out;
}

std::optional<Point> Seen::near(const Point& point, std::mt19937_64& random) {
  Point at = point;
  for (int i = 0; i < kWalk; ++i) {
    at = space_.mutate(at, random);
    if (add(at)) return at;
  }
  return draw(random);
}

double unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace tw
