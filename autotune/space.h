// Search spaces: schedules with holes, and what can be done with their points.
#pragma once
#include <compare>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/schedule/schedule.h"

namespace tw {

// One free choice: each value is a list of numbers (a factorisation, a switch, a depth).
struct Knob { std::string name; std::vector<std::vector<int64_t>> values; };
// A schedule with holes: knobs that are independent of each other, and what fills them in. Error: an illegal point (ordinary).
struct Sketch {
  std::string name;
  int variant = 0;
  std::vector<Knob> knobs;
  std::function<Expected<Schedule>(const std::vector<int>& choice)> fill;
};
// Index of a value for each knob of the sketch.
struct Point { int sketch = 0; std::vector<int> choice; auto operator<=>(const Point&) const = default; };

class Space {
 public:
  explicit Space(std::vector<Sketch> sketches);
  const std::vector<Sketch>& sketches() const { return sketches_; }
  double size() const;                              // number of points, legal or not
  Point at(double index) const;                     // enumeration, 0 <= index < size (exact below 2^53)
  Point sample(std::mt19937_64& random) const;      // uniform over all points
  Point mutate(const Point& point, std::mt19937_64& random) const;   // another point: one or two knobs changed, now and then another sketch
  Point cross(const Point& a, const Point& b, std::mt19937_64& random) const;  // knob by knob from either, of a's sketch; a where sketches differ
  Expected<Schedule> schedule(const Point& point) const;
  std::string print(const Point& point) const;      // "sketch{tile_i=4x16, unroll=1}"
  std::optional<Point> default_point() const;       // the point of the default schedule, where the space has it

 private:
  std::vector<Sketch> sketches_;
};

}  // namespace tw
