// Makes, measures and stores the programs of one task on one platform.
#pragma once
#include <memory>
#include <optional>
#include <set>

#include "autotune/dataset/dataset.h"
#include "autotune/measure/task_measurer.h"
#include "autotune/models/predictor.h"
#include "ir/target.h"

namespace tw {

// A place that gives a set's programs their labels
struct LabelPlace : MeasuringPlace {
  int64_t platform = 0;  // id in the set
  std::shared_ptr<Transport> own_process =
      nullptr;  // null: no times, so labels are the same each time
  LabelKind kind() const;
  std::string machine() const;
};
// worker: as in measuring_place. Without one, a processor of another architecture is estimated.
Expected<LabelPlace> label_place(const Target& target, int threads, int jobs,
                                 const std::string& worker = "");

struct ProgramCounts {
  int uniform = 0, search = 0, neighbours = 0, product = 0;
};
ProgramCounts shares_of(int programs);

class TaskLabels {
 public:
  // extends: programs are to be made though the task is complete. after_batch is called after each
  // stored batch; it may be null. Errors: a kernel that does not run here, or a task that this
  // version lowers in another way while programs are to be made.
  static Expected<std::unique_ptr<TaskLabels>> create(DataSet& set, LabelPlace& place, int64_t task,
                                                      const Target& lowered_for, bool extends,
                                                      std::function<Error()> after_batch);

  // The first pass: makes the programs that an incomplete task lacks, and labels further ones until
  // `programs` have labels.
  Error first_pass(int programs, const StopAsked& stop);
  // Adds programs that the predictors' search asks for, until there are `count`. Their labels
  // correct the search.
  Error extend(const std::shared_ptr<const PredictorSet>& predictors, int count,
               const StopAsked& stop);
  // Labels the fastest fifth, and a twentieth of the others, a second time.
  Error second_pass(const StopAsked& stop);
  // Measures programs without a label of the pass. Each batch is stored when it is measured.
  Error measure_new(const std::vector<LearningProgram>& programs, int pass, const StopAsked& stop);
  // Measures programs again and stores no label.
  Expected<std::vector<Label>> measure(const std::vector<LearningProgram>& programs,
                                       const StopAsked& stop);
  int64_t stored() const { return stored_; }

 private:
  TaskLabels(DataSet& set, LabelPlace& place, bool extends, std::function<Error()> after_batch)
      : set_(set), place_(place), extends_(extends), after_batch_(std::move(after_batch)) {}
  class Trials;
  Error load(int64_t task, const Target& lowered_for);
  // Results in the order of the programs. Where a schedule does not apply, the result is illegal.
  // none: not measured, because it was stopped
  using Results = std::vector<std::optional<MeasureResult>>;
  Results results_of(std::span<const LearningProgram> programs, const StopAsked& stop);
  Expected<Candidate> candidate_of(const Space& space, const Point& point) const;
  Expected<Schedule> standard_schedule() const;
  Expected<Space> space_of() const;
  Error make_programs(const ProgramCounts& counts, const StopAsked& stop);
  Error make_uniform(const Space& space, int count, const StopAsked& stop);
  Error make_search(const Space& space, int count, const StopAsked& stop);
  Error search(const Space& space, Explorer& explorer, CostModel& model, ProgramSource source,
               int count, const StopAsked& stop);
  Error make_neighbours(const Space& space, int count, const StopAsked& stop);
  Error make_product(int count, const StopAsked& stop);
  // Draws points until `count` legal programs of this source are found, and remembers their points.
  std::vector<LearningProgram> legal(const Space& space, int count, ProgramSource source,
                                     const std::function<Point()>& draw);
  Label label_of(const LearningProgram& program, const MeasureResult& result, int pass) const;
  int count_of(ProgramSource source) const;
  uint64_t seed_for(const char* what) const;

  DataSet& set_;
  LabelPlace& place_;
  bool extends_;
  std::function<Error()> after_batch_;
  LearningTask task_;
  std::optional<Target> lowered_for_;
  Kernel kernel_;  // as lowered
  Task lowered_;   // without a variant unless programs are to be made, and for a device
  int64_t most_code_ = 0;
  std::unique_ptr<TaskMeasurer> measurer_;
  std::map<int64_t, LearningProgram> programs_;
  std::map<int64_t, Label> labels_;  // labels of the first pass
  std::map<int64_t, Point> points_;  // points of the generated space, by program
  int64_t stored_ = 0;
};

}  // namespace tw
