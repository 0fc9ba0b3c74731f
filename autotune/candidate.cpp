#include "autotune/candidate.h"

#include "ir/kernel/code_size.h"
#include "kernels/arranged.h"

namespace tw {

Expected<Candidate> candidate_of(const Task& task, const Target& target, int variant,
                                 Schedule schedule, const Point& point) {
  if (variant < 0 || static_cast<size_t>(variant) >= task.variants.size())
    return make_error(DiagCode::invalid_argument, "{0} has no variant {1}", task.name, variant);
  TW_ASSIGN(RunKernel run,
            scheduled_run(task.variants[static_cast<size_t>(variant)].lowered, schedule, target));
  return Candidate{point, std::move(schedule), std::make_shared<const RunKernel>(std::move(run)),
                   variant};
}

Expected<Candidate> candidate_of(const Task& task, const Target& target, const Space& space,
                                 const Point& point) {
  TW_ASSIGN(FilledSketch made, space.filled(point));
  const int variant = space.sketches()[static_cast<size_t>(point.sketch)].variant;
  if (!made.run) return candidate_of(task, target, variant, std::move(made.schedule), point);
  return Candidate{point, std::move(made.schedule), std::move(made.run), variant};
}

Expected<Candidate> candidate_of(const Kernel& lowered, const Target& target, Schedule schedule,
                                 const Point& point) {
  TW_ASSIGN(RunKernel run, apply_to_run(lowered, schedule, &target));
  return Candidate{point, std::move(schedule), std::make_shared<const RunKernel>(std::move(run)),
                   0};
}

Error check_code_size(const Candidate& candidate, const Target& target, int64_t most) {
  const int64_t size = written_out_operations(candidate.run->kernel, target.lanes(4));
  return size <= most ? Error::success()
                      : make_error(DiagCode::illegal_schedule,
                                   "its unrolled loops are {0} operations; {1} are the most here",
                                   size, most);
}

}  // namespace tw
