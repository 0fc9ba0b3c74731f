// The records of one task: what the log knows of it, and what a search adds to it.
#pragma once
#include <string>
#include <vector>

#include "autotune/log.h"
#include "autotune/tuner.h"

namespace tw {

class TaskRecords {
 public:
  // log: null: nothing is known, and nothing is kept. All references must outlive the records.
  TaskRecords(TuningLog* log, const Task& task, const Space& space, RecordKey key);

  // Stores the task and its kernels, which records refer to.
  Error keep_texts();
  // Results of the task's current kernels. Records of kernels that were lowered in another way are
  // left out.
  Expected<std::vector<KnownResult>> known() const;
  // by_default: the candidate has the default schedule of its variant.
  Error add(const Candidate& candidate, const MeasureResult& result, bool by_default);

 private:
  Record record_of(const Candidate& candidate, const MeasureResult& result, bool by_default) const;

  TuningLog* log_;
  const Task& task_;
  const Space& space_;
  RecordKey key_;
  std::vector<std::string> hashes_;  // hashes of the variants' kernels
};

}  // namespace tw
