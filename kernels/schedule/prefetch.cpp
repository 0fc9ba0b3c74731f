// Prefetches of a schedule: weights of the next rows and panels, and operands of followers.
#include <algorithm>

#include "kernels/schedule/builder.h"

namespace tw {
namespace {

// The loops from the outside in, the named one last; empty: the loop is absent.
std::vector<LoopRef> loops_around(const Stmt& s, const std::string& name) {
  const auto* loop = as<stmt::Loop>(s);
  if (loop && loop->var == name) return {LoopRef(s)};
  for (const Stmt& child : children(s))
    if (std::vector<LoopRef> inside = loops_around(child, name); !inside.empty()) {
      if (loop) inside.insert(inside.begin(), LoopRef(s));
      return inside;
    }
  return {};
}

// True: the loop's variable selects which element of the buffer is read.
bool indexes(const Kernel& kernel, BufferId buffer, const std::string& loop) {
  bool found = false;
  for (const StoreRef& store : stores_of(kernel.body))
    visit(store->value, [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      if (!load || load->buffer != buffer) return;
      for (const Expr& index : load->indices) found |= uses_var(index, loop);
    });
  return found;
}

}  // namespace

void ScheduleBuilder::prefetch_weights(const BufferName& buffer, const Loop& row,
                                       int64_t distance) {
  const Buffer* found = find(buffer);
  if (found && found->role == BufferRole::constant) prefetch(buffer, row, distance);
}

void ScheduleBuilder::prefetch(const BufferName& buffer, const Loop& loop, int64_t distance) {
  if (has(loop))
    try_add(step::Prefetch{.buffer = buffer.name(), .loop = loop.name(), .distance = distance});
}

void ScheduleBuilder::prefetch_over(const BufferName& buffer, const Loop& loop, const Loop& inner) {
  const bool nested = loop != inner && has(loop) && has(inner);
  if (!nested ||
      !try_add(step::Prefetch{.buffer = buffer.name(), .loop = loop.name(), .over = inner.name()}))
    prefetch(buffer, loop, 1);
}

void ScheduleBuilder::prefetch_operands(const Stage& stage, const BufferName& main,
                                        const Loop& loop) {
  std::vector<std::string> names;
  for (const StoreRef& store : stores_of(kernel_.body))
    if (store->label == stage.label())
      visit(store->value, [&](const Expr& e) {
        const auto* load = as<expr::Load>(e);
        if (load && kernel_.buffer(load->buffer).role == BufferRole::input)
          names.push_back(kernel_.buffer(load->buffer).name);
      });
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (const std::string& name : names)
    if (name != main.name() && choose_switch("prefetch_" + name, true))
      prefetch(BufferName(name), loop, 0);
}

bool ScheduleBuilder::prefetch_next_panel(const BufferName& buffer, const Loop& row) {
  const std::optional<BufferId> id = kernel_.find_buffer(buffer.name());
  if (!id || kernel_.buffer(*id).role != BufferRole::constant || !has(row) || !bytes_of(buffer))
    return false;
  int64_t bytes = *bytes_of(buffer);
  // `again` is the innermost loop that reuses the weights inside it, `panel` the next loop outside
  // that moves them.
  const std::vector<LoopRef> loops = loops_around(kernel_.body, row.name());
  const auto moves = [&](const LoopRef& loop) { return indexes(kernel_, *id, loop->var); };
  const auto again = std::find_if(loops.rbegin(), loops.rend(), [&](const LoopRef& loop) {
    return !moves(loop) && !is_const(loop->extent, 1);
  });
  const auto panel = std::find_if(again, loops.rend(), moves);
  if (panel == loops.rend()) return false;
  for (auto loop = panel; loop != loops.rend(); ++loop)
    if (moves(*loop)) bytes /= as_const((*loop)->extent).value_or(1);
  return 4 * bytes <= 3 * target_->l2_bytes &&
         try_add(
             step::Prefetch{.buffer = buffer.name(), .loop = (*panel)->var, .over = row.name()});
}

void ScheduleBuilder::prefetch_panels(const BufferName& buffer, const Loop& row, bool pairs) {
  const int64_t ahead = choose("prefetch_" + buffer.name(), 1, {0, 4, 8, 16, 32});
  if (ahead > 1) prefetch_weights(buffer, row, ahead);
  if (ahead != 1) return;
  const bool next = prefetch_next_panel(buffer, row);
  if (!next || !pairs) prefetch_weights(buffer, row, pairs ? kStepsAhead : kRowsAhead);
}

}  // namespace tw
