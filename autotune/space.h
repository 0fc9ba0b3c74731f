// Search spaces: schedules with holes. A space has sketches, which differ in their steps; a sketch
// has knobs, which differ in their numbers; a point says what fills them in. Two spaces for each
// task: the hand-written schedules with their decisions opened, and generated ones.
#pragma once
#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "autotune/task.h"
#include "ir/schedule/schedule.h"
#include "kernels/schedule/choices.h"

namespace tw {

// What a point's choices make.
struct FilledSketch {
  Schedule schedule;
  std::shared_ptr<const Kernel> kernel = nullptr;  // scheduled; null: nobody has applied it yet
  // NOLINTNEXTLINE(google-explicit-constructor): most sketches make schedules alone
  FilledSketch(Schedule s) : schedule(std::move(s)) {}
  FilledSketch(Schedule s, std::shared_ptr<const Kernel> k)
      : schedule(std::move(s)), kernel(std::move(k)) {}
};

// A schedule with holes: knobs that are independent of each other, and what fills them in. Error:
// an illegal point (ordinary).
struct Sketch {
  std::string name;
  int variant = 0;
  std::vector<Knob> knobs;
  std::function<Expected<FilledSketch>(const std::vector<int>& choice)> fill;  // from any thread
  // The choice that gives the default schedule, where one does
  std::optional<std::vector<int>> usual = {};
};
// Index of a value for each knob.
struct Point {
  int sketch = 0;
  std::vector<int> choice;
  auto operator<=>(const Point&) const = default;
};

// What a space has of a point of another kernel's.
struct SharedPoint {
  Point point;                        // knobs that are not shared have their usual values
  std::vector<std::string> left_out;  // "block_lines=4": no knob or no value of this space
};

class Space {
 public:
  // What a sample is equally likely to be of: a sketch may have many times another's points. By
  // sketches, every second sample has about half of its knobs at their usual value, the first one.
  enum class Draw : uint8_t { points, sketches };
  explicit Space(std::vector<Sketch> sketches, Draw draw = Draw::points);  // one sketch at least
  const std::vector<Sketch>& sketches() const { return sketches_; }
  double size() const { return ends_.back(); }  // number of points, legal or not
  // Enumeration, 0 <= index < size (exact below 2^53)
  Point at(double index) const;
  Point sample(std::mt19937_64& random) const;
  // Another point: one or two knobs changed, now and then another sketch
  Point mutate(const Point& point, std::mt19937_64& random) const;
  // Knob by knob from either, of a's sketch; a where sketches differ
  Point cross(const Point& a, const Point& b, std::mt19937_64& random) const;
  Expected<FilledSketch> filled(const Point& point) const;
  Expected<Schedule> schedule(const Point& point) const;
  std::string print(const Point& point) const;  // "sketch{tile_i=4x16, unroll=1}"
  // nothing: no sketch of that name, other knobs, a value that this space does not have
  std::optional<Point> parse(std::string_view text) const;
  // nothing: no sketch of that name, or none of the values
  std::optional<SharedPoint> parse_shared(std::string_view text) const;
  // The point of the default schedule, where the space has it
  std::optional<Point> default_point() const;
  // Of each sketch whose default nobody knows, the usual value of every knob; may be illegal
  std::vector<Point> starts() const;

 private:
  Point sample_in(size_t sketch, std::mt19937_64& random) const;
  Point sample_near_usual(size_t sketch, std::mt19937_64& random) const;
  std::vector<Sketch> sketches_;
  Draw draw_;
  std::vector<double> ends_;  // points up to the end of each sketch
};

// Static rules (register rule, strides, tails) on or off
struct SpaceOptions {
  bool rules = true;
};
// The steps of the hand-written schedules (autotune/spaces), a sketch for each variant of the task.
Expected<Space> template_space(const Task& task, const Target& target, const SpaceOptions& options);
// Steps that follow from the structure of the kernel alone, several sketches for each variant.
Expected<Space> generated_space(const Task& task, const Target& target,
                                const SpaceOptions& options);

}  // namespace tw
