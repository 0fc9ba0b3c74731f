#include "autotune/explorers/pick.h"

#include <algorithm>

namespace tw {

std::vector<Point> pick_diverse(const std::vector<Point>& points, int count) {
  if (static_cast<int>(points.size()) <= count) return points;
  std::set<std::pair<std::pair<int, size_t>, int>> present;  // (sketch, knob), value
  std::vector<bool> taken(points.size(), false);
  std::vector<Point> out;
  const double all = static_cast<double>(points.size());
  while (static_cast<int>(out.size()) < count) {
    size_t best = points.size();
    double most = -1;
    for (size_t i = 0; i < points.size(); ++i) {
      if (taken[i]) continue;
      int fresh = 0;
      for (size_t k = 0; k < points[i].choice.size(); ++k)
        fresh += !present.contains({{points[i].sketch, k}, points[i].choice[k]});
      const double knobs = std::max<double>(1, static_cast<double>(points[i].choice.size()));
      const double gain = (all - static_cast<double>(i)) / all + fresh / knobs;
      if (gain > most) {
        most = gain;
        best = i;
      }
    }
    taken[best] = true;
    for (size_t k = 0; k < points[best].choice.size(); ++k)
      present.insert({{points[best].sketch, k}, points[best].choice[k]});
    out.push_back(points[best]);
  }
  return out;
}

}  // namespace tw
