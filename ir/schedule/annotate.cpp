// annotate i grain 4
//   for i in 64 parallel {    ->    for i in 64 parallel @grain=4 {
//
// Attaches a key and a name or integer for passes, back ends and people. It does not affect values.
// A second value of a key replaces the first.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::Annotate& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  stmt::Loop loop = get<stmt::Loop>(path.back());
  const auto same = std::ranges::find(loop.annotations, s.key, &Annotation::key);
  if (same != loop.annotations.end()) same->value = s.value;
  else loop.annotations.push_back({s.key, s.value});
  Kernel out = kernel;
  out.body = replace(kernel.body, path.back(), make_stmt(std::move(loop)));
  return out;
}

}  // namespace tw::sched
