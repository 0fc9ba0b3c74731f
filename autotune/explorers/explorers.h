// The explorers. `score` asks a cost model for points (higher is faster, -infinity: illegal);
// without it an explorer goes by measured times alone. The space must outlive them. Sources:
// docs/internals/tuning-search.md.
#pragma once
#include "autotune/search.h"

namespace tw {

using ScorePoints = std::function<std::vector<double>(std::span<const Point>)>;
// Which points to measure next, at most `count` of those that were scored; best first.
using ChoosePoints = std::function<std::vector<Point>(std::span<const Point> points, int count)>;

// Builds what the model does not know yet, on up to `jobs` threads, and asks it. The model is
// fitted elsewhere and must outlive the result.
ScorePoints score_points(MakeCandidate build, CostModel& model, int jobs);

struct RandomOptions {
  int pool = 16;          // with scores: points drawn for each one proposed
  double epsilon = 0.05;  // share of a batch that is random all the same
  int random_first = 64;  // trials before scores count
};
struct GeneticOptions {
  int population = 100, elites = 3, tournament = 3;
  double mutation = 0.1;  // chance that a child is mutated
  // With scores, generations are bred between measurements:
  int scored_population = 512, generations = 4;
  // Of the first generation: the best that were measured
  double scored_mutation = 0.85, measured_share = 0.2;
  double epsilon = 0.05;
  int random_first = 64;
};
struct AnnealingOptions {
  // patience: iterations in which the best points found stay the same
  int chains = 128, iterations = 500, patience = 50;
  // Temperature, in standard deviations of the scores
  double start = 1, end = 0;
  double epsilon = 0.05;
  int random_first = 64;
  // The batch is picked from so many times as many points by score and new knob values; 1: by score
  // alone
  double diversity = 2;
  double measured_share = 0.25;  // of the chains: from the fastest points that were measured
  // Without scores: as many chains as a batch has points; temperature in units of log(seconds), and
  // its factor from batch to batch.
  double measured_start = 0.3, cooling = 0.9;
};
// Of an exploration: points drawn at random first, then rounds, in each of which as many as
// `verified` of the `drafted` ones are scored. again: rounds after each batch of measurements, for
// models that learn; 0: one exploration is all.
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
