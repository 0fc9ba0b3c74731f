// set_scope c register
//   temp c: f32[14, 32]    ->    temp c: f32[14, 32] in register
//
// Legal: c is a temp, and the target has the scope. Further rules for stack and register temps
// (small size, constant indices of register temps) are checked at the end of the schedule
// (check_scopes), so the order of steps does not matter.
#include <algorithm>

#include "ir/schedule/nest.h"
#include "ir/schedule/product_form.h"
#include "ir/target.h"

namespace tw {

std::vector<std::string> scopes_of(const Target* target) {
  std::vector<std::string> scopes = {"global", "thread", "stack", "register", kConstantScope};
  if (!target) return scopes;
  const bool tiles = std::ranges::any_of(target->intrinsics, [](const Intrinsic& i) {
    return std::ranges::find(i.scopes, kTileScope) != i.scopes.end();
  });
  if (tiles) scopes.emplace_back(kTileScope);
  for (const MemoryScope& memory : target->scopes) scopes.push_back(memory.name);
  return scopes;
}

const std::string* scope_of(const Step& step) {
  return std::visit(
      [](const auto& s) -> const std::string* {
        if constexpr (requires { s.scope; }) return &s.scope;
        else return nullptr;
      },
      step);
}

namespace sched {

Error check_scope(const std::string& scope, const Target* target) {
  const std::vector<std::string> known = scopes_of(target);
  if (std::ranges::find(known, scope) != known.end()) return Error::success();
  return illegal("the target has no scope '{0}': {1}", scope, it_has(known));
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::SetScope& s) {
  TW_ASSIGN(const BufferId id, buffer_named(kernel, s.buffer));
  if (kernel.buffer(id).role != BufferRole::temp)
    return illegal("'{0}' is a parameter of the kernel: only temps have a scope", s.buffer);
  Kernel out = kernel;
  out.buffer(id).scope = s.scope;
  return out;
}

}  // namespace sched
}  // namespace tw
