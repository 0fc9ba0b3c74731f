// Applies schedules step by step. Every primitive is a function from kernel to kernel. A failed
// step changes nothing.
#include "ir/schedule/arguments.h"
#include "ir/schedule/intrinsic.h"
#include "ir/schedule/nest.h"
#include "support/hash.h"

namespace tw {

namespace {

// Puts the place in front of the error's message.
Error at_step(Error error, const std::string& where) {
  std::vector<Diag> diags = take_diags(std::move(error));
  for (Diag& diag : diags) diag.message = where + ": " + diag.message;
  return make_error(std::move(diags));
}

Error check_numbers(const Step& step) {
  for (const StepArgument& argument : arguments(step))
    if (const auto* number = std::get_if<int64_t>(&argument);
        number && (*number > kMostStepNumber || *number < -kMostStepNumber))
      return sched::illegal("the number {0} is outside -{1} to {1}", *number, kMostStepNumber);
  return Error::success();
}

Expected<Kernel> apply_checked(const Kernel& kernel, const Step& step, const Target* target) {
  const auto one = [&](const auto& s) {
    if constexpr (requires { sched::apply_step(kernel, s, target); })
      return sched::apply_step(kernel, s, target);
    else return sched::apply_step(kernel, s);
  };
  TW_TRY(check_numbers(step));
  if (const std::string* scope = scope_of(step)) TW_TRY(sched::check_scope(*scope, target));
  TW_ASSIGN(Kernel out, std::visit(one, step));
  TW_TRY(sched::check_rules(out));
  // Scopes are checked at the end, since later steps may unroll the loops that register temps need.
  Kernel checked = out;
  for (Buffer& buffer : checked.buffers) buffer.scope = "global";
  bool concurrent = !out.queues.empty();
  visit(out.body, [&](const Stmt& s) {
    const auto* loop = as<stmt::Loop>(s);
    concurrent |= is<stmt::Roles, stmt::Barrier>(s) || (loop && is_concurrent(loop->kind));
  });
  if (concurrent)  // the primitives do not know all needs of tokens and barriers
    if (Error error = verify(checked))
      return sched::illegal("the kernel would not be legal: {0}", error_text(std::move(error)));
#ifdef TW_VERIFY_EACH
  if (Error error = verify(checked))
    TW_CHECK(false, "'{0}' broke the kernel: {1}\n{2}before:\n{3}", print(step),
             error_text(std::move(error)), print(out), print(kernel));
#endif
  return out;
}

std::string quoted(const Step& step) { return "'" + print(step) + "'"; }

}  // namespace

Expected<Kernel> apply(const Kernel& kernel, const Step& step, const Target* target) {
  Expected<Kernel> out = apply_checked(kernel, step, target);
  if (!out) return at_step(out.takeError(), quoted(step));
  return out;
}

Expected<Kernel> apply(const Kernel& kernel, const Schedule& schedule, const Target* target) {
  Kernel current = kernel;
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    Expected<Kernel> next = apply_checked(current, schedule.steps[i], target);
    if (!next)
      return at_step(next.takeError(),
                     llvm::formatv("step {0}, {1}", i + 1, quoted(schedule.steps[i])).str());
    current = std::move(*next);
  }
  const auto at_end = [&](Error error) {
    return at_step(std::move(error), llvm::formatv("after step {0}", schedule.steps.size()).str());
  };
  if (Error error = sched::check_scopes(current)) return at_end(std::move(error));
  if (target)
    if (Error error = check_instructions(current, *target)) return at_end(std::move(error));
  // Code is made of the final kernel alone, so one check at the end suffices.
  if (Error error = verify(current))
    return at_end(sched::illegal("the kernel is not legal: {0}", error_text(std::move(error))));
  return current;
}

Error verify(const Schedule& schedule, const Kernel& kernel, const Target* target) {
  return apply(kernel, schedule, target).takeError();
}

std::vector<step::Block> blocks_of(const Schedule& schedule, const std::string& buffer) {
  std::vector<step::Block> blocks;
  for (const Step& step : schedule.steps)
    if (const auto* block = std::get_if<step::Block>(&step); block && block->buffer == buffer)
      blocks.push_back(*block);
  return blocks;
}

std::string schedule_hash(const Schedule& schedule) { return short_hash(print(schedule)); }

}  // namespace tw
