// Uniform draws; with a model, the best of a larger draw.
#include <algorithm>

#include "autotune/explorers/explorers.h"
#include "autotune/explorers/pick.h"
#include "autotune/explorers/seen.h"

namespace tw {
namespace {

class Random : public Explorer {
 public:
  Random(const Space& space, uint64_t seed, const RandomOptions& options, ScorePoints score)
      : seen_(space), random_(seed), options_(options), score_(std::move(score)) {}

  std::vector<Point> propose(int count) override {
    if (!score_ || told_ < options_.random_first) return seen_.draw(count, random_);
    Seen pool = seen_;   // what is drawn and not taken stays to be drawn
    Best best(count - random_share(options_.epsilon, count));
    const std::vector<Point> drawn = pool.draw(count * options_.pool, random_);
    const std::vector<double> scores = score_(drawn);
    for (size_t i = 0; i < drawn.size(); ++i) best.offer(drawn[i], scores[i]);
    std::vector<Point> out = best.points();
    for (const Point& point : out) seen_.add(point);
    const std::vector<Point> rest = seen_.draw(count - static_cast<int>(out.size()), random_);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }
  void tell(std::span<const Point> points, std::span<const double>) override {
    for (const Point& point : points)
      if (in_space(point)) seen_.add(point);
    told_ += static_cast<int>(points.size());
  }
  bool exhausted() const override { return seen_.exhausted(); }

 private:
  Seen seen_;
  std::mt19937_64 random_;
  RandomOptions options_;
  ScorePoints score_;
  int told_ = 0;
};

}  // namespace

std::unique_ptr<Explorer> random_explorer(const Space& space, uint64_t seed, const RandomOptions& options, ScorePoints score) {
  return std::make_unique<Random>(space, seed, options, std::move(score));
}

}  // namespace tw
