#include "autotune/space.h"

#include <cmath>

namespace tw {
namespace {
double size_of(const Sketch& sketch) {
  double size = 1;
  for (const Knob& knob : sketch.knobs) size *= static_cast<double>(knob.values.size());
  return size;
}
int below(size_t count, std::mt19937_64& random) { return static_cast<int>(random() % count); }
}  // namespace

Space::Space(std::vector<Sketch> sketches) : sketches_(std::move(sketches)) {}

double Space::size() const {
  double size = 0;
  for (const Sketch& sketch : sketches_) size += size_of(sketch);
  return size;
}

Point Space::at(double index) const {
  Point point;
  while (index >= size_of(sketches_[static_cast<size_t>(point.sketch)])) index -= size_of(sketches_[static_cast<size_t>(point.sketch++)]);
  for (const Knob& knob : sketches_[static_cast<size_t>(point.sketch)].knobs) {
    const double count = static_cast<double>(knob.values.size());
    point.choice.push_back(static_cast<int>(std::fmod(index, count)));
    index = std::floor(index / count);
  }
  return point;
}

Point Space::sample(std::mt19937_64& random) const {
  return at(std::min(size() - 1, std::floor(size() * (static_cast<double>(random() >> 11) * 0x1p-53))));
}

Point Space::mutate(const Point& point, std::mt19937_64& random) const {
  if (sketches_.size() > 1 && random() % 16 == 0) return sample(random);
  Point other = point;
  const Sketch& sketch = sketches_[static_cast<size_t>(point.sketch)];
  const int changes = 1 + static_cast<int>(random() % 2);
  for (int i = 0; i < changes && !sketch.knobs.empty(); ++i) {
    const size_t k = static_cast<size_t>(below(sketch.knobs.size(), random));
    other.choice[k] = below(sketch.knobs[k].values.size(), random);
  }
  return other;
}

Point Space::cross(const Point& a, const Point& b, std::mt19937_64& random) const {
  if (a.sketch != b.sketch) return a;
  Point child = a;
  for (size_t k = 0; k < child.choice.size(); ++k)
    if (random() & 1) child.choice[k] = b.choice[k];
  return child;
}

Expected<Schedule> Space::schedule(const Point& point) const { return sketches_[static_cast<size_t>(point.sketch)].fill(point.choice); }

std::string Space::print(const Point& point) const {
  const Sketch& sketch = sketches_[static_cast<size_t>(point.sketch)];
  std::string text = sketch.name + "{";
  for (size_t k = 0; k < sketch.knobs.size(); ++k) {
    text += (k ? ", " : "") + sketch.knobs[k].name + "=";
    const std::vector<int64_t>& value = sketch.knobs[k].values[static_cast<size_t>(point.choice[k])];
    for (size_t i = 0; i < value.size(); ++i) text += (i ? "x" : "") + std::to_string(value[i]);
  }
  return text + "}";
}

std::optional<Point> Space::default_point() const { return std::nullopt; }

}  // namespace tw
