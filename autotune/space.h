// Search spaces: schedules with holes. A space has sketches, which differ in their steps. A sketch
// has knobs, which differ in their numbers. A point fills the holes. Each task has two spaces: the
// hand-written schedules with open decisions, and generated schedules.
#pragma once
#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "autotune/task.h"
#include "ir/schedule/constant_stages.h"
#include "kernels/schedule/choices.h"

namespace tw {

// The schedule that a point's choices make, with its kernel if available
struct FilledSketch {
  Schedule schedule;
  std::shared_ptr<const RunKernel> run = nullptr;  // scheduled; null: not applied yet
  // NOLINTNEXTLINE(google-explicit-constructor): most sketches make schedules alone
  FilledSketch(Schedule s) : schedule(std::move(s)) {}
  FilledSketch(Schedule s, std::shared_ptr<const RunKernel> r)
      : schedule(std::move(s)), run(std::move(r)) {}
};

// A schedule with holes: independent knobs, and a function that fills in their values. Error: an
// illegal point, which is common.
struct Sketch {
  std::string name;
  int variant = 0;
  std::vector<Knob> knobs;
  std::function<Expected<FilledSketch>(const std::vector<int>& choice)> fill;  // from any thread
  // The choice that gives the default schedule, if there is one
  std::optional<std::vector<int>> usual = {};
};
// A sketch, and the index of a value for each of its knobs
struct Point {
  int sketch = 0;
  std::vector<int> choice;
  auto operator<=>(const Point&) const = default;
};

// The counterpart in this space of a point from another kernel's space
struct SharedPoint {
  Point point;                        // knobs that are not shared have their usual values
  std::vector<std::string> left_out;  // "block_lines=4": a knob or value that this space lacks
};

class Space {
 public:
  // The things that a sample draws with equal chance: points, or sketches, since one sketch may
  // have many times another's points. With sketches, every second sample has about half of its
  // knobs at their usual value, which is the first.
  enum class Draw : uint8_t { points, sketches };
  explicit Space(std::vector<Sketch> sketches, Draw draw = Draw::points);  // one at least
  const std::vector<Sketch>& sketches() const { return sketches_; }
  double size() const { return ends_.back(); }  // number of points, legal or not
  // The point with an index, 0 <= index < size (exact below 2^53)
  Point at(double index) const;
  Point sample(std::mt19937_64& random) const;
  // Another point: one or two knobs changed, or sometimes another sketch
  Point mutate(const Point& point, std::mt19937_64& random) const;
  // A point with each knob from either a or b; equal to a where the sketches differ
  Point cross(const Point& a, const Point& b, std::mt19937_64& random) const;
  Expected<FilledSketch> filled(const Point& point) const;
  Expected<Schedule> schedule(const Point& point) const;
  std::string print(const Point& point) const;  // "sketch{tile_i=4x16, unroll=1}"
  // Knobs that the text does not name keep their first values. Empty: no sketch of that name, or a
  // knob or value that this space lacks
  std::optional<Point> parse(std::string_view text) const;
  // Empty: no sketch of that name, or none of the values
  std::optional<SharedPoint> parse_shared(std::string_view text) const;
  // The point of the default schedule, if the space has it
  std::optional<Point> default_point() const;
  // The point of usual values, for each sketch without a known default; it may be illegal
  std::vector<Point> starts() const;

 private:
  Point sample_in(size_t sketch, std::mt19937_64& random) const;
  Point sample_near_usual(size_t sketch, std::mt19937_64& random) const;
  std::vector<Sketch> sketches_;
  Draw draw_;
  std::vector<double> ends_;  // number of points up to the end of each sketch
};

// Turns the static rules (register rule, strides, tails) on or off.
struct SpaceOptions {
  bool rules = true;
};
// The space of the hand-written schedules (autotune/spaces), with a sketch for each variant of the
// task
Expected<Space> template_space(const Task& task, const Target& target, const SpaceOptions& options);
// The space of steps that follow from the kernel's structure alone, with several sketches for each
// variant
Expected<Space> generated_space(const Task& task, const Target& target,
                                const SpaceOptions& options);

}  // namespace tw
