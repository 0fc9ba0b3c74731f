// hoist v k
//   for t in 4 scan {                        for t in 4 scan {
//     for a in 8 { k: k[a] = x[t, a] }         for c in 8 { v: v[c] = z[t, c] }
//     for b in 8 { s: s[b] += k[b] }     ->    for a in 8 { k: k[a] = x[t, a] }
//     for c in 8 { v: v[c] = z[t, c] }         for b in 8 { s: s[b] += k[b] }
//     for d in 8 { o: o[d] += v[d] * s[d] }    for d in 8 { o: o[d] += v[d] * s[d] }
//   }                                        }
//
// Moves the statement around a stage in front of the one around another stage of the same loop or
// condition. Copies that run one after the other do not wait for each other. Legal: the statement
// stands behind the other one. None of those that it passes writes what it reads, or uses what it
// writes. It passes no tokens.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

Expected<Kernel> apply_step(const Kernel& kernel, const step::Hoist& s) {
  TW_ASSIGN(const std::vector<Stmt> path, stage_path(kernel, s.stage));
  TW_ASSIGN(const std::vector<Stmt> to, stage_path(kernel, s.before));
  const auto common = static_cast<size_t>(std::ranges::mismatch(path, to).in1 - path.begin());
  if (common == path.size()) return illegal("stage '{0}' cannot pass itself", s.stage);
  const Stmt& around = common == 0 ? kernel.body : children(path[common - 1])[0];
  const std::span<const Stmt> body = statements(around);
  if (!is<stmt::Sequence>(around))
    return illegal("stages '{0}' and '{1}' are in one statement", s.stage, s.before);
  const auto first = std::ranges::find(body, to[common]),
             moved = std::ranges::find(body, path[common]);
  if (first >= moved || moved == body.end())
    return illegal("stage '{0}' does not stand behind '{1}'", s.stage, s.before);
  for (const Stmt& passed : std::span(first, moved)) {
    if (contains(passed, is_token) ||
        contains(passed, [](const StmtNode& n) { return is<stmt::Barrier, stmt::Roles>(n); }))
      return illegal("stage '{0}' would pass tokens", s.stage);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const BufferId id{static_cast<int32_t>(b)};
      const bool changed = writes(passed, id) && (reads(*moved, id) || writes(*moved, id));
      if (changed || (reads(passed, id) && writes(*moved, id)))
        return illegal("stage '{0}' would pass a statement that {1} '{2}'", s.stage,
                       changed ? "writes" : "reads", kernel.buffers[b].name);
    }
  }
  if (contains(*moved, is_token)) return illegal("stage '{0}' gives or takes tokens", s.stage);
  std::vector<Stmt> ordered(body.begin(), first);
  ordered.push_back(*moved);
  ordered.insert(ordered.end(), first, moved);
  ordered.insert(ordered.end(), moved + 1, body.end());
  Kernel out = kernel;
  out.body = replace(kernel.body, around, make_sequence(std::move(ordered)));
  return out;
}

}  // namespace tw::sched
