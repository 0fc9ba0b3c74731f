// Genetic search: tournaments choose parents, children mix their knobs and sometimes mutate, and
// the elites stay. Without a model every individual is measured. With one, generations are bred on
// its scores, and only the best individuals are proposed.
#include <algorithm>
#include <map>

#include "autotune/explorers/explorers.h"
#include "autotune/explorers/scored.h"

namespace tw {
namespace {

struct Individual {
  Point point;
  double fitness = 0;  // higher is better; -infinity: illegal or failed
};
using Population = std::vector<Individual>;

void sort_best_first(Population& population) {
  std::stable_sort(population.begin(), population.end(),
                   [](const Individual& a, const Individual& b) { return a.fitness > b.fitness; });
}

// The best of a few random individuals; the population is sorted.
const Individual& parent(const Population& population, int tournament, std::mt19937_64& random) {
  size_t best = population.size();
  for (int i = 0; i < tournament; ++i)
    best = std::min(best, static_cast<size_t>(random() % population.size()));
  return population[best];
}

Point child(const Space& space, const Population& population, int tournament, double mutation,
            std::mt19937_64& random) {
  const Point a = parent(population, tournament, random).point,
              b = parent(population, tournament, random).point;
  Point point = space.cross(a, b, random);
  return unit(random) < mutation ? space.mutate(point, random) : point;
}

class MeasuredGenetic : public Explorer {
 public:
  MeasuredGenetic(const Space& space, uint64_t seed, const GeneticOptions& options)
      : space_(space), seen_(space), random_(seed), options_(options) {}

  std::vector<Point> propose(int count) override {
    std::vector<Point> out;
    while (static_cast<int>(out.size()) < count && !seen_.exhausted()) {
      std::optional<Point> next;
      if (population_.empty()) next = seen_.draw(random_);
      else if (Point point = child(space_, population_, options_.tournament, options_.mutation,
                                   random_);
               seen_.add(point))
        next = point;
      else next = seen_.near(point, random_);
      if (next) out.push_back(std::move(*next));
    }
    return out;
  }

  void tell(std::span<const Point> points, std::span<const double> seconds) override {
    for (size_t i = 0; i < points.size(); ++i) {
      if (!in_space(points[i])) continue;
      seen_.add(points[i]);
      generation_.push_back({points[i], -seconds[i]});
    }
    const size_t full = static_cast<size_t>(std::max(
        1, population_.empty() ? options_.population : options_.population - options_.elites));
    if (generation_.size() < full) return;
    for (size_t i = 0; i < population_.size() && i < static_cast<size_t>(options_.elites); ++i)
      generation_.push_back(population_[i]);
    population_ = std::move(generation_);
    generation_.clear();
    sort_best_first(population_);
  }

 private:
  const Space& space_;
  Seen seen_;
  std::mt19937_64 random_;
  GeneticOptions options_;
  Population population_, generation_;  // the last complete one; the measured part of the next
};

class ScoredGenetic : public ScoredExplorer {
 public:
  ScoredGenetic(const Space& space, uint64_t seed, const GeneticOptions& options, ScorePoints score)
      : ScoredExplorer(space, seed, options.random_first, options.epsilon),
        options_(options),
        score_(std::move(score)) {}

  void tell(std::span<const Point> points, std::span<const double> seconds) override {
    ScoredExplorer::tell(points, seconds);
    for (size_t i = 0; i < points.size(); ++i)
      if (in_space(points[i])) measured_.push_back({points[i], -seconds[i]});
    sort_best_first(measured_);
    if (measured_.size() > static_cast<size_t>(options_.scored_population))
      measured_.resize(static_cast<size_t>(options_.scored_population));
  }

 protected:
  std::vector<Point> choose(int planned, int) override {
    scores_.clear();
    Best best(planned);
    const size_t size = static_cast<size_t>(options_.scored_population);
    Population population(
        measured_.begin(),
        measured_.begin() +
            static_cast<std::ptrdiff_t>(std::min(
                measured_.size(),
                static_cast<size_t>(options_.measured_share * options_.scored_population))));
    while (population.size() < size) population.push_back({space_.sample(random_), 0});
    evaluate(population, best);
    for (int g = 0; g < options_.generations; ++g) {
      Population next(population.begin(),
                      population.begin() + std::min<std::ptrdiff_t>(
                                               options_.elites, static_cast<std::ptrdiff_t>(size)));
      while (next.size() < size)
        next.push_back(
            {child(space_, population, options_.tournament, options_.scored_mutation, random_), 0});
      population = std::move(next);
      evaluate(population, best);
    }
    return best.points();
  }

 private:
  void evaluate(Population& population, Best& best) {
    std::vector<Point> fresh;
    for (const Individual& i : population)
      if (scores_.emplace(i.point, 0).second) fresh.push_back(i.point);
    const std::vector<double> scores = score_(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) scores_[fresh[i]] = scores[i];
    for (Individual& i : population) {
      i.fitness = scores_[i.point];
      if (!seen_.has(i.point)) best.offer(i.point, i.fitness);
    }
    sort_best_first(population);
  }

  GeneticOptions options_;
  ScorePoints score_;
  Population measured_;             // the best individuals of all batches
  std::map<Point, double> scores_;  // scores by the present model
};

}  // namespace

std::unique_ptr<Explorer> genetic_explorer(const Space& space, uint64_t seed,
                                           const GeneticOptions& options, ScorePoints score) {
  if (!score) return std::make_unique<MeasuredGenetic>(space, seed, options);
  return std::make_unique<ScoredGenetic>(space, seed, options, std::move(score));
}

}  // namespace tw
