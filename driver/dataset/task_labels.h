// Measures the programs of one task on one platform, and stores their labels.
#pragma once
#include <memory>
#include <optional>

#include "autotune/dataset/dataset.h"
#include "autotune/measure/task_measurer.h"
#include "ir/target.h"

namespace tw {

// A place that gives a set's programs their labels
struct LabelPlace : MeasuringPlace {
  int64_t platform = 0;  // id in the set
  // null: no times, so labels are the same each time
  std::shared_ptr<Transport> own_process = nullptr;
  LabelKind kind() const;
  std::string machine() const;
};
// worker: as in measuring_place. Without one, a processor of another architecture is estimated.
Expected<LabelPlace> label_place(const Target& target, int threads, int jobs,
                                 const std::string& worker = "");

// Seeds of what is drawn for a task, the same on every platform
uint64_t seed_for(const LearningTask& task, const char* what);

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
  friend class ProgramMaker;
  Error load(int64_t task, const Target& lowered_for);
  // Results in the order of the programs. Where a schedule does not apply, the result is illegal.
  // none: not measured, because it was stopped
  using Results = std::vector<std::optional<MeasureResult>>;
  Results results_of(std::span<const LearningProgram> programs, const StopAsked& stop);
  Expected<Candidate> candidate(Schedule schedule, const Point& point = {-1, {}}) const;
  Expected<Schedule> standard_schedule() const;
  Label label_of(const LearningProgram& program, const MeasureResult& result, int pass) const;

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
  int64_t stored_ = 0;
};

}  // namespace tw
