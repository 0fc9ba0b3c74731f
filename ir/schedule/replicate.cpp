// replicate m t 4 [i % 4] -> a b
//   temp m: f32[8], t: f32[8]                 temp m: f32[8, 4], t: f32[8, 4]
//   for r in 8 {                              for r in 8 { for a in 4 {
//     m: m[r] = max(t[r], x[r])                 m: m[r, a] = max(t[r, a], x[r])
//   }                                         } }
//   for s in 8 { t: t[s] = m[s] }      ->     for s in 8 { for b in 4 { t: t[s, b] = m[s, b] } }
//   for j in 8 { for i in 64 {                for j in 8 { for i in 64 {
//     y: y[j, i] = x[i] - m[j]                  y: y[j, i] = x[i] - m[j, i % 4]
//   } }                                       } }
//
// Keeps several equal copies of temps. Their last dimension counts the copies, and each stage that
// writes one of the temps gets a loop over them, inside its other spatial loops. It computes a copy
// from the copies of that number. Other stages that read the temps read the copy that the step
// says, in the order of the stages. Threads can so have the numbers that they share in registers of
// their own. Legal: each stage that writes a temp is alone in its nest, from its last spatial loop
// on. The other stages' numbers of copies are shown to exist. No condition or extent reads a temp.
#include <algorithm>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

class Replication {
 public:
  Replication(const Kernel& kernel, const step::Replicate& s) : s_(s), out_(kernel) {}

  Expected<Kernel> run() {
    if (s_.copies < 1) return illegal("{0} copies are no number of them", s_.copies);
    for (const std::string& name : s_.buffers) TW_TRY(add(name));
    TW_TRY(check_loads());
    size_t writers = 0, readers = 0;
    for (const StoreRef& store : stores_of(out_.body)) {
      if (is_copied(store->buffer)) TW_TRY(write_copies(store->label, writers++));
      else if (reads_copied(store)) TW_TRY(read_copy(store->label, readers++));
    }
    if (writers != s_.loops.size() || readers != s_.copy.size())
      return illegal(
          "{0} stages write the temps and {1} others read them, but {2} loops and {3} copies are "
          "named",
          writers, readers, s_.loops.size(), s_.copy.size());
    return std::move(out_);
  }

 private:
  Error add(const std::string& name) {
    TW_ASSIGN(const BufferId id, buffer_named(out_, name));
    Buffer& buffer = out_.buffer(id);
    if (buffer.role != BufferRole::temp)
      return illegal("'{0}' is a parameter of the kernel: only temps have copies", name);
    if (is_copied(id)) return illegal("'{0}' is named twice", name);
    buffer.shape.emplace_back(s_.copies);
    buffers_.push_back(id);
    return Error::success();
  }

  bool is_copied(BufferId id) const { return std::ranges::find(buffers_, id) != buffers_.end(); }
  template <class Reader>  // an expression or a statement
  bool reads_copied(const Reader& reader) const {
    return std::ranges::any_of(buffers_, [&](BufferId id) { return reads(reader, id); });
  }

  // Requires that only stores read the temps.
  Error check_loads() const {
    Error error = Error::success();
    visit(out_.body, [&](const Stmt& s) {
      if (error || is<stmt::Store>(s)) return;
      bool found = is<stmt::Prefetch>(s) && is_copied(get<stmt::Prefetch>(s).buffer);
      visit_exprs(*s, [&](const Expr& e) { found |= reads_copied(e); });
      if (found) error = illegal("a prefetch, a condition or an extent reads one of the temps");
    });
    return error;
  }

  stmt::Store at_copy(const stmt::Store& store, const Expr& number) const {
    const Stmt mapped = rewrite_exprs(make_store(store), [&](const Expr& whole) {
      return rewrite(whole, [&](const Expr& e) {
        const auto* load = as<expr::Load>(e);
        if (!load || !is_copied(load->buffer)) return Expr();
        std::vector<Expr> at = load->indices;
        at.push_back(number);
        return tw::load(load->buffer, e->type, std::move(at));
      });
    });
    return get<stmt::Store>(mapped);
  }

  Error write_copies(const std::string& label, size_t number) {
    if (number >= s_.loops.size()) return Error::success();  // reported at the end
    const std::string& name = s_.loops[number];
    TW_TRY(check_new_loop(out_, name));
    TW_ASSIGN(const std::vector<Stmt> path, stage_path(out_, label));
    size_t at = own_statement(path);
    for (size_t i = at; i + 1 < path.size(); ++i) {
      const auto* loop = as<stmt::Loop>(path[i]);
      if (!loop || loop->kind != LoopKind::serial || loop->body != path[i + 1])
        return illegal("the nest of stage '{0}' is not a perfect nest of serial loops", label);
      if (loop->role == AxisRole::scan)
        return illegal("stage '{0}' runs again and again alone, in scan loop '{1}'", label,
                       loop->var);
      if (loop->role == AxisRole::spatial) at = i + 1;
    }
    stmt::Store store = at_copy(get<stmt::Store>(path.back()), var(name));
    if (store.async) return illegal("the copies of stage '{0}' are asynchronous", label);
    store.indices.push_back(var(name));
    const Stmt inner = replace(path[at], path.back(), make_store(std::move(store)));
    out_.body = replace(out_.body, path[at], make_loop(name, Expr(s_.copies), inner));
    return Error::success();
  }

  Error read_copy(const std::string& label, size_t number) {
    if (number >= s_.copy.size()) return Error::success();  // reported at the end
    const Expr& copy = s_.copy[number];
    TW_ASSIGN(const std::vector<Stmt> path, stage_path(out_, label));
    const Ranges ranges = ranges_of(out_, path);
    bool known = copy.type() == DType::i64 && !has_load(copy);
    visit(copy, [&](const Expr& e) {
      if (const std::string* name = var_name(e)) known &= ranges.contains(*name);
    });
    if (!known || !can_prove(le(Expr(0), copy), ranges) ||
        !can_prove(lt(copy, Expr(s_.copies)), ranges))
      return illegal("it cannot be shown that '{0}' is one of {1} copies at stage '{2}'",
                     to_string(copy), s_.copies, label);
    const Stmt store = make_store(at_copy(get<stmt::Store>(path.back()), copy));
    out_.body = replace(out_.body, path.back(), store);
    return Error::success();
  }

  const step::Replicate& s_;
  Kernel out_;
  std::vector<BufferId> buffers_;
};

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Replicate& s) {
  return Replication(kernel, s).run();
}

}  // namespace tw::sched
