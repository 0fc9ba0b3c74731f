// Connects programs of a data set to the rest of the compiler: targets, candidates, times.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/search.h"
#include "ir/target.h"

namespace tw {

// Targets by the names in tasks; each is read once.
class NamedTargets {
 public:
  explicit NamedTargets(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  // The target lives as long as this object. Error: no such target.
  Expected<const Target*> find(const std::string& name);

 private:
  std::vector<std::string> folders_;
  std::map<std::string, Target> known_;
};

// Sorts tasks into an order that the seed alone decides, so that every prefix is a fair sample.
void order_by_seed(std::vector<LearningTask>& tasks, uint64_t seed);

// Seconds of the programs that worked, by program
std::map<int64_t, double> times_of(const std::vector<Label>& labels);

// Candidates of the task's programs, in their order, with scheduled kernels. Errors: a kernel or a
// schedule that this version does not read or apply.
Expected<std::vector<Candidate>> program_candidates(const LearningTask& task,
                                                    const std::vector<LearningProgram>& programs,
                                                    const Target& target, int jobs);

}  // namespace tw
