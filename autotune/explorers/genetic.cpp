// Genetic search: tournaments choose parents, children mix their knobs and now and then mutate, the elites stay. Without a model every
// individual is measured; with one, generations are bred on its scores and only the best of them are proposed.
#include <algorithm>
#include <map>

#include "autotune/explorers/explorers.h"
#include "autotune/explorers/pick.h"
#include "autotune/explorers/seen.h"

namespace tw {
namespace {

struct Individual {
  Point point;
  double fitness = 0;   // higher is better; -infinity: illegal or failed
};
using Population = std::vector<Individual>;

void sort_best_first(Population& population) {
  std::stable_sort(population.begin(), population.end(), [](const Individual& a, const Individual& b) { return a.fitness > b.fitness; });
}

class Genetic : public Explorer {
 public:
  Genetic(const Space& space, uint64_t seed, const GeneticOptions& options, ScorePoints score)
      : space_(space), seen_(space), random_(seed), options_(options), score_(std::move(score)) {}

  std::vector<Point> propose(int count) override {
    if (score_) return told_ < options_.random_first ? seen_.draw(count, random_) : propose_bred(count);
    std::vector<Point> out;
    while (static_cast<int>(out.size()) < count && !seen_.exhausted()) {
      std::optional<Point> next;
      if (population_.empty()) next = seen_.draw(random_);
      else if (Point point = child(population_, options_.mutation); seen_.add(point)) next = point;
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
      measured_.push_back(generation_.back());
    }
    told_ += static_cast<int>(points.size());
    sort_best_first(measured_);
    if (measured_.size() > static_cast<size_t>(options_.scored_population)) measured_.resize(static_cast<size_t>(options_.scored_population));
    const size_t full = static_cast<size_t>(std::max(1, population_.empty() ? options_.population : options_.population - options_.elites));
    if (generation_.size() < full) return;
    for (size_t i = 0; i < population_.size() && i < static_cast<size_t>(options_.elites); ++i) generation_.push_back(population_[i]);
    population_ = std::move(generation_);
    generation_.clear();
    sort_best_first(population_);
  }

  bool exhausted() const override { return seen_.exhausted(); }

 private:
  const Individual& parent(const Population& population) {   // the best of a few
    size_t best = population.size();
    for (int i = 0; i < options_.tournament; ++i) best = std::min(best, static_cast<size_t>(random_() % population.size()));
    return population[best];                                 // sorted: a lower index is better
  }

  Point child(const Population& population, double mutation) {
    const Point a = parent(population).point, b = parent(population).point;
    Point point = space_.cross(a, b, random_);
    return unit(random_) < mutation ? space_.mutate(point, random_) : point;
  }

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

  std::vector<Point> propose_bred(int count) {
    scores_.clear();
    Best best(count - random_share(options_.epsilon, count));
    const size_t size = static_cast<size_t>(options_.scored_population);
    Population population(measured_.begin(), measured_.begin() + static_cast<std::ptrdiff_t>(
                              std::min(measured_.size(), static_cast<size_t>(options_.measured_share * options_.scored_population))));
    while (population.size() < size) population.push_back({space_.sample(random_), 0});
    evaluate(population, best);
    for (int g = 0; g < options_.generations; ++g) {
      Population next(population.begin(), population.begin() + std::min<std::ptrdiff_t>(options_.elites, static_cast<std::ptrdiff_t>(size)));
      while (next.size() < size) next.push_back({child(population, options_.scored_mutation), 0});
      population = std::move(next);
      evaluate(population, best);
    }
    std::vector<Point> out = best.points();
    for (const Point& point : out) seen_.add(point);
    const std::vector<Point> rest = seen_.draw(count - static_cast<int>(out.size()), random_);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }

  const Space& space_;
  Seen seen_;
  std::mt19937_64 random_;
  GeneticOptions options_;
  ScorePoints score_;
  int told_ = 0;
  Population population_, generation_;   // the last whole one; the measured ones of the next
  Population measured_;                  // the best of all
  std::map<Point, double> scores_;       // of the model as it is now
};

}  // namespace

std::unique_ptr<Explorer> genetic_explorer(const Space& space, uint64_t seed, const GeneticOptions& options, ScorePoints score) {
  return std::make_unique<Genetic>(space, seed, options, std::move(score));
}

}  // namespace tw
