// Simulated annealing. With a model, parallel chains walk over its scores, and the best points that
// they meet are proposed (AutoTVM). Without a model, each chain moves by the measured times.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autotune/explorers/explorers.h"
#include "autotune/explorers/scored.h"

namespace tw {
namespace {

// Decides if a chain moves from energy `old` to `next` at the temperature. Lower is better;
// infinite: illegal.
bool accepts(double old, double next, double temperature, std::mt19937_64& random) {
  // Always drawn, so that the random sequence does not depend on the energies.
  const double chance = unit(random);
  if (next == kInfiniteSeconds) return old == kInfiniteSeconds;
  if (old == kInfiniteSeconds || next <= old) return true;
  return chance < std::exp((old - next) / (temperature + 1e-5));
}

class ScoredAnnealing : public ScoredExplorer {
 public:
  ScoredAnnealing(const Space& space, uint64_t seed, const AnnealingOptions& options,
                  ScorePoints score)
      : ScoredExplorer(space, seed, options.random_first, options.epsilon),
        options_(options),
        score_(std::move(score)) {}

  void tell(std::span<const Point> points, std::span<const double> seconds) override {
    ScoredExplorer::tell(points, seconds);
    for (size_t i = 0; i < points.size(); ++i)
      if (in_space(points[i]) && std::isfinite(seconds[i])) fastest_.emplace(seconds[i], points[i]);
    while (fastest_.size() > static_cast<size_t>(options_.chains)) fastest_.erase(--fastest_.end());
  }

 protected:
  std::vector<Point> choose(int planned, int) override {
    Best best(static_cast<int>(planned * std::max(1.0, options_.diversity)));
    walk(best);
    return pick_diverse(best.points(), planned);
  }

 private:
  // The energies of the points. Points without a score of the present model are scored, and offered
  // to `best`.
  std::vector<double> energies(const std::vector<Point>& points, Best& best, bool& changed) {
    std::vector<Point> fresh;
    for (const Point& point : points)
      if (scores_.emplace(point, 0).second) fresh.push_back(point);
    const std::vector<double> scores = score_(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) {
      scores_[fresh[i]] = scores[i];
      if (!seen_.has(fresh[i])) changed |= best.offer(fresh[i], scores[i]);
    }
    std::vector<double> out;
    for (const Point& point : points) out.push_back(-scores_[point]);
    return out;
  }

  static double deviation(const std::vector<double>& energies) {
    double sum = 0, squares = 0, count = 0;
    for (const double e : energies) {
      if (e == kInfiniteSeconds) continue;
      sum += e, squares += e * e, ++count;
    }
    const double variance = count > 0 ? squares / count - (sum / count) * (sum / count) : 0;
    return variance > 1e-12 ? std::sqrt(variance) : 1;
  }

  // Lets the chains go on from their places after the last batch; some start from the fastest
  // points.
  void walk(Best& best) {
    scores_.clear();
    while (static_cast<int>(chains_.size()) < options_.chains)
      chains_.push_back(space_.sample(random_));
    auto chain = chains_.begin();
    const auto share = static_cast<std::ptrdiff_t>(options_.measured_share * options_.chains);
    for (const auto& [seconds, point] : fastest_)
      if (chain - chains_.begin() < share) *chain++ = point;
    bool changed = false;
    std::vector<double> at = energies(chains_, best, changed);
    const double scale = deviation(at);
    int same = 0;
    for (int i = 0; i < options_.iterations && same < options_.patience; ++i) {
      const double temperature = scale * (options_.start - (options_.start - options_.end) * i /
                                                               (options_.iterations + 1));
      std::vector<Point> next;
      for (const Point& point : chains_) next.push_back(space_.mutate(point, random_));
      changed = false;
      const std::vector<double> to = energies(next, best, changed);
      for (size_t c = 0; c < chains_.size(); ++c) {
        if (!accepts(at[c], to[c], temperature, random_)) continue;
        chains_[c] = std::move(next[c]);
        at[c] = to[c];
      }
      same = changed ? 0 : same + 1;
    }
  }

  AnnealingOptions options_;
  ScorePoints score_;
  std::vector<Point> chains_;
  std::map<Point, double> scores_;
  std::set<std::pair<double, Point>> fastest_;
};

class MeasuredAnnealing : public Explorer {
 public:
  MeasuredAnnealing(const Space& space, uint64_t seed, const AnnealingOptions& options)
      : seen_(space),
        random_(seed),
        temperature_(options.measured_start),
        cooling_(options.cooling) {}

  std::vector<Point> propose(int count) override {
    std::vector<Point> out;
    for (size_t c = 0; static_cast<int>(out.size()) < count; ++c) {
      if (c == chains_.size()) chains_.emplace_back();
      std::optional<Point> next = in_space(chains_[c].point) ? seen_.near(chains_[c].point, random_)
                                                             : seen_.draw(random_);
      if (!next) break;
      waiting_[*next] = c;
      out.push_back(std::move(*next));
    }
    return out;
  }

  void tell(std::span<const Point> points, std::span<const double> seconds) override {
    for (size_t i = 0; i < points.size(); ++i) {
      if (!in_space(points[i])) continue;
      seen_.add(points[i]);
      const double energy = std::isfinite(seconds[i]) ? std::log(seconds[i]) : kInfiniteSeconds;
      const auto chain = waiting_.find(points[i]);
      // Not proposed here: a chain starts from it
      if (chain == waiting_.end()) {
        chains_.push_back({points[i], energy});
        continue;
      }
      Chain& c = chains_[chain->second];
      waiting_.erase(chain);
      if (!in_space(c.point) || accepts(c.energy, energy, temperature_, random_))
        c = {points[i], energy};
    }
    temperature_ *= cooling_;
  }

 private:
  struct Chain {
    Point point{-1, {}};
    double energy = kInfiniteSeconds;
  };
  Seen seen_;
  std::mt19937_64 random_;
  double temperature_, cooling_;
  std::vector<Chain> chains_;
  std::map<Point, size_t> waiting_;  // proposed points and their chains
};

}  // namespace

std::unique_ptr<Explorer> annealing_explorer(const Space& space, uint64_t seed,
                                             const AnnealingOptions& options, ScorePoints score) {
  if (!score) return std::make_unique<MeasuredAnnealing>(space, seed, options);
  return std::make_unique<ScoredAnnealing>(space, seed, options, std::move(score));
}

}  // namespace tw
