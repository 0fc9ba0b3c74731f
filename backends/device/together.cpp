#include "backends/device/together.h"

#include <deque>

namespace tw::device {
namespace {

constexpr int64_t kMostSteps = 1 << 18;

// Runs the loops around signals and waits, and counts groups of copies.
class Groups {
 public:
  Expected<Stmt> run(const Stmt& body) {
    walk(body, true);
    if (!problem_.empty()) return make_error(DiagCode::unsupported, "{0}", problem_);
    return rewrite(body, [&](const Stmt& s) -> Stmt {
      const auto* wait = as<stmt::Wait>(s);
      const auto found = behind_.find(wait);
      if (found == behind_.end()) return nullptr;
      stmt::Wait counted = *wait;
      counted.count = found->second;
      return make_stmt(std::move(counted));
    });
  }

 private:
  void fail(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }

  bool has_tokens(const Stmt& s) {
    const auto known = tokens_.find(s.get());
    if (known != tokens_.end()) return known->second;
    bool found = is<stmt::Signal, stmt::Wait>(s);
    for (const Stmt& child : children(s)) found |= has_tokens(child);
    return tokens_[s.get()] = found;
  }

  std::optional<int64_t> value(const Expr& e) {
    bool known = true;
    visit(e, [&](const Expr& n) {
      const auto* variable = as<expr::Var>(n);
      known &= !is<expr::Load>(n) && (!variable || vars_.contains(variable->name));
    });
    if (!known) return std::nullopt;
    return eval_int(e, [&](std::string_view name) { return vars_.find(name)->second; });
  }

  // `there`: all enclosing conditions hold.
  void walk(const Stmt& s, bool there) {
    if (!problem_.empty() || !has_tokens(s)) return;
    if (++steps_ > kMostSteps)
      return fail("asynchronous copies in loops that are too long to count");
    if (const auto* loop = as<stmt::Loop>(s)) return repeat(*loop, there);
    if (const auto* guard = as<stmt::If>(s)) {
      const auto holds = value(guard->condition);
      if (!holds) return fail("asynchronous copies under a condition that is not known");
      return walk(guard->body, there && *holds);
    }
    if (const auto* signal = as<stmt::Signal>(s)) return give(*signal, there);
    if (const auto* wait = as<stmt::Wait>(s)) return take(*wait, there);
    for (const Stmt& child : children(s)) walk(child, there);
  }

  void repeat(const stmt::Loop& loop, bool there) {
    if (loop.kind == LoopKind::bind) return walk(loop.body, there);
    const auto extent = value(loop.extent);
    if (!extent)
      return fail("asynchronous copies in loop '" + loop.var + "', whose extent is not known");
    for (int64_t i = 0; i < *extent; ++i) vars_[loop.var] = i, walk(loop.body, there);
    vars_.erase(loop.var);
  }

  void fail_tokens(const std::string& queue) {
    fail("tokens of '" + queue + "' that are not those of asynchronous copies");
  }

  void give(const stmt::Signal& signal, bool there) {
    if (signal.index.defined() || signal.count != 1 || !signal.async)
      return fail_tokens(signal.queue);
    ++given_;
    if (there) queues_[signal.queue].push_back(given_);
  }

  void take(const stmt::Wait& wait, bool there) {
    if (wait.index.defined() || wait.count != 1) return fail_tokens(wait.queue);
    std::deque<int64_t>& queue = queues_[wait.queue];
    if (!there || queue.empty())
      return fail("a wait for '" + wait.queue + "' that nothing was given for");
    const int64_t behind = given_ - queue.front();
    queue.pop_front();
    const auto [at, fresh] = behind_.emplace(&wait, behind);
    if (!fresh) at->second = std::min(at->second, behind);
  }

  std::map<const stmt::Wait*, int64_t> behind_;
  std::map<const StmtNode*, bool> tokens_;
  std::map<std::string, int64_t, std::less<>> vars_;
  std::map<std::string, std::deque<int64_t>> queues_;
  int64_t given_ = 0, steps_ = 0;
  std::string problem_;
};

}  // namespace

Expected<TogetherParts> parts_of(const Kernel& kernel, const stmt::Block& block,
                                 const Target& target, const Ranges& ranges) {
  const Intrinsic& intrinsic = *target.find_intrinsic(block.intrinsic);
  TogetherParts parts;
  TW_ASSIGN(const std::shared_ptr<const Kernel> semantics, semantics_of(intrinsic));
  parts.semantics = *semantics;
  TW_ASSIGN(parts.operands,
            match_intrinsic(intrinsic, parts.semantics, kernel, block.body, ranges));
  const int64_t threads = intrinsic.emit.threads;
  for (const Buffer& parameter : parts.semantics.buffers) {
    int64_t each = 1, stride = 1;
    for (const Expr& extent : parameter.shape) each *= as_const(extent).value_or(1);
    each /= threads;
    const IntrinsicOperand& operand = parts.operands.at(parameter.name);
    if (operand.spread) continue;
    const std::vector<Expr>& shape = kernel.buffer(operand.buffer).shape;
    for (size_t d = shape.size(); d-- > 0;) {
      if (stride == each && is_const(shape[d], threads) && is_const(operand.at[d], 0))
        parts.dim[parameter.name] = d;
      stride *= as_const(shape[d]).value_or(0);
    }
    if (!parts.dim.contains(parameter.name))
      return make_error(DiagCode::unsupported,
                        "no dimension of '{0}' counts the {1} threads that do '{2}' together",
                        kernel.buffer(operand.buffer).name, threads, intrinsic.name);
  }
  stmt::Loop loop{.var = block.name + ".threads",
                  .extent = Expr(threads),
                  .body = make_sequence({}),
                  .kind = LoopKind::bind};
  for (const DeviceAxis& axis : target.axes)
    if (axis.level == "thread" && loop.axis.empty()) loop.axis = axis.name;
  parts.threads = LoopRef(make_stmt(std::move(loop)));
  return parts;
}

std::vector<Expr> TogetherParts::indices(const std::string& operand, const Expr& thread) const {
  std::vector<Expr> at = operands.at(operand).at;
  if (const auto counts = dim.find(operand); counts != dim.end()) at[counts->second] = thread;
  else
    for (Expr& index : at) index = substitute(index, kEachThread, thread);
  return at;
}

Expected<Stmt> with_group_counts(const Stmt& body) { return Groups().run(body); }

}  // namespace tw::device
