#include "autotune/space.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

// A number below n >= 1, equal with every standard library.
size_t below(size_t n, std::mt19937_64& random) { return static_cast<size_t>(random() % n); }

double points_of(const Sketch& sketch) {
  double points = 1;
  for (const Knob& knob : sketch.knobs) points *= static_cast<double>(knob.values.size());
  return points;
}

// Indices of the knobs that have more than one value
std::vector<size_t> free_knobs(const Sketch& sketch) {
  std::vector<size_t> free;
  for (size_t i = 0; i < sketch.knobs.size(); ++i)
    if (sketch.knobs[i].values.size() > 1) free.push_back(i);
  return free;
}

std::string text_of(const std::vector<int64_t>& value) {
  std::string text;
  for (int64_t number : value) text += (text.empty() ? "" : "x") + std::to_string(number);
  return text;
}

}  // namespace

std::optional<SketchSource> sketch_source_from_name(std::string_view name) {
  const auto found = std::ranges::find(kSketchSources, name);
  if (found == kSketchSources.end()) return std::nullopt;
  return static_cast<SketchSource>(found - kSketchSources.begin());
}

Space::Space(std::vector<Sketch> sketches) : sketches_(std::move(sketches)) {
  TW_CHECK(!sketches_.empty(), "a space without sketches");
  double end = 0;
  for (const Sketch& sketch : sketches_) {
    for (const Knob& knob : sketch.knobs)
      TW_CHECK(!knob.values.empty(), "knob '{0}' has no values", knob.name);
    ends_.push_back(end += points_of(sketch));
  }
}

Point Space::at(double index) const {
  TW_CHECK(index >= 0 && index < size(), "no point {0} in a space of {1}", index, size());
  Point point;
  while (index >= ends_[static_cast<size_t>(point.sketch)]) ++point.sketch;
  const Sketch& sketch = sketches_[static_cast<size_t>(point.sketch)];
  if (point.sketch > 0) index -= ends_[static_cast<size_t>(point.sketch) - 1];
  point.choice.resize(sketch.knobs.size());
  for (size_t i = sketch.knobs.size(); i-- > 0;) {  // the last knob changes fastest
    const auto count = static_cast<double>(sketch.knobs[i].values.size());
    point.choice[i] = static_cast<int>(std::fmod(index, count));
    index = std::floor(index / count);
  }
  return point;
}

Point Space::sample_in(size_t sketch, std::mt19937_64& random) const {
  Point point{static_cast<int>(sketch), {}};
  for (const Knob& knob : sketches_[sketch].knobs)
    point.choice.push_back(static_cast<int>(below(knob.values.size(), random)));
  return point;
}

size_t Space::drawn_sketch(std::mt19937_64& random) const {
  double all = 0;
  for (const Sketch& sketch : sketches_) all += sketch.share;
  double at = static_cast<double>(random() >> 11) * 0x1p-53 * all;
  for (size_t i = 0; i + 1 < sketches_.size(); ++i)
    if ((at -= sketches_[i].share) < 0) return i;
  return sketches_.size() - 1;
}

Point Space::sample(std::mt19937_64& random) const {
  constexpr std::array<size_t, 3> kUsual = {0, 8, 13};  // sixteenths of the knobs
  Point point = sample_in(drawn_sketch(random), random);
  const size_t usual = kUsual[below(kUsual.size(), random)];
  for (int& value : point.choice)
    if (below(16, random) < usual) value = 0;
  return point;
}

std::optional<int> Space::shared_value(const Point& point, const Knob& knob) const {
  const std::vector<Knob>& knobs = sketches_[static_cast<size_t>(point.sketch)].knobs;
  const auto own = std::ranges::find(knobs, knob.name, &Knob::name);
  if (own == knobs.end()) return std::nullopt;
  const int chosen = point.choice[static_cast<size_t>(own - knobs.begin())];
  const auto value = std::ranges::find(knob.values, own->values[static_cast<size_t>(chosen)]);
  if (value == knob.values.end()) return std::nullopt;
  return static_cast<int>(value - knob.values.begin());
}

Point Space::mutate(const Point& point, std::mt19937_64& random) const {
  constexpr size_t kOtherSketch = 16, kTwoKnobs = 4;  // one time in this many
  const Sketch& sketch = sketches_[static_cast<size_t>(point.sketch)];
  const std::vector<size_t> free = free_knobs(sketch);
  if (sketches_.size() > 1 && (free.empty() || below(kOtherSketch, random) == 0)) {
    const size_t drawn = below(sketches_.size() - 1, random);
    const size_t other = drawn + (drawn >= static_cast<size_t>(point.sketch));
    Point moved = sample_in(other, random);
    for (size_t k = 0; k < moved.choice.size(); ++k)
      moved.choice[k] = shared_value(point, sketches_[other].knobs[k]).value_or(moved.choice[k]);
    return moved;
  }
  Point changed = point;
  if (free.empty()) return changed;
  const size_t first = below(free.size(), random);
  const auto change = [&](size_t knob) {
    const size_t count = sketch.knobs[knob].values.size();
    changed.choice[knob] = static_cast<int>(
        (static_cast<size_t>(changed.choice[knob]) + 1 + below(count - 1, random)) % count);
  };
  change(free[first]);
  if (free.size() > 1 && below(kTwoKnobs, random) == 0)
    change(free[(first + 1 + below(free.size() - 1, random)) % free.size()]);
  return changed;
}

Point Space::cross(const Point& a, const Point& b, std::mt19937_64& random) const {
  Point child = a;
  const std::vector<Knob>& knobs = sketches_[static_cast<size_t>(a.sketch)].knobs;
  for (size_t i = 0; i < child.choice.size(); ++i)
    if (below(2, random) == 1) child.choice[i] = shared_value(b, knobs[i]).value_or(a.choice[i]);
  return child;
}

Expected<Schedule> Space::schedule(const Point& point) const {
  TW_ASSIGN(FilledSketch made, filled(point));
  return std::move(made.schedule);
}

Expected<FilledSketch> Space::filled(const Point& point) const {
  const auto index = static_cast<size_t>(point.sketch);
  bool inside = point.sketch >= 0 && index < sketches_.size() &&
                point.choice.size() == sketches_[index].knobs.size();
  for (size_t i = 0; inside && i < point.choice.size(); ++i)
    inside = point.choice[i] >= 0 &&
             static_cast<size_t>(point.choice[i]) < sketches_[index].knobs[i].values.size();
  if (!inside)
    return make_error(DiagCode::invalid_argument,
                      "the point is of another space than this one of {0} sketches",
                      sketches_.size());
  return sketches_[index].fill(point.choice);
}

std::string Space::print(const Point& point) const {
  const Sketch& sketch = sketches_[static_cast<size_t>(point.sketch)];
  std::string text;
  for (size_t i = 0; i < sketch.knobs.size(); ++i) {
    const Knob& knob = sketch.knobs[i];
    text += (i ? ", " : "") + knob.name + "=" +
            text_of(knob.values[static_cast<size_t>(point.choice[i])]);
  }
  return sketch.name + "{" + text + "}";
}

std::optional<Point> Space::parse(std::string_view text) const {
  std::optional<SharedPoint> shared = parse_shared(text);
  if (!shared || !shared->left_out.empty()) return std::nullopt;
  return std::move(shared->point);
}

std::optional<SharedPoint> Space::parse_shared(std::string_view text) const {
  const size_t brace = text.find('{');
  if (brace == std::string_view::npos || !text.ends_with('}')) return std::nullopt;
  const auto found = std::ranges::find(sketches_, text.substr(0, brace), &Sketch::name);
  if (found == sketches_.end()) return std::nullopt;
  SharedPoint shared{
      {static_cast<int>(found - sketches_.begin()), std::vector<int>(found->knobs.size(), 0)}, {}};
  std::string_view rest = text.substr(brace + 1, text.size() - brace - 2);
  bool any = rest.empty() && found->knobs.empty();
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(", "));
    rest = one.size() == rest.size() ? std::string_view() : rest.substr(one.size() + 2);
    bool known = false;
    for (size_t k = 0; k < found->knobs.size() && !known; ++k)
      for (size_t v = 0; v < found->knobs[k].values.size() && !known; ++v) {
        known = one == found->knobs[k].name + "=" + text_of(found->knobs[k].values[v]);
        if (known) shared.point.choice[k] = static_cast<int>(v);
      }
    any |= known;
    if (!known) shared.left_out.emplace_back(one);
  }
  return any ? std::optional(std::move(shared)) : std::nullopt;
}

std::vector<Point> Space::starts() const {
  std::vector<Point> points;
  for (size_t i = 0; i < sketches_.size(); ++i)
    if (!sketches_[i].usual)
      points.push_back({static_cast<int>(i), std::vector<int>(sketches_[i].knobs.size(), 0)});
  return points;
}

std::optional<Point> Space::default_point() const {
  for (size_t i = 0; i < sketches_.size(); ++i)
    if (sketches_[i].usual) return Point{static_cast<int>(i), *sketches_[i].usual};
  return std::nullopt;
}

}  // namespace tw
