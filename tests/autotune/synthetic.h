// For tests: spaces whose points have a known cost, and searches over them.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "autotune/explorers/explorers.h"
#include "autotune/tuner.h"

namespace tw::test {

inline constexpr double kFailed = std::numeric_limits<double>::infinity();

// A space of `knobs` knobs with the values 1, 2, 4, ... Its schedules only name their point.
inline Space power_space(int knobs, int values, int sketches = 1) {
  std::vector<Sketch> list;
  for (int s = 0; s < sketches; ++s) {
    Sketch sketch{"s" + std::to_string(s), 0, {}, nullptr, {}};
    for (int k = 0; k < knobs; ++k) {
      Knob knob{"t" + std::to_string(k), {}};
      for (int v = 0; v < values; ++v) knob.values.push_back({int64_t{1} << v});
      sketch.knobs.push_back(std::move(knob));
    }
    sketch.fill = [s](const std::vector<int>& choice) -> Expected<Schedule> {
      Schedule schedule;
      for (size_t k = 0; k < choice.size(); ++k) {
        const std::string loop = "s" + std::to_string(s) + "_" + std::to_string(k);
        schedule.steps.push_back(step::Annotate{loop, "value", std::to_string(choice[k])});
      }
      return schedule;
    };
    list.push_back(std::move(sketch));
  }
  return Space(std::move(list));
}

using Cost = std::function<double(const Point&)>;  // seconds; infinite: fails when it runs

// A cost that is least at 3, 2, 3, 2, ... As with tiles, products must fit a cache, and knobs
// depend on each other. The cost is smooth but for the cache's edge.
inline double tiled_cost(const Point& p) {
  double cost = 1, volume = 0;
  for (size_t k = 0; k < p.choice.size(); ++k) {
    const double off = p.choice[k] - (k % 2 ? 2.0 : 3.0);
    cost += 0.25 * off * off;
    volume += p.choice[k];
    if (k) cost += 0.1 * std::abs(p.choice[k] + p.choice[k - 1] - 5);
  }
  return (cost + (volume > 3.0 * static_cast<double>(p.choice.size()) ? 2 : 0)) *
         (1 + 0.5 * p.sketch) * 1e-3;
}

// A search over a space with a known cost. It counts its measurements, and fails on a point
// measured twice.
struct Search : TaskTrials {
  Search(const Space& s, Cost c) : space(s), cost(std::move(c)) {}
  const Space& space;
  Cost cost;
  std::set<Point> measured = {};
  std::vector<KnownResult> records = {};
  std::function<bool(const Point&)> legal = [](const Point&) { return true; };
  std::function<std::shared_ptr<const RunKernel>(const Point&)> kernel = nullptr;

  MakeCandidate builder() {
    return [this](const Point& point) { return make(point); };
  }
  Expected<Candidate> make(const Point& point) const override {
    if (!legal(point)) return make_error(DiagCode::illegal_schedule, "the point is illegal");
    TW_ASSIGN(Schedule schedule, space.schedule(point));
    return Candidate{point, std::move(schedule), kernel ? kernel(point) : nullptr, 0};
  }
  Expected<Candidate> adopt(int variant, const Schedule& schedule) const override {
    return Candidate{{-1, {}}, schedule, nullptr, variant};
  }
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates) override {
    std::vector<MeasureResult> out;
    for (const Candidate& c : candidates) {
      CHECK(measured.insert(c.point).second);
      const double seconds = cost(c.point);
      if (std::isfinite(seconds)) out.push_back({Status::ok, {seconds}, "", "", false});
      else out.push_back({Status::crashed, {}, "signal 11", "", false});
      records.push_back({c.variant, print(c.schedule), out.back()});
    }
    return out;
  }
};

// Trials until the time is at most `seconds`; all + 1 if it never is.
inline int trials_until(const std::vector<double>& curve, double seconds) {
  for (size_t i = 0; i < curve.size(); ++i)
    if (curve[i] <= seconds) return static_cast<int>(i) + 1;
  return static_cast<int>(curve.size()) + 1;
}

}  // namespace tw::test
