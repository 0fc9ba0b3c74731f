// The tuners of `tune --tuner`: each pairs an explorer with the cost model that it asks. A row of
// the table in tuners.cpp makes one known.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/explorers/explorers.h"
#include "autotune/features/features.h"
#include "autotune/models/gbt.h"
#include "autotune/models/predictor.h"
#include "autotune/tuner.h"

namespace tw {

struct Tuner;
const Tuner* tuner_named(std::string_view name);  // null: there is none

// The choices of a user for the way to search
struct TunerOptions {
  const Tuner* tuner = tuner_named("gbt");
  std::shared_ptr<const PredictorSet> predictors = nullptr;  // predictors of the tuner's kind
  Objective objective = Objective::rank;                     // with gbt
  const NamedFeatures* features = features_named("loops");   // with gbt
  bool transfer = true;  // tasks learn from others of the same family
  uint64_t seed = 1;
  int threads = 1;  // part of the records' key
  int jobs = 1;     // threads that build candidates
};

// Another task of the same family, and its search, which has results
struct SimilarTask {
  const Task* task = nullptr;
  const TaskTuner* tuner = nullptr;
};

// Facts about the task that a tuner is to search for. The references outlive the search; `similar`
// does not.
struct TunerInput {
  const Task& task;
  const Space& space;
  const Target& target;
  const TunerOptions& options;
  uint64_t seed = 0;                     // the task's own, the same in every network
  int batch = 1;                         // measurements between two fits of the model
  MakeCandidate make;                    // fails once the search is to end
  std::span<const SimilarTask> similar;  // the nearest shapes first
};

struct SearchParts {
  std::unique_ptr<CostModel> model;  // null: measured times alone
  std::unique_ptr<Explorer> explorer;
};

struct Tuner {
  const char* name = "";
  const char* about = "";  // a word about the method, for --help; "": none
  SearchParts (*parts)(const TunerInput& input) = nullptr;
  bool predicted = false;   // needs predictors of its name, which were trained before
  bool starts_near = true;  // begins with the best candidates of similar tasks, if it may
  bool exhaustive = false;  // visits every point, however many repeat
  // Batches of a task at least, unless the user sets their size
  int batches = 1;
};
std::span<const Tuner> tuners();

}  // namespace tw
