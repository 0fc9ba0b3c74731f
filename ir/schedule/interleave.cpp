#include "ir/schedule/interleave.h"

#include "ir/schedule/nest.h"

namespace tw {

namespace {

class Interleaver {
 public:
  explicit Interleaver(const StmtNode& thread) : thread_(thread) {}

  Stmt spread(const Stmt& s) {
    const bool loop = s->kind == StmtKind::loop && !uses_var(s->extent, thread_.var) &&
                      (s->loop_kind == LoopKind::serial || s->loop_kind == LoopKind::unroll ||
                       is_concurrent(s->loop_kind));
    if (loop || (s->kind == StmtKind::if_then && !uses_var(s->condition, thread_.var) &&
                 !sched::has_load(s->condition)))
      return with_body(*s, spread(s->body[0]));
    if (s->kind != StmtKind::sequence) return one(s);
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(spread(child));
    return make_sequence(std::move(body));
  }

 private:
  Stmt one(const Stmt& s) {
    const std::string name = copies_++ == 0 ? thread_.var
                                            : thread_.var + "." + std::to_string(copies_ - 1);
    return make_loop(name, thread_.extent, substitute(s, thread_.var, var(name)), LoopKind::unroll);
  }

  const StmtNode& thread_;
  int copies_ = 0;
};

}  // namespace

Kernel interleave_virtual_threads(const Kernel& kernel) {
  Kernel out = kernel;
  for (;;) {
    const std::vector<Stmt> path = sched::find_path(out.body, [](const StmtNode& s) {
      return s.kind == StmtKind::loop && s.loop_kind == LoopKind::vthread;
    });
    if (path.empty()) return out;
    const Stmt& thread = path.back();
    Stmt body = thread->body[0];
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
