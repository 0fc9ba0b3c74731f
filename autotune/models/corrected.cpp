#include "autotune/models/corrected.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "autotune/median.h"

namespace tw {
namespace {

// All numbers are binary logarithms of speed, or their squares.
constexpr double kNoise = 0.03 * 0.03;    // variance of a measurement
constexpr double kConstant = 4 * 4;       // variance of the common error of a task's scores
constexpr double kSlope = 0.3 * 0.3;      // variance of the error that grows with the score
constexpr double kAlgorithm = 1.5 * 1.5;  // variance of the common error of a non-direct algorithm
constexpr double kSpread = 0.3;           // for predictors without a spread
constexpr double kLeastSpread = 0.05, kMostSpread = 1;
constexpr double kSlowest = -3;      // speed below the best; slower candidates count as this slow
constexpr double kOtherValue = 0.7;  // part of the likeness that each different knob leaves
constexpr double kScales[] = {0.5, 1, 2};
constexpr size_t kMostMeasured = 512;  // the fastest measured candidates are learned from
constexpr size_t kChosenFrom = 512;

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return std::sqrt(sum);
}

// The mean of the part above 0 of a normal distribution around `ahead` (Mockus 1978; Jones,
// Schonlau and Welch 1998, "Efficient Global Optimization")
double expected_gain(double ahead, double variance) {
  if (variance <= 0) return std::max(ahead, 0.0);
  const double deviation = std::sqrt(variance), z = ahead / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return deviation * density + ahead * std::erfc(-z / std::numbers::sqrt2) / 2;
}

// 1 for equal points, 0 for points of different sketches
double likeness(const Point& a, const Point& b) {
  if (!in_space(a) || a.sketch != b.sketch) return 0;
  double out = 1;
  for (size_t k = 0; k < a.choice.size(); ++k)
    if (a.choice[k] != b.choice[k]) out *= kOtherValue;
  return out;
}

}  // namespace

PredictCandidates predict_by(std::shared_ptr<const PredictorSet> predictors, PredictedTask task,
                             int jobs) {
  return [predictors = std::move(predictors), task = std::move(task),
          jobs](std::span<const Candidate> candidates) {
    return llvm::cantFail(predictors->predict(task, candidates, jobs));
  };
}

std::unique_ptr<Explorer> corrected_explorer(const Space& space, uint64_t seed,
                                             const DraftOptions& options, MakeCandidate make,
                                             CorrectedModel& model, int jobs) {
  return draft_explorer(
      space, seed, options, score_points(std::move(make), model, jobs),
      [&model](std::span<const Point> points, int count) { return model.choose(points, count); });
}

std::vector<CorrectedModel::Item> CorrectedModel::predicted(std::span<const Candidate> candidates) {
  std::vector<Candidate> fresh;
  for (const Candidate& c : candidates)
    if (!knows(c.point)) fresh.push_back(c);
  const std::vector<Prediction> all = fresh.empty() ? std::vector<Prediction>() : predict_(fresh);
  std::vector<Item> out;
  size_t next = 0;
  for (const Candidate& c : candidates) {
    if (const auto found = known_.find(c.point); found != known_.end()) {
      out.push_back(found->second);
      continue;
    }
    const Prediction& p = all[next++];
    const double spread = p.spread > 0 ? std::clamp(p.spread, kLeastSpread, kMostSpread) : kSpread;
    out.push_back({c.point, c.variant, p.score, spread, p.embedding});
  }
  for (const Item& item : out)
    if (in_space(item.point)) known_.emplace(item.point, item);
  return out;
}

double CorrectedModel::error_covariance(const Item& a, const Item& b) const {
  const double apart = distance(a.embedding, b.embedding) / width_;
  const double own = scale_ * scale_ * a.spread * b.spread *
                     (std::exp(-apart * apart / 2) + likeness(a.point, b.point)) / 2;
  return own + (a.variant == b.variant && a.variant != 0 ? kAlgorithm : 0);
}

double CorrectedModel::covariance(const Item& a, const Item& b) const {
  return kConstant + kSlope * (a.score - reference_) * (b.score - reference_) +
         error_covariance(a, b);
}

std::vector<double> CorrectedModel::covariances(const Item& item) const {
  std::vector<double> out;
  for (const Item& other : measured_) out.push_back(covariance(item, other));
  return out;
}

void CorrectedModel::fit(std::span<const Candidate> candidates, std::span<const double> seconds) {
  process_.reset();
  std::vector<std::pair<double, const Candidate*>> fastest;
  for (size_t i = 0; i < candidates.size(); ++i)  // unbuildable candidates teach nothing
    if (candidates[i].run || knows(candidates[i].point))
      fastest.push_back({seconds[i], &candidates[i]});
  std::ranges::stable_sort(fastest, {}, &std::pair<double, const Candidate*>::first);
  fastest.resize(std::min(fastest.size(), kMostMeasured));
  if (fastest.empty() || !std::isfinite(fastest.front().first)) return;
  std::vector<Candidate> measured;
  std::vector<double> speeds;
  for (const auto& [time, candidate] : fastest) {
    measured.push_back(*candidate);
    speeds.push_back(std::max(std::log2(fastest.front().first / time), kSlowest));
  }
  measured_ = predicted(measured);
  learn(speeds);
}

// Learns from measured_. `speeds` are theirs, with the best at 0.
void CorrectedModel::learn(const std::vector<double>& speeds) {
  const auto count = static_cast<double>(measured_.size());
  reference_ = 0;
  for (const Item& item : measured_) reference_ += item.score / count;
  std::vector<double> errors, distances;
  for (size_t i = 0; i < measured_.size(); ++i) {
    errors.push_back(speeds[i] - (measured_[i].score - reference_));
    for (size_t j = 0; j < i; ++j)
      distances.push_back(distance(measured_[i].embedding, measured_[j].embedding));
  }
  const double usual = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  for (double& error : errors) error -= usual;
  width_ = distances.empty() ? 0 : median_of(std::move(distances));
  if (width_ <= 0) width_ = 1;
  double best_scale = 1;
  for (const double scale : kScales) {
    scale_ = scale;
    GaussianProcess process(all_covariances(), errors, kNoise);
    if (process_ && process.log_likelihood() <= process_->log_likelihood()) continue;
    process_.emplace(std::move(process));
    best_scale = scale;
  }
  scale_ = best_scale;
}

std::vector<double> CorrectedModel::all_covariances() const {
  std::vector<double> out;
  for (const Item& item : measured_) {
    const std::vector<double> row = covariances(item);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

double CorrectedModel::corrected(const Item& item) const {
  return item.score + (process_ ? process_->mean(covariances(item)) : 0);
}

std::vector<double> CorrectedModel::score(std::span<const Candidate> candidates) {
  std::vector<double> out;
  for (const Item& item : predicted(candidates)) out.push_back(corrected(item));
  return out;
}

std::vector<Point> CorrectedModel::choose(std::span<const Point> points, int count) const {
  struct Choice {
    const Item* item;
    double mean, variance;
    std::vector<double> explained;  // by the measured points, then by the chosen ones
  };
  std::vector<std::pair<double, const Item*>> best;
  for (const Point& point : points)
    best.push_back({-corrected(known_.at(point)), &known_.at(point)});
  std::ranges::stable_sort(best, {}, &std::pair<double, const Item*>::first);
  best.resize(std::min(best.size(), kChosenFrom));
  // Before the first measurement only the differences between errors of scores matter.
  const auto prior = [&](const Item& a, const Item& b) {
    return process_ ? covariance(a, b) : error_covariance(a, b);
  };
  std::vector<Choice> choices;
  for (const auto& [negative, item] : best) {
    Choice& c = choices.emplace_back(Choice{item, -negative, prior(*item, *item), {}});
    if (process_) c.explained = process_->explained(covariances(*item));
    for (const double e : c.explained) c.variance -= e * e;
  }
  double fastest = -std::numeric_limits<double>::infinity();
  if (process_)
    for (const Item& item : measured_) fastest = std::max(fastest, corrected(item));
  std::vector<Point> out;
  while (!choices.empty() && static_cast<int>(out.size()) < count) {
    const auto worth = [&](const Choice& c) {
      return std::isfinite(fastest) ? expected_gain(c.mean - fastest, c.variance)
                                    : c.mean - std::sqrt(c.variance) / 2;
    };
    const auto next = std::ranges::max_element(choices, {}, worth);
    const Choice chosen = std::move(*next);
    choices.erase(next);
    out.push_back(chosen.item->point);
    fastest = std::max(fastest, chosen.mean);
    const double spread = std::sqrt(std::max(chosen.variance, 0.0) + kNoise);
    for (Choice& c : choices) {
      const double common = std::inner_product(c.explained.begin(), c.explained.end(),
                                               chosen.explained.begin(), 0.0);
      c.explained.push_back((prior(*c.item, *chosen.item) - common) / spread);
      c.variance -= c.explained.back() * c.explained.back();
    }
  }
  return out;
}

}  // namespace tw
