// Makes the programs of one task of a data set. Each gets its label at once, from which later ones
// learn.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include "autotune/models/predictor.h"
#include "autotune/tuner.h"
#include "driver/dataset/task_labels.h"

namespace tw {

class ProgramMaker {
 public:
  // Both must outlive the maker.
  ProgramMaker(TaskLabels& labels, const StopAsked& stop) : of_(labels), stop_(stop) {}

  // Makes as many programs as an incomplete task lacks, then calls the task complete.
  Error make(int programs);
  // Adds programs that the predictors' search asks for, until there are `count`. The search begins
  // without labels; those that it gets correct it.
  Error extend(const std::shared_ptr<const PredictorSet>& predictors, int count);

 private:
  class Trials;
  bool stopped() const { return stop_ && stop_(); }
  Expected<Candidate> candidate(const Space& space, const Point& point) const;
  Expected<Space> free_space() const;
  int count_of(ProgramSource source) const;
  Error make_standard();
  Error make_search(const Space& space, int count);
  // Results of the programs of the space that have labels
  std::vector<KnownResult> known_results() const;
  Error search(const Space& space, Explorer& explorer, CostModel& model, ProgramSource source,
               int count);
  Error make_neighbours(const Space& space, int count);
  Error make_product(int count);
  // Draws points until `count` legal programs of this source are found, remembers their points, and
  // labels the programs.
  Error make_drawn(const Space& space, int count, ProgramSource source,
                   llvm::function_ref<Point()> draw);
  std::vector<LearningProgram> legal(const Space& space, int count, ProgramSource source,
                                     llvm::function_ref<Point()> draw);

  TaskLabels& of_;
  const StopAsked& stop_;
  std::map<int64_t, Point> points_;  // points of the space, by program
};

}  // namespace tw
