#include "driver/dataset/set_programs.h"

#include <algorithm>

#include "autotune/candidate.h"
#include "frontend/frontend.h"
#include "ir/text.h"
#include "support/hash.h"
#include "support/parallel.h"

namespace tw {

Expected<const Target*> NamedTargets::find(const std::string& name) {
  auto found = known_.find(name);
  if (found == known_.end()) {
    TW_ASSIGN(Target target, load_target(name, folders_));
    target.name = name;
    found = known_.emplace(name, std::move(target)).first;
  }
  return &found->second;
}

void order_by_seed(std::vector<LearningTask>& tasks, uint64_t seed) {
  std::ranges::sort(tasks, {}, [&](const LearningTask& task) {
    return short_hash(task.key + std::to_string(seed));
  });
}

std::map<int64_t, double> times_of(const std::vector<Label>& labels) {
  std::map<int64_t, double> times;
  for (const Label& l : labels)
    if (l.status == Status::ok) times[l.program] = l.seconds();
  return times;
}

Expected<std::vector<Candidate>> program_candidates(const LearningTask& task,
                                                    const std::vector<LearningProgram>& programs,
                                                    const Target& target, int jobs) {
  TW_ASSIGN(const Kernel kernel, parse_kernel(task.kernel_text));
  std::vector<Candidate> candidates(programs.size());
  TW_TRY(parallel_for(jobs, programs.size(), [&](size_t i) -> Error {
    TW_ASSIGN(Schedule schedule, parse_schedule(programs[i].schedule));
    TW_ASSIGN(candidates[i], candidate_of(kernel, target, std::move(schedule)));
    return Error::success();
  }));
  return candidates;
}

}  // namespace tw
