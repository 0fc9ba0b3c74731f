// Programs of a data set as the rest of the compiler knows them: targets, candidates, times.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/search.h"
#include "ir/target.h"

namespace tw {

// Targets by the names that tasks say, each read once.
class NamedTargets {
 public:
  explicit NamedTargets(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  // Good as long as this. Error: no such target.
  Expected<const Target*> find(const std::string& name);

 private:
  std::vector<std::string> folders_;
  std::map<std::string, Target> known_;
};

// In an order that the seed alone decides, so that every prefix is a fair sample.
void order_by_seed(std::vector<LearningTask>& tasks, uint64_t seed);

// Seconds of the programs that worked.
std::map<int64_t, double> times_of(const std::vector<Label>& labels);

// Programs of the task as candidates, with their scheduled kernels, in their order. Errors: a
// kernel or a schedule that this version does not read or apply.
Expected<std::vector<Candidate>> program_candidates(const LearningTask& task,
                                                    const std::vector<LearningProgram>& programs,
                                                    const Target& target, int jobs);

}  // namespace tw
