// set_scope c register
//   temp c: f32[14, 32]    ->    temp c: f32[14, 32] in register
//
// Legal: c is a temp. Further rules for stack and register temps (small size, constant indices of
// register temps) are checked at the end of the schedule (check_scopes), so the order of steps does
// not matter.
#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::SetScope& s) {
  const std::optional<BufferId> id = kernel.find_buffer(s.buffer);
  if (!id) return illegal("the kernel has no buffer '{0}'", s.buffer);
  if (kernel.buffer(*id).role != BufferRole::temp)
    return illegal("'{0}' is a parameter of the kernel: only temps have a scope", s.buffer);
  Kernel out = kernel;
  out.buffer(*id).scope = s.scope;
  return out;
}

}  // namespace tw::sched
