// Uniform draws. With a model, the best points of a larger draw.
#include "autotune/explorers/explorers.h"
#include "autotune/explorers/scored.h"

namespace tw {
namespace {

class ScoredRandom : public ScoredExplorer {
 public:
  ScoredRandom(const Space& space, uint64_t seed, const RandomOptions& options, ScorePoints score)
      : ScoredExplorer(space, seed, options.random_first, options.epsilon),
        pool_(options.pool),
        score_(std::move(score)) {}

 protected:
  std::vector<Point> choose(int planned, int count) override {
    Seen pool = seen_;  // a copy: points that are drawn and not taken can be drawn again
    Best best(planned);
    const std::vector<Point> drawn = pool.draw(count * pool_, random_);
    const std::vector<double> scores = score_(drawn);
    for (size_t i = 0; i < drawn.size(); ++i) best.offer(drawn[i], scores[i]);
    return best.points();
  }

 private:
  int pool_;
  ScorePoints score_;
};

class Random : public Explorer {
 public:
  Random(const Space& space, uint64_t seed) : seen_(space), random_(seed) {}
  std::vector<Point> propose(int count) override { return seen_.draw(count, random_); }
  void tell(std::span<const Point> points, std::span<const double>) override {
    for (const Point& point : points)
      if (in_space(point)) seen_.add(point);
  }

 private:
  Seen seen_;
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<Explorer> random_explorer(const Space& space, uint64_t seed,
                                          const RandomOptions& options, ScorePoints score) {
  if (!score) return std::make_unique<Random>(space, seed);
  return std::make_unique<ScoredRandom>(space, seed, options, std::move(score));
}

}  // namespace tw
