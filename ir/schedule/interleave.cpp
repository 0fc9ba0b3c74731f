#include "ir/schedule/interleave.h"

#include "ir/schedule/nest.h"

namespace tw {

namespace {

class Interleaver {
 public:
  explicit Interleaver(const stmt::Loop& thread) : thread_(thread) {}

  Stmt spread(const Stmt& s) {
    if (is_common(s)) return with_body(s, spread(body_of(s)));
    const auto* sequence = as<stmt::Sequence>(s);
    if (!sequence) return one(s);
    std::vector<Stmt> body;
    for (const Stmt& child : sequence->body) body.push_back(spread(child));
    return make_sequence(std::move(body));
  }

 private:
  // True: all threads run the loop or the if in the same way.
  bool is_common(const Stmt& s) const {
    if (const auto* loop = as<stmt::Loop>(s))
      return !uses_var(loop->extent, thread_.var) &&
             (loop->kind == LoopKind::serial || loop->kind == LoopKind::unroll ||
              is_concurrent(loop->kind));
    const auto* guard = as<stmt::If>(s);
    return guard && !uses_var(guard->condition, thread_.var) && !sched::has_load(guard->condition);
  }

  Stmt one(const Stmt& s) {
    const std::string name = copies_++ == 0 ? thread_.var
                                            : thread_.var + "." + std::to_string(copies_ - 1);
    return make_loop(name, thread_.extent, substitute(s, thread_.var, var(name)), LoopKind::unroll);
  }

  const stmt::Loop& thread_;
  int copies_ = 0;
};

}  // namespace

Kernel interleave_virtual_threads(const Kernel& kernel) {
  Kernel out = kernel;
  for (;;) {
    const std::vector<Stmt> path = sched::find_path(out.body, [](const StmtNode& s) {
      const auto* loop = as<stmt::Loop>(s);
      return loop && loop->kind == LoopKind::vthread;
    });
    if (path.empty()) return out;
    const LoopRef thread(path.back());
    Stmt body = thread->body;
    for (size_t b = 0; b < out.buffers.size(); ++b) {
      Buffer& buffer = out.buffers[b];
      if (buffer.per != thread->var) continue;
      buffer.per.clear();
      buffer.shape.insert(buffer.shape.begin(), thread->extent);
      body = sched::map_accesses(body, BufferId{static_cast<int32_t>(b)},
                                 [&](std::vector<Expr> indices) {
                                   indices.insert(indices.begin(), var(thread->var));
                                   return indices;
                                 });
    }
    out.body = sched::replace(out.body, thread, Interleaver(*thread).spread(body));
  }
}

}  // namespace tw
