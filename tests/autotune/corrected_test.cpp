// Predictors that learn from a task's measurements.
#include <algorithm>
#include <cmath>

#include "autotune/explorers/seen.h"
#include "autotune/models/corrected.h"
#include "autotune/models/gaussian.h"
#include "tests/autotune/synthetic.h"

using namespace tw;
using namespace tw::test;

namespace {

// Makes candidates of points. The model reads nothing else of a candidate.
std::vector<Candidate> candidates_of(std::span<const Point> points) {
  std::vector<Candidate> out;
  for (const Point& point : points) out.push_back({point, {}, std::make_shared<RunKernel>(), 0});
  return out;
}

std::vector<Prediction> by_first_knob(std::span<const Candidate> candidates) {
  std::vector<Prediction> out;
  for (const Candidate& c : candidates)
    out.push_back({0.1 * c.point.choice[0], 0.3, {static_cast<float>(c.point.choice[0])}});
  return out;
}

std::vector<Point> some_points(const Space& space, int count) {
  std::mt19937_64 random(5);
  std::vector<Point> points;
  while (static_cast<int>(points.size()) < count) {
    const Point point = space.at(std::floor(unit(random) * space.size()));
    if (std::ranges::find(points, point) == points.end()) points.push_back(point);
  }
  return points;
}

}  // namespace

TEST_CASE("a Gaussian process gives its values back, less the noise's share") {
  const std::vector<double> values = {2, -1};
  const GaussianProcess apart({1, 0, 0, 1}, values, 1);
  CHECK(apart.mean(std::vector<double>{1, 0}) == doctest::Approx(1));
  CHECK(apart.mean(std::vector<double>{0, 1}) == doctest::Approx(-0.5));
  CHECK(apart.mean(std::vector<double>{0, 0}) == 0);
  CHECK(apart.log_likelihood() == doctest::Approx(-(2.0 * 2 + 1) / 4 - std::log(2.0)));
  // Two equal items predict the mean of their values.
  const GaussianProcess same({1, 1, 1, 1}, values, 1e-6);
  CHECK(same.mean(std::vector<double>{1, 1}) == doctest::Approx(0.5));
  const std::vector<double> known = same.explained(std::vector<double>{1, 1});
  CHECK(known[0] * known[0] + known[1] * known[1] == doctest::Approx(1));
}

TEST_CASE("a predictor is corrected where measurements say that it is wrong") {
  const Space space = power_space(3, 6);
  CorrectedModel model(by_first_knob);
  const std::vector<Point> points = some_points(space, 80);
  const std::vector<Candidate> candidates = candidates_of(points);
  const std::vector<double> before = model.score(candidates);
  for (size_t i = 0; i < points.size(); ++i) CHECK(before[i] == 0.1 * points[i].choice[0]);

  // The true speed grows with the second knob and falls with the first one.
  const auto speed = [](const Point& p) { return 0.5 * p.choice[1] - 0.5 * p.choice[0]; };
  std::vector<double> seconds;
  for (size_t i = 0; i < 40; ++i) seconds.push_back(std::exp2(-speed(points[i])));
  model.fit(std::span(candidates).first(40), seconds);
  const std::vector<double> after = model.score(candidates);
  // The share of pairs of unmeasured points that the scores put in the right order
  const auto ordered = [&](const std::vector<double>& scores) {
    int right = 0, all = 0;
    for (size_t i = 40; i < points.size(); ++i)
      for (size_t j = 40; j < i; ++j) {
        if (std::abs(speed(points[i]) - speed(points[j])) < 0.5) continue;
        right += (scores[i] < scores[j]) == (speed(points[i]) < speed(points[j]));
        ++all;
      }
    return static_cast<double>(right) / all;
  };
  CHECK(ordered(before) < 0.55);
  CHECK(ordered(after) > 0.75);
}

TEST_CASE("what failed counts as slow, and when all failed the predictor stands") {
  const Space space = power_space(2, 6);
  CorrectedModel model(by_first_knob);
  const std::vector<Point> points = {{0, {5, 0}}, {0, {5, 1}}, {0, {1, 4}}, {0, {1, 5}}};
  const std::vector<Candidate> candidates = candidates_of(points);
  model.fit(std::span(candidates).first(2), std::vector<double>{kFailed, kFailed});
  CHECK(model.score(candidates)[0] == 0.5);
  model.fit(std::span(candidates).first(3), std::vector<double>{kFailed, kFailed, 1e-3});
  const std::vector<double> scores = model.score(candidates);
  CHECK(scores[3] > scores[0]);
  CHECK(scores[3] > scores[1]);
}

TEST_CASE("what is measured together is the best first, then what is less alike") {
  CorrectedModel model(by_first_knob);
  std::vector<Point> points;
  for (int value = 0; value < 6; ++value) points.push_back({0, {5, value, 0, 0}});
  for (int value = 0; value < 6; ++value) points.push_back({0, {4, 5, 5, value}});
  model.score(candidates_of(points));
  const std::vector<Point> chosen = model.choose(points, 4);
  REQUIRE(chosen.size() == 4);
  CHECK(chosen[0].choice[0] == 5);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < i; ++j) CHECK(chosen[i] != chosen[j]);
  CHECK(std::ranges::any_of(chosen, [](const Point& p) { return p.choice[0] == 4; }));
  CHECK(model.choose(points, 100).size() == points.size());
}

TEST_CASE("another algorithm is tried once, and not trusted before") {
  CorrectedModel model(by_first_knob);
  const std::vector<Point> points = {{0, {1, 0}}, {0, {1, 1}}, {1, {5, 0}}, {1, {5, 1}}};
  std::vector<Candidate> candidates = candidates_of(points);
  candidates[2].variant = candidates[3].variant = 1;
  model.score(candidates);
  const std::vector<Point> chosen = model.choose(points, 2);
  CHECK(chosen[0].sketch == 0);
  CHECK(chosen[1].sketch == 1);
  // The measured candidate of the second algorithm was slow, so the other one counts as slow too.
  model.fit(std::vector<Candidate>{candidates[0], candidates[2]}, std::vector<double>{1e-3, 4e-3});
  const std::vector<double> scores = model.score(candidates);
  CHECK(scores[1] > scores[3] + 1);
}

TEST_CASE("a search with a corrected model finds more than the same search without") {
  const Space space = power_space(6, 8, 2);
  const auto found = [&](bool corrects, int batches) {
    CorrectedModel model([](std::span<const Candidate> candidates) {
      std::vector<Prediction> out;
      for (const Candidate& c : candidates)  // half blind: sees only knobs 0 and 2
        out.push_back(
            {-0.3 * std::abs(c.point.choice[0] - 3) - 0.3 * std::abs(c.point.choice[2] - 4),
             0.3,
             {}});
      return out;
    });
    const MakeCandidate make = [](const Point& point) -> Expected<Candidate> {
      return Candidate{point, {}, std::make_shared<RunKernel>(), 0};
    };
    const auto explorer = draft_explorer(
        space, 3, {.again = 1}, score_points(make, model, 1),
        [&](std::span<const Point> points, int count) { return model.choose(points, count); });
    std::vector<Candidate> seen;
    std::vector<double> seconds;
    for (int batch = 0; batch < batches; ++batch) {
      const std::vector<Point> points = explorer->propose(8);
      std::vector<double> own;
      for (const Point& point : points) own.push_back(tiled_cost(point));
      for (const Candidate& c : candidates_of(points)) seen.push_back(c);
      seconds.insert(seconds.end(), own.begin(), own.end());
      if (corrects) model.fit(seen, seconds);
      explorer->tell(points, own);
    }
    return std::ranges::min(seconds);
  };
  CHECK(found(true, 6) < 0.7 * found(false, 6));
  CHECK(found(true, 6) == found(true, 6));
}
