// The common part of explorers that use a model's scores. They begin with random points. Later
// batches have the best-scored points and a random rest. No point comes twice.
#pragma once
#include "autotune/explorers/pick.h"
#include "autotune/explorers/seen.h"
#include "autotune/search.h"

namespace tw {

class ScoredExplorer : public Explorer {
 public:
  ScoredExplorer(const Space& space, uint64_t seed, int random_first, double epsilon)
      : space_(space),
        seen_(space),
        random_(seed),
        random_first_(random_first),
        epsilon_(epsilon) {}

  std::vector<Point> propose(int count) override {
    if (told_ < random_first_) return seen_.draw(count, random_);
    std::vector<Point> out = choose(count - random_share(epsilon_, count), count);
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

 protected:
  // Chooses at most `planned` new points, the most promising ones, for a batch of `count`.
  virtual std::vector<Point> choose(int planned, int count) = 0;

  const Space& space_;
  Seen seen_;
  std::mt19937_64 random_;

 private:
  int random_first_;
  double epsilon_;
  int told_ = 0;
};

}  // namespace tw
