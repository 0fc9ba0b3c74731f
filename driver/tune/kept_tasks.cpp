#include "driver/tune/kept_tasks.h"

#include <algorithm>
#include <functional>

namespace tw {
namespace {

TaskSet both(TaskSet a, const TaskSet& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// Adds those of the claims to `kept` that do not make the network slower.
class Growth {
 public:
  Growth(const TimeTasks& time, KeptTasks& out) : time_(time), out_(out) {}

  Error add(std::span<const TaskClaim> claims) {
    if (claims.empty() || over_) return Error::success();
    const TaskSet more = both(out_.kept, tasks_of(claims));
    TW_ASSIGN(const std::optional<Comparison> timed, time_(out_.kept, more));
    over_ = !timed;
    if (over_) return Error::success();  // untimed claims are not kept
    if (timed->first_is_faster()) return halve(claims);
    out_.some = out_.kept.empty() ? timed : std::nullopt;  // else it was not timed against none
    out_.kept = more;
    return Error::success();
  }
  // The claims together are known to make the network slower.
  Error halve(std::span<const TaskClaim> claims) {
    if (claims.size() < 2) return Error::success();
    const size_t half = (claims.size() + 1) / 2;
    TW_TRY(add(claims.first(half)));
    return add(claims.subspan(half));
  }
  bool over() const { return over_; }

 private:
  const TimeTasks& time_;
  KeptTasks& out_;
  bool over_ = false;  // the time
};

}  // namespace

TaskSet tasks_of(std::span<const TaskClaim> claims) {
  TaskSet out;
  for (const TaskClaim& claim : claims) out.insert(claim.task);
  return out;
}

Expected<KeptTasks> choose_kept(std::vector<TaskClaim> claims, const TimeTasks& time) {
  KeptTasks out;
  const TaskSet all = tasks_of(claims);
  TW_ASSIGN(out.all, time({}, all));
  if (!out.all || out.all->second_is_faster()) {
    out.kept = all;
    return out;
  }
  const bool slower = out.all->first_is_faster();
  std::erase_if(claims, [](const TaskClaim& claim) { return !claim.sure; });
  std::ranges::stable_sort(claims, std::greater(), &TaskClaim::saved);
  const TaskSet sure = tasks_of(claims);
  if (sure == all && !slower) {
    out.kept = all;
    return out;
  }
  Growth growth(time, out);
  TW_TRY(sure == all ? growth.halve(claims) : growth.add(claims));
  if (growth.over() && !slower) out.kept = sure;  // no time, and no sign that they cost anything
  if (out.kept.empty() || out.some) return out;
  TW_ASSIGN(out.some, time({}, out.kept));
  if (out.some && out.some->first_is_faster()) out.kept.clear();  // the parts do not add up
  return out;
}

}  // namespace tw
