// Search spaces: schedules with holes. A space has sketches, which differ in their steps. A sketch
// has knobs, which differ in their numbers. A point fills the holes. A task's space has sketches of
// two sources: the families' own schedules with open decisions, and rules that know loops alone.
#pragma once
#include <array>
#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
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
  double share = 1;  // how often it is drawn, beside the other sketches' shares
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
  explicit Space(std::vector<Sketch> sketches);  // one at least
  const std::vector<Sketch>& sketches() const { return sketches_; }
  double size() const { return ends_.back(); }  // number of points, legal or not
  // The point with an index, 0 <= index < size (exact below 2^53)
  Point at(double index) const;
  // Draws a sketch by its share. Then a third of the points has random values everywhere, a third
  // has half of the knobs at their usual value, which is the first, and a third most of them.
  Point sample(std::mt19937_64& random) const;
  // Another point: one or two knobs changed, or sometimes another sketch that keeps the values of
  // the knobs that both have
  Point mutate(const Point& point, std::mt19937_64& random) const;
  // A point of a's sketch with each knob from either a or b, if b's sketch has it
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
  size_t drawn_sketch(std::mt19937_64& random) const;
  Point sample_in(size_t sketch, std::mt19937_64& random) const;
  // The place of a point's value for a knob of another sketch
  std::optional<int> shared_value(const Point& point, const Knob& knob) const;
  std::vector<Sketch> sketches_;
  std::vector<double> ends_;  // number of points up to the end of each sketch
};

// Where the sketches of a space come from
enum class SketchSource : uint8_t {
  all,
  templates,  // the families' own schedules; the usual point of each variant's is its default
  generated,  // rules that know loops and no families; for processors alone
};
inline constexpr std::array<std::string_view, 3> kSketchSources = {"all", "template", "generated"};
std::optional<SketchSource> sketch_source_from_name(std::string_view name);

struct SpaceOptions {
  bool rules = true;  // the static rules: registers, strides, tails
  SketchSource sketches = SketchSource::all;
};
// The sketches of all variants of the task. Devices have the families' alone. Errors: no sketch has
// a legal point; generated ones alone for a device
Expected<Space> search_space(const Task& task, const Target& target, const SpaceOptions& options);

}  // namespace tw
