#include "autotune/models/gbt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/parallel.h"

namespace tw {
namespace {
constexpr size_t kMostKnown = 1 << 11;  // most points with kept features, besides measured ones
constexpr double kLeastBase = 0.05;     // smallest weight at which similar tasks still count

// Best time over time; 0 for failures
std::vector<float> throughputs(std::span<const double> seconds) {
  double best = std::numeric_limits<double>::infinity();
  for (const double s : seconds) best = std::min(best, s);
  std::vector<float> out;
  for (const double s : seconds)
    out.push_back(std::isfinite(s) && s > 0 ? static_cast<float>(best / s) : 0.0f);
  return out;
}

std::vector<float> sums_of(const std::vector<float>& rows, const std::vector<uint32_t>& counts) {
  std::vector<float> out;
  size_t row = 0;
  for (const uint32_t count : counts) {
    float sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += rows[row++];
    out.push_back(sum);
  }
  return out;
}

// Derivatives of the loss by each candidate's score
struct Derivatives {
  std::vector<float> gradient, hessian;
};

Derivatives squared_error(const std::vector<float>& scores, const std::vector<float>& labels) {
  Derivatives d{std::vector<float>(scores.size()), std::vector<float>(scores.size(), 1.0f)};
  for (size_t i = 0; i < scores.size(); ++i) d.gradient[i] = scores[i] - labels[i];
  return d;
}

// Logistic loss of every pair in a group, scaled as if each candidate had two pairs
Derivatives pairwise(const std::vector<float>& scores, const std::vector<float>& labels,
                     const std::vector<uint32_t>& groups) {
  Derivatives d{std::vector<float>(scores.size(), 0.0f), std::vector<float>(scores.size(), 1e-6f)};
  size_t begin = 0;
  for (const uint32_t size : groups) {
    const float scale = size > 1 ? 2.0f / static_cast<float>(size - 1) : 0.0f;
    for (size_t i = begin; i < begin + size; ++i) {
      for (size_t j = begin; j < begin + size; ++j) {
        if (!(labels[i] > labels[j])) continue;
        // Probability of the wrong order
        const float wrong = 1 / (1 + std::exp(scores[i] - scores[j]));
        const float curve = std::max(wrong * (1 - wrong), 1e-6f);
        d.gradient[i] -= scale * wrong;
        d.gradient[j] += scale * wrong;
        d.hessian[i] += scale * curve;
        d.hessian[j] += scale * curve;
      }
    }
    begin += size;
  }
  return d;
}

std::vector<float> repeated(const std::vector<float>& values, const std::vector<uint32_t>& counts) {
  std::vector<float> out;
  for (size_t i = 0; i < values.size(); ++i) out.insert(out.end(), counts[i], values[i]);
  return out;
}

double mean_recall(const std::vector<float>& scores, const std::vector<float>& labels,
                   const std::vector<uint32_t>& groups, int top) {
  double sum = 0;
  size_t begin = 0;
  for (const uint32_t size : groups) {
    sum += average_recall(std::span(scores).subspan(begin, size),
                          std::span(labels).subspan(begin, size), top);
    begin += size;
  }
  return sum / static_cast<double>(groups.size());
}

std::string text(double value) { return llvm::formatv("{0}", value).str(); }

}  // namespace

double average_recall(std::span<const float> scores, std::span<const float> labels, int top) {
  const size_t n = std::min(scores.size(), static_cast<size_t>(std::max(top, 1)));
  std::vector<size_t> by_score(scores.size()), by_label(scores.size());
  std::iota(by_score.begin(), by_score.end(), size_t{0});
  by_label = by_score;
  std::stable_sort(by_score.begin(), by_score.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::stable_sort(by_label.begin(), by_label.end(),
                   [&](size_t a, size_t b) { return labels[a] > labels[b]; });
  std::vector<size_t> rank(scores.size());
  for (size_t i = 0; i < by_label.size(); ++i) rank[by_label[i]] = i;
  // joins[i]: candidates for which i is the first index that makes them part of both lists.
  std::vector<int> joins(n + 1, 0);
  for (size_t i = 0; i < n; ++i) ++joins[std::min(n, std::max(i, rank[by_score[i]]))];
  double sum = 0, common = 0;
  for (size_t i = 0; i < n; ++i) {
    common += joins[i];
    sum += common / static_cast<double>(i + 1);
  }
  return n ? sum / static_cast<double>(n) : 0;
}

BoosterParameters GbtModel::parameters() const {
  return {
      {"booster", "gbtree"},
      {"tree_method", "hist"},
      {"nthread", "1"},
      {"verbosity", "0"},
      {"base_score", "0"},
      {"subsample", "1"},
      {"objective", options_.objective == Objective::rank ? "rank:pairwise" : "reg:squarederror"},
      {"max_depth", std::to_string(options_.depth)},
      {"eta", text(options_.eta)},
      {"gamma", text(options_.gamma)},
      {"min_child_weight", text(options_.min_child_weight)},
      {"lambda", text(options_.lambda)},
      {"alpha", text(options_.alpha)},
      {"seed", std::to_string(options_.seed)}};
}

const GbtModel::Rows& GbtModel::rows_of(const Candidate& candidate) const {
  return known_.at(candidate.point);
}

// `columns` 0 takes the longest row's number. Shorter rows are padded, longer ones cut. `keep`
// stores the features of all candidates, however many.
GbtModel::Parts GbtModel::parts_of(std::span<const Candidate> candidates, size_t columns,
                                   bool keep) {
  std::vector<Rows> fresh(candidates.size());
  const auto compute = [&](size_t i) -> Error {
    if (!(in_space(candidates[i].point) && known_.contains(candidates[i].point)))
      fresh[i] = features_.rows(candidates[i]);
    return Error::success();
  };
  llvm::cantFail(parallel_for(options_.jobs, candidates.size(), compute));
  const auto rows = [&](size_t i) -> const Rows& {
    return fresh[i].empty() ? rows_of(candidates[i]) : fresh[i];
  };
  Parts parts;
  if (columns == 0) {
    columns = 1;
    for (size_t i = 0; i < candidates.size(); ++i)
      for (const FeatureRow& row : rows(i)) columns = std::max(columns, row.size());
  }
  parts.matrix.columns = columns;
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (const FeatureRow& row : rows(i)) {
      for (size_t c = 0; c < columns; ++c)
        parts.matrix.values.push_back(c < row.size() ? row[c]
                                                     : std::numeric_limits<float>::quiet_NaN());
    }
    parts.counts.push_back(static_cast<uint32_t>(rows(i).size()));
  }
  for (size_t i = 0; i < candidates.size(); ++i)
    if (!fresh[i].empty() && in_space(candidates[i].point) && (keep || known_.size() < kMostKnown))
      known_.emplace(candidates[i].point, std::move(fresh[i]));
  return parts;
}

GbtModel::Trained GbtModel::train(Parts parts, const std::vector<float>& labels,
                                  const std::vector<uint32_t>& groups, int rounds, int patience,
                                  int top) const {
  const bool single = std::all_of(parts.counts.begin(), parts.counts.end(),
                                  [](uint32_t count) { return count == 1; });
  const size_t columns = parts.matrix.columns;
  TrainingData data{std::move(parts.matrix), repeated(labels, parts.counts), {}};
  if (single) data.group_sizes = groups;
  Booster booster(parameters(), data);
  double best = -1;
  int best_round = 0;
  for (int round = 0; round < rounds && round - best_round < patience; ++round) {
    if (single) {
      booster.update(round);
    } else {
      // Every part of a candidate gets the derivatives of the sum.
      const std::vector<float> scores = sums_of(booster.training_scores(), parts.counts);
      const Derivatives d = options_.objective == Objective::rank ? pairwise(scores, labels, groups)
                                                                  : squared_error(scores, labels);
      std::vector<float> gradient = repeated(d.gradient, parts.counts),
                         hessian = repeated(d.hessian, parts.counts);
      booster.boost(gradient, hessian);
    }
    const double recall = mean_recall(sums_of(booster.training_scores(), parts.counts), labels,
                                      groups, top);
    if (recall <= best + 1e-9) continue;
    best = recall;
    best_round = round;
  }
  booster.keep_rounds(best_round + 1);
  return {std::move(booster), columns};
}

std::vector<float> GbtModel::base_margins(const Parts& own, std::span<const Candidate> candidates) {
  const Parts wide = parts_of(candidates, base_->columns, false);
  std::vector<float> margins = base_->booster.predict(wide.matrix);
  for (float& m : margins) m *= static_cast<float>(base_weight_);
  TW_CHECK(margins.size() == own.matrix.rows(), "rows of the base model");
  return margins;
}

void GbtModel::fit(std::span<const Candidate> candidates, std::span<const double> seconds) {
  own_.reset();
  const bool failed_all = std::none_of(seconds.begin(), seconds.end(),
                                       [](double s) { return std::isfinite(s); });
  if (candidates.empty() || failed_all) return;
  Parts parts = parts_of(candidates, 0, true);
  base_weight_ = std::exp2(-static_cast<double>(candidates.size()) / options_.top);
  if (base_ && base_weight_ >= kLeastBase) parts.matrix.margins = base_margins(parts, candidates);
  own_ = train(std::move(parts), throughputs(seconds), {static_cast<uint32_t>(candidates.size())},
               options_.rounds, options_.patience, options_.top);
}

std::vector<double> GbtModel::score(std::span<const Candidate> candidates) {
  std::vector<double> out(candidates.size(), 0);
  if (candidates.empty() || (!own_ && !base_)) return out;
  Parts parts = parts_of(candidates, own_ ? own_->columns : base_->columns, false);
  const bool with_base = base_ && (!own_ || base_weight_ >= kLeastBase);
  if (own_ && with_base) parts.matrix.margins = base_margins(parts, candidates);
  const std::vector<float> rows = (own_ ? own_ : base_)->booster.predict(parts.matrix);
  const std::vector<float> sums = sums_of(rows, parts.counts);
  std::copy(sums.begin(), sums.end(), out.begin());
  return out;
}

bool GbtModel::transfer(std::span<const MeasuredSet> sets) {
  std::vector<Candidate> candidates;
  std::vector<float> labels;
  std::vector<uint32_t> groups;
  for (const MeasuredSet& set : sets) {
    const std::vector<float> of_set = throughputs(set.seconds);
    if (of_set.empty()) continue;
    for (const Candidate& candidate : set.candidates) {
      candidates.push_back(candidate);
      candidates.back().point = {-1, {}};  // a point of no space here
    }
    labels.insert(labels.end(), of_set.begin(), of_set.end());
    groups.push_back(static_cast<uint32_t>(of_set.size()));
  }
  if (features_.of_point || static_cast<int>(candidates.size()) < options_.transfer_least)
    return false;
  base_ = train(parts_of(candidates, 0, false), labels, groups, options_.transfer_rounds,
                options_.transfer_patience, 2 * options_.top);
  return true;
}

std::string GbtModel::bytes() const {
  return own_ ? own_->booster.bytes() : base_ ? base_->booster.bytes() : std::string();
}

}  // namespace tw
