#include <algorithm>
#include <numeric>

#include "autotune/measure/sampler.h"
#include "autotune/models/gbt.h"
#include "autotune/scheduler.h"
#include "tests/autotune/synthetic.h"

using namespace tw;
using namespace tw::test;

namespace {

enum class Method { random, grid, genetic, anneal, gbt, scored_genetic, scored_random };
constexpr Method kMethods[] = {Method::random,       Method::grid, Method::genetic,
                               Method::anneal,       Method::gbt,  Method::scored_genetic,
                               Method::scored_random};

struct Tuned {
  std::vector<double> curve;
  double best = 0;
  bool done = false;
  int illegal = 0, measured = 0, known = 0;
};

constexpr int kBatch = 16;

Tuned tune(Search& search, Method method, uint64_t seed, int trials,
           std::vector<KnownResult> known = {}, int patience = 0) {
  GbtOptions gbt;
  gbt.top = kBatch;
  gbt.seed = seed;
  GbtModel model(knob_features(search.space), gbt);
  const bool modelled = method == Method::gbt || method == Method::scored_genetic ||
                        method == Method::scored_random;
  const ScorePoints score = modelled ? score_points(search.builder(), model, 1) : nullptr;
  AnnealingOptions annealing;
  annealing.chains = 32, annealing.iterations = 60, annealing.random_first = kBatch;
  GeneticOptions genetic;
  genetic.population = 32, genetic.scored_population = 64, genetic.random_first = kBatch;
  RandomOptions random;
  random.random_first = kBatch;
  std::unique_ptr<Explorer> explorer;
  switch (method) {
    case Method::random:
    case Method::scored_random:
      explorer = random_explorer(search.space, seed, random, score);
      break;
    case Method::grid: explorer = grid_explorer(search.space); break;
    case Method::genetic:
    case Method::scored_genetic:
      explorer = genetic_explorer(search.space, seed, genetic, score);
      break;
    case Method::anneal:
    case Method::gbt: explorer = annealing_explorer(search.space, seed, annealing, score); break;
  }
  TuneOptions options;
  options.batch = kBatch;
  options.patience = patience;
  TaskTuner tuner("task", search.space, *explorer, modelled ? &model : nullptr, search, options);
  tuner.know(std::move(known));
  auto step = tuner.run(trials);
  REQUIRE_MESSAGE(bool(step), error_text(step.takeError()));
  return {tuner.curve(),   tuner.best_seconds(), tuner.done(),
          tuner.illegal(), step->measured,       step->known};
}

double least(const Space& space, const Cost& cost) {
  double best = kFailed;
  for (double i = 0; i < space.size(); ++i) best = std::min(best, cost(space.at(i)));
  return best;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto ranks = [](const std::vector<double>& v) {
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return v[i] < v[j]; });
    std::vector<double> rank(v.size());
    // Equal values share their mean rank
    for (size_t i = 0; i < order.size();) {
      size_t end = i;
      while (end < order.size() && v[order[end]] == v[order[i]]) ++end;
      for (size_t k = i; k < end; ++k) rank[order[k]] = 0.5 * static_cast<double>(i + end - 1);
      i = end;
    }
    return rank;
  };
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = 0.5 * static_cast<double>(a.size() - 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i)
    xy += (x[i] - mean) * (y[i] - mean), xx += (x[i] - mean) * (x[i] - mean),
        yy += (y[i] - mean) * (y[i] - mean);
  return xy / std::sqrt(xx * yy);
}

std::vector<Candidate> sampled(const Space& space, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Candidate> out;
  for (int i = 0; i < count; ++i) out.push_back({space.sample(random), {}, nullptr, 0});
  return out;
}

std::vector<double> costs(const std::vector<Candidate>& candidates) {
  std::vector<double> out;
  for (const Candidate& c : candidates) out.push_back(tiled_cost(c.point));
  return out;
}

}  // namespace

TEST_CASE("every explorer goes through a small space, each point once, and finds the least") {
  const Space space = power_space(3, 4, 2);
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    Search search{space, tiled_cost};
    const Tuned tuned = tune(search, method, 5, 1000);
    CHECK(tuned.best == least(space, tiled_cost));
    CHECK(tuned.done);
    CHECK(static_cast<double>(search.measured.size()) == space.size());
  }
}

TEST_CASE("explorers other than the grid find the least of a larger space in a part of it") {
  const Space space = power_space(4, 6);  // 1296 points
  const double best = least(space, tiled_cost);
  for (const Method method : {Method::genetic, Method::anneal, Method::gbt, Method::scored_genetic,
                              Method::scored_random}) {
    CAPTURE(static_cast<int>(method));
    Search search{space, tiled_cost};
    CHECK(tune(search, method, 3, 640).best == best);
  }
}

TEST_CASE("trees and annealing need fewer trials than random search") {
  const Space space = power_space(6, 7);  // 117649 points
  // The least lies among the small values
  const double goal = 1.15 * least(power_space(6, 5), tiled_cost);
  double random_log = 0, gbt_log = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    Search a{space, tiled_cost}, b{space, tiled_cost};
    const int random = trials_until(tune(a, Method::random, seed, 600).curve, goal),
              gbt = trials_until(tune(b, Method::gbt, seed, 600).curve, goal);
    CAPTURE(random);
    CAPTURE(gbt);
    CHECK(gbt * 2 < random);
    random_log += std::log(random), gbt_log += std::log(gbt);
  }
  CHECK(std::exp((random_log - gbt_log) / 3) > 3);
}

TEST_CASE("chains on scores begin where the fastest points are, which nothing else finds") {
  const Space space = power_space(8, 8);
  const Point fastest{0, {3, 1, 4, 1, 5, 2, 6, 5}};
  const auto distance = [&](const Point& p) {
    int others = 0;
    for (size_t k = 0; k < p.choice.size(); ++k) others += p.choice[k] != fastest.choice[k];
    return others;
  };
  const ScorePoints near = [&](std::span<const Point> points) {
    std::vector<double> scores;
    for (const Point& p : points) scores.push_back(distance(p) <= 2 ? 1 : 0);
    return scores;
  };
  for (const bool known : {false, true}) {
    AnnealingOptions options;
    options.random_first = 1;
    const auto explorer = annealing_explorer(space, 5, options, near);
    const std::vector<Point> points = {known ? fastest : Point{0, {0, 0, 0, 0, 0, 0, 0, 0}},
                                       Point{0, {7, 7, 7, 7, 7, 7, 7, 7}}};
    explorer->tell(points, std::vector<double>{1, 2});
    const std::vector<Point> proposed = explorer->propose(kBatch);
    const auto found = std::ranges::count_if(proposed,
                                             [&](const Point& p) { return distance(p) <= 2; });
    CAPTURE(known);
    CHECK((found > kBatch / 2) == known);
  }
}

TEST_CASE("a search is the same for the same seed, and another for another") {
  const Space space = power_space(5, 6);
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    Search a{space, tiled_cost}, b{space, tiled_cost}, c{space, tiled_cost};
    const Tuned first = tune(a, method, 7, 96);
    CHECK(first.curve == tune(b, method, 7, 96).curve);
    CHECK(a.measured == b.measured);
    tune(c, method, 8, 96);
    CHECK((a.measured == c.measured) == (method == Method::grid));
  }
}

TEST_CASE("a search that goes on from records ends where one in one go does") {
  const Space space = power_space(5, 6);
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    Search whole{space, tiled_cost}, first{space, tiled_cost};
    const Tuned expected = tune(whole, method, 7, 100);
    tune(first, method, 7, 41);  // ends within a batch
    Search second{space, tiled_cost};
    const Tuned resumed = tune(second, method, 7, 59, first.records);
    CHECK(resumed.known == 41);
    CHECK(resumed.measured == 59);
    CHECK(resumed.best == expected.best);
    std::set<Point> both = first.measured;
    both.insert(second.measured.begin(), second.measured.end());
    CHECK(both == whole.measured);
  }
}

TEST_CASE("records of another seed count for the best and are not measured again") {
  const Space space = power_space(3, 4);
  Search first{space, tiled_cost};
  const Tuned all = tune(first, Method::random, 1, 1000);
  Search second{space, tiled_cost};
  const Tuned again = tune(second, Method::gbt, 2, 1000, first.records);
  CHECK(second.measured.empty());
  CHECK(again.best == all.best);
  // With a part of the records, the best is known before the search finds it again.
  std::vector<KnownResult> best;
  for (const KnownResult& r : first.records)
    if (seconds_of(r.result) == all.best) best.push_back(r);
  Search third{space, tiled_cost};
  CHECK(tune(third, Method::grid, 2, 1, best).best == all.best);
}

TEST_CASE("what was rejected is not measured again, and is never the best") {
  const Space space = power_space(3, 4, 2);
  Search first{space, tiled_cost};
  tune(first, Method::random, 5, 1000);
  std::vector<KnownResult> known = first.records;
  const auto fastest = std::ranges::min_element(
      known, {}, [](const KnownResult& r) { return seconds_of(r.result); });
  const double second_best = [&] {
    double best = kFailed;
    for (const KnownResult& r : known)
      if (r.schedule != fastest->schedule) best = std::min(best, seconds_of(r.result));
    return best;
  }();
  fastest->rejected = true;
  Search again{space, tiled_cost};
  const Tuned tuned = tune(again, Method::random, 5, 1000, known);
  CHECK(tuned.measured == 0);
  CHECK(tuned.best == second_best);
}

TEST_CASE("illegal points are not measured, failed ones are not the best") {
  const Space space = power_space(4, 6);
  for (const Method method : kMethods) {
    CAPTURE(static_cast<int>(method));
    Search search{space, [](const Point& p) { return p.choice[0] == 3 ? kFailed : tiled_cost(p); }};
    search.legal = [](const Point& p) { return p.choice[1] > 2; };
    const Tuned tuned = tune(search, method, 3, 1000);
    CHECK(tuned.done);
    CHECK(tuned.illegal == 648);
    CHECK(search.measured.size() == 648);
    CHECK(tuned.best == least(space, [](const Point& p) {
            return p.choice[0] == 3 || p.choice[1] <= 2 ? kFailed : tiled_cost(p);
          }));
  }
}

TEST_CASE("points that mean one schedule are measured and counted once") {
  Space space = power_space(3, 6);
  std::vector<Sketch> sketches = space.sketches();
  sketches[0].fill = [fill = sketches[0].fill](std::vector<int> choice) {
    choice[2] = 0;  // a knob that changes nothing
    return fill(choice);
  };
  space = Space(std::move(sketches));
  const auto by_text = [&](const Point& p) { return print(llvm::cantFail(space.schedule(p))); };
  for (const Method method : {Method::random, Method::genetic}) {
    CAPTURE(static_cast<int>(method));
    std::set<std::string> texts;
    Search search{space, [&](const Point& p) {
                    CHECK(texts.insert(by_text(p)).second);
                    return 1e-3 * (1 + p.choice[0] + p.choice[1]);
                  }};
    const Tuned tuned = tune(search, method, 3, 1000);
    CHECK(tuned.done);
    CHECK(texts.size() == 36);
    CHECK(tuned.curve.size() == 36);
    CHECK(tuned.illegal == 0);
  }
}

TEST_CASE("a space without a legal point is one error that shows one of them") {
  const Space space = power_space(2, 3);
  Search search{space, tiled_cost};
  search.legal = [](const Point&) { return false; };
  const std::unique_ptr<Explorer> explorer = random_explorer(space, 1);
  TaskTuner tuner("conv 3x3", space, *explorer, nullptr, search, {});
  auto step = tuner.run(10);
  REQUIRE_FALSE(bool(step));
  const std::string text = error_text(step.takeError());
  CHECK(text.find("conv 3x3: none of the 9 points tried is legal; its space has 9") !=
        std::string::npos);
  CHECK(text.find("the point is illegal") != std::string::npos);
}

TEST_CASE("a task without gains ends early, an interrupted one keeps its batch") {
  const Space space = power_space(6, 7);
  Search search{space, [](const Point&) { return 1e-3; }};
  const Tuned tuned = tune(search, Method::random, 1, 1000, {}, 50);
  CHECK(tuned.done);
  CHECK(tuned.curve.size() == 64);  // whole batches

  struct Interrupted : Search {
    using Search::Search;
    std::vector<MeasureResult> measure(std::span<const Candidate> candidates) override {
      stop = true;
      return Search::measure(candidates.first(3));
    }
    bool stop = false;
  } other(space, tiled_cost);
  const std::unique_ptr<Explorer> explorer = random_explorer(space, 1);
  TaskTuner tuner("task", space, *explorer, nullptr, other, {});
  auto step = tuner.run(100, [&] { return other.stop; });
  REQUIRE(bool(step));
  CHECK(step->measured == 3);
  CHECK(tuner.trials() == 3);
  CHECK_FALSE(tuner.done());
}

TEST_CASE("both objectives rank points that they have not seen") {
  const Space space = power_space(6, 7, 2);
  const std::vector<Candidate> train = sampled(space, 300, 1), test = sampled(space, 300, 2);
  std::vector<double> negative;
  for (const double s : costs(test)) negative.push_back(-s);
  for (const Objective objective : {Objective::rank, Objective::regression}) {
    GbtOptions options;
    options.objective = objective;
    GbtModel model(knob_features(space), options);
    model.fit(train, costs(train));
    CHECK(spearman(model.score(test), negative) > 0.8);
  }
}

TEST_CASE("a candidate of several rows scores the sum of them, by both objectives") {
  const Space space = power_space(6, 7);
  const std::vector<Candidate> train = sampled(space, 200, 1), test = sampled(space, 200, 2);
  std::vector<double> negative;
  for (const double s : costs(test)) negative.push_back(-s);
  Features parts{"parts", true, [](const Candidate& c) {
                   // one row for each pair of neighbouring knobs
                   std::vector<FeatureRow> rows;
                   for (size_t k = 0; k + 1 < c.point.choice.size(); ++k)
                     rows.push_back({static_cast<float>(k), static_cast<float>(c.point.choice[k]),
                                     static_cast<float>(c.point.choice[k + 1])});
                   return rows;
                 }};
  for (const Objective objective : {Objective::rank, Objective::regression}) {
    GbtOptions options;
    options.objective = objective;
    GbtModel model(parts, options);
    model.fit(train, costs(train));
    CHECK(spearman(model.score(test), negative) > 0.75);
  }
}

TEST_CASE("the same measurements and seed make the same trees") {
  const Space space = power_space(5, 6);
  const std::vector<Candidate> train = sampled(space, 200, 1);
  const auto bytes = [&](uint64_t seed, double factor) {
    GbtOptions options;
    options.seed = seed;
    GbtModel model(knob_features(space), options);
    std::vector<double> seconds = costs(train);
    seconds[7] *= factor;
    model.fit(train, seconds);
    return model.bytes();
  };
  CHECK_FALSE(bytes(1, 1).empty());
  CHECK(bytes(1, 1) == bytes(1, 1));
  CHECK(bytes(1, 1) != bytes(1, 5));
}

TEST_CASE("similar tasks teach a model before its first measurement and are forgotten later") {
  const Space space = power_space(5, 6);
  // The features read the schedule alone, as records of another task have no point.
  Features by_schedule{
      "text", false, [](const Candidate& c) {
        FeatureRow row;
        for (const Step& s : c.schedule.steps)
          row.push_back(static_cast<float>(std::stoi(std::get<step::Annotate>(s).value)));
        return std::vector<FeatureRow>{row};
      }};
  const auto with_text = [&](std::vector<Candidate> list) {
    for (Candidate& c : list) c.schedule = llvm::cantFail(space.schedule(c.point));
    return list;
  };
  const std::vector<Candidate> other = with_text(sampled(space, 300, 1)),
                               test = with_text(sampled(space, 200, 2)),
                               own = with_text(sampled(space, 300, 3));
  std::vector<double> slower, negative;
  for (const double s : costs(other)) slower.push_back(100 * s);
  for (const double s : costs(test)) negative.push_back(-s);
  GbtModel fresh(by_schedule, {}), taught(by_schedule, {});
  const std::vector<MeasuredSet> sets = {{other, slower}};
  taught.transfer(sets);
  CHECK(fresh.score(test) == std::vector<double>(test.size(), 0));
  CHECK(spearman(taught.score(test), negative) > 0.8);
  fresh.fit(own, costs(own));
  taught.fit(own, costs(own));  // other tasks weigh 2^(-300/64), which is below 0.05 and left out
  CHECK(fresh.score(test) == taught.score(test));
  const std::span<const Candidate> few = std::span(own).first(20);
  const std::vector<double> few_costs = costs({few.begin(), few.end()});
  fresh.fit(few, few_costs);
  taught.fit(few, few_costs);
  CHECK(spearman(taught.score(test), negative) > spearman(fresh.score(test), negative));
}

TEST_CASE("recall of the best") {
  const std::vector<float> labels = {1, 4, 3, 2};
  CHECK(average_recall(std::vector<float>{1, 4, 3, 2}, labels, 4) == 1);
  // The scores miss the best candidate, but find the best two.
  CHECK(average_recall(std::vector<float>{1, 3, 4, 2}, labels, 2) == 0.5);
  CHECK(average_recall(std::vector<float>{4, 1, 2, 3}, labels, 2) == 0);
  CHECK(average_recall(std::vector<float>{4, 1, 2, 3}, labels, 4) ==
        doctest::Approx((0 + 0 + 2.0 / 3 + 1) / 4));
}
