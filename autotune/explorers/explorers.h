// The explorers. `score` asks a cost model for scores of points (higher is faster, -infinity:
// illegal). Without it an explorer uses measured times only. The space must outlive the explorer.
// Sources: docs/internals/tuning-search.md.
#pragma once
#include "autotune/search.h"

namespace tw {

using ScorePoints = std::function<std::vector<double>(std::span<const Point>)>;
// Chooses the points to measure next, at most `count` of the scored points, best first.
using ChoosePoints = std::function<std::vector<Point>(std::span<const Point> points, int count)>;

// Scores points by the model. Builds the candidates that the model does not know yet, on up to
// `jobs` threads. Others fit the model, which must outlive the result.
ScorePoints score_points(MakeCandidate build, CostModel& model, int jobs);

struct RandomOptions {
  int pool = 16;          // with scores: points drawn for each proposed point
  double epsilon = 0.05;  // share of a batch that stays random
  int random_first = 64;  // trials before scores count
};
struct GeneticOptions {
  int population = 100, elites = 3, tournament = 3;
  double mutation = 0.1;  // chance that a child is mutated
  // With scores, generations are bred between measurements:
  int scored_population = 512, generations = 4;
  // Share of the first generation that is taken from the best measured points
  double scored_mutation = 0.85, measured_share = 0.2;
  double epsilon = 0.05;
  int random_first = 64;
};
struct AnnealingOptions {
  // `patience` counts iterations in which the best points found stay the same.
  int chains = 128, iterations = 500, patience = 50;
  // Temperature, in standard deviations of the scores
  double start = 1, end = 0;
  double epsilon = 0.05;
  int random_first = 64;
  // Batch size times this many points are kept by score; the batch is picked from them by score and
  // new knob values. 1: by score alone
  double diversity = 2;
  double measured_share = 0.25;  // share of the chains that start from the fastest measured points
  // Without scores there are as many chains as a batch has points. The temperature is in units of
  // log(seconds) and is multiplied by `cooling` after each batch.
  double measured_start = 0.3, cooling = 0.9;
};
// An exploration begins with `first` random points. Then come `rounds`, each of which drafts
// `drafted` points and scores the best `verified` of them. `again` is the number of rounds after
// each batch of measurements, for models that learn; 0: a single exploration.
struct DraftOptions {
  int first = 128, rounds = 2, drafted = 16384, verified = 96, again = 0;
};

std::unique_ptr<Explorer> random_explorer(const Space& space, uint64_t seed,
                                          const RandomOptions& options = {},
                                          ScorePoints score = nullptr);
std::unique_ptr<Explorer> grid_explorer(const Space& space);  // in the order of Space::at
std::unique_ptr<Explorer> genetic_explorer(const Space& space, uint64_t seed,
                                           const GeneticOptions& options = {},
                                           ScorePoints score = nullptr);
std::unique_ptr<Explorer> annealing_explorer(const Space& space, uint64_t seed,
                                             const AnnealingOptions& options = {},
                                             ScorePoints score = nullptr);
std::unique_ptr<Explorer> draft_explorer(const Space& space, uint64_t seed,
                                         const DraftOptions& options, ScorePoints score,
                                         ChoosePoints choose = nullptr);

}  // namespace tw
