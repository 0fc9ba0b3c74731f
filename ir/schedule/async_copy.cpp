// async_copy xs
//   for k in 6 reduce {                             tokens xs.done
//     for i in 8 { xs: xs[i] = x[k, i] }            for k in 6 reduce {
//     for i1 in 8 reduce { c: c[0] += xs[i1] }  ->    for i in 8 { xs: xs[i] = x[k, i] async }
//   }                                                 signal xs.done async
//                                                     wait xs.done
//                                                     for i1 in 8 reduce { c: c[0] += xs[i1] }
//                                                   }
//
// An engine makes the copies of the stage, and the wait comes right behind them. The primitive
// pipeline moves the wait to the place that needs the data. Legal: the stage only copies (or stores
// zeros where a condition does not hold), into a temp, and is not yet asynchronous.
#include <algorithm>

#include "ir/kernel/copies.h"
#include "ir/schedule/owners.h"

namespace tw::sched {

std::string done_queue(const std::string& stage) { return stage + ".done"; }

size_t own_statement(std::span<const Stmt> path) {
  size_t at = path.size() - 1;
  while (at > 0 && stores_of(path[at - 1]).size() == 1) --at;
  return at;
}

Expected<Kernel> apply_step(const Kernel& kernel, const step::AsyncCopy& s) {
  TW_ASSIGN(std::vector<Stmt> path, stage_path(kernel, s.stage));
  stmt::Store store = get<stmt::Store>(path.back());
  const std::string queue = done_queue(s.stage);
  const bool copies = store.combiner == Combiner::none && !store.where.defined() &&
                      copied_load(store.value).defined();
  if (!copies) return illegal("stage '{0}' does more than copy: an engine cannot do that", s.stage);
  if (kernel.buffer(store.buffer).role != BufferRole::temp)
    return illegal("stage '{0}' writes the parameter '{1}', which nobody waits for", s.stage,
                   kernel.buffer(store.buffer).name);
  if (store.async || kernel.find_queue(queue))
    return illegal("stage '{0}' is asynchronous already", s.stage);
  size_t at = own_statement(path);
  const std::string per = innermost_concurrent(path);
  // In loops that exchange tokens, each iteration hands on its copies.
  while (at + 1 < path.size() && contains(path[at], is_token)) ++at;
  // Each iteration waits for its own copies.
  while (at > 0 && !innermost_concurrent(std::span(path).subspan(at)).empty()) ++at;
  store.async = true;
  const Stmt copy = replace(path[at], path.back(), make_store(std::move(store))),
             signal = make_stmt(stmt::Signal{.queue = queue, .async = true}),
             wait = make_stmt(stmt::Wait{.queue = queue});
  Kernel out = kernel;
  out.queues.push_back({queue, std::nullopt, 0, per});
  out.body = replace(kernel.body, path[at], make_sequence({copy, signal, wait}));
  return out;
}

}  // namespace tw::sched
