#include "ir/kernel/verify_tokens.h"

#include <algorithm>
#include <map>
#include <set>

namespace tw {
namespace {

constexpr int64_t kMaxSteps = 1 << 18;  // statements counted

bool known(const Expr& e) {
  bool good = true;
  visit(e, [&](const Expr& n) { good &= n->kind != ExprKind::load; });
  return good;
}

// Runs loops and conditions, and counts the tokens. Gives up where they depend on values or
// symbols, or are too many.
class Balance {
 public:
  Balance(const Kernel& kernel, const std::function<void(const std::string&)>& report)
      : kernel_(kernel), report_(report) {}

  void run() {
    walk(kernel_.body);
    check("");
  }

 private:
  std::optional<int64_t> value(const Expr& e) {
    bool good = known(e);
    visit(e, [&](const Expr& n) { good &= n->kind != ExprKind::var || vars_.contains(n->name); });
    if (!good) given_up_ = true;
    if (given_up_) return std::nullopt;
    return eval_int(e, [&](std::string_view name) { return vars_.find(name)->second; });
  }

  void walk(const Stmt& s) {
    if (++steps_ > kMaxSteps) given_up_ = true;
    if (given_up_ || !tokens_in(s)) return;
    switch (s->kind) {
      case StmtKind::loop: {
        const std::optional<int64_t> extent = value(s->extent);
        for (int64_t i = 0; extent && i < *extent && !given_up_; ++i) {
          vars_[s->var] = i;
          walk(s->body[0]);
          if (is_concurrent(s->loop_kind)) check(s->var);
        }
        vars_.erase(s->var);
        return;
      }
      case StmtKind::if_then:
        if (value(s->condition).value_or(0)) walk(s->body[0]);
        return;
      case StmtKind::signal:
      case StmtKind::wait: {
        const std::optional<int64_t> index = s->indices.empty() ? 0 : value(s->indices[0]);
        if (index)
          counts_[{s->label, *index}] += s->kind == StmtKind::signal ? s->count : -s->count;
        return;
      }
      case StmtKind::sequence:
      case StmtKind::roles:
      case StmtKind::block:
        for (const Stmt& child : s->body) walk(child);
        return;
      case StmtKind::store:
      case StmtKind::barrier:
      case StmtKind::prefetch: return;
    }
    TW_UNREACHABLE("bad statement");
  }

  bool tokens_in(const Stmt& s) {
    auto found = has_tokens_.find(s.get());
    if (found != has_tokens_.end()) return found->second;
    bool has = s->kind == StmtKind::signal || s->kind == StmtKind::wait;
    for (const Stmt& child : s->body) has |= tokens_in(child);
    return has_tokens_[s.get()] = has;
  }

  // At the end of an iteration of the loop, or of the kernel.
  void check(const std::string& loop) {
    if (given_up_) return;
    for (const TokenQueue& q : kernel_.queues) {
      if (q.per != loop || reported_.contains(q.name)) continue;
      for (auto& [place, count] : counts_) {
        if (place.first != q.name) continue;
        const std::string element = q.extent ? "[" + std::to_string(place.second) + "]" : "";
        if (place.second < 0 || place.second >= q.extent.value_or(1))
          problem(q.name,
                  "token queue '" + q.name + "' has no element " + std::to_string(place.second));
        else if (count)
          problem(q.name, "token queue '" + q.name + element + "' is given " +
                              std::to_string(std::abs(count)) + (count > 0 ? " more" : " fewer") +
                              " than are taken");
        count = 0;
      }
    }
  }
  void problem(const std::string& queue, const std::string& text) {
    if (reported_.insert(queue).second) report_(text);
  }

  const Kernel& kernel_;
  const std::function<void(const std::string&)>& report_;
  std::map<std::string, int64_t, std::less<>> vars_;
  std::map<std::pair<std::string, int64_t>, int64_t> counts_;
  std::map<const StmtNode*, bool> has_tokens_;
  std::set<std::string> reported_;
  int64_t steps_ = 0;
  bool given_up_ = false;
};

struct Role {
  std::set<std::string> gives, takes;
  std::map<int32_t, bool> writes;  // the same places again, after a token was given
  std::set<int32_t> reads;
};

bool gives_tokens(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& n) { found |= n->kind == StmtKind::signal; });
  return found;
}

// True when other iterations of the loop lead to other places.
bool uses_beyond_modulo(const Expr& e, const std::string& loop) {
  if (e->kind == ExprKind::binary && e->binary == BinaryOp::floor_mod) return false;
  if (e->kind == ExprKind::var) return e->name == loop;
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const Expr& arg) { return uses_beyond_modulo(arg, loop); });
}

// `rounds`: the loops around that give a token in each iteration.
void collect(const Stmt& s, std::vector<std::string> rounds, Role& role) {
  const bool repeats = s->kind == StmtKind::loop && !is_concurrent(s->loop_kind) &&
                       as_const(s->extent).value_or(2) > 1;
  if (repeats && gives_tokens(s)) rounds.push_back(s->var);
  if (s->kind == StmtKind::signal) role.gives.insert(s->label);
  if (s->kind == StmtKind::wait) role.takes.insert(s->label);
  if (s->kind == StmtKind::store) {
    role.writes[s->buffer.index] |= std::any_of(
        rounds.begin(), rounds.end(), [&](const std::string& loop) {
          return std::none_of(s->indices.begin(), s->indices.end(),
                              [&](const Expr& e) { return uses_beyond_modulo(e, loop); });
        });
  }
  for (const Expr& e : {s->extent, s->condition, s->value, s->where, s->init})
    if (e.defined())
      visit(e, [&](const Expr& n) {
        if (n->kind == ExprKind::load) role.reads.insert(n->buffer.index);
      });
  for (const Stmt& child : s->body) collect(child, rounds, role);
}

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

void check_roles(const Kernel& kernel, const StmtNode& s,
                 const std::function<void(const std::string&)>& report) {
  std::vector<Role> roles(s.body.size());
  for (size_t r = 0; r < roles.size(); ++r) collect(s.body[r], {}, roles[r]);
  for (size_t w = 0; w < roles.size(); ++w) {
    for (const auto& [buffer, again] : roles[w].writes) {
      const std::string& name = kernel.buffers[static_cast<size_t>(buffer)].name;
      for (size_t r = 0; r < roles.size(); ++r) {
        if (r == w) continue;
        if (r > w && roles[r].writes.contains(buffer) && !meet(roles[w].gives, roles[r].takes) &&
            !meet(roles[r].gives, roles[w].takes))
          report("roles '" + s.names[w] + "' and '" + s.names[r] + "' both write '" + name +
                 "' with no token between them");
        if (!roles[r].reads.contains(buffer)) continue;
        if (!meet(roles[w].gives, roles[r].takes))
          report("role '" + s.names[r] + "' reads '" + name + "' with no token from role '" +
                 s.names[w] + "', which writes it");
        if (again && !meet(roles[r].gives, roles[w].takes) &&
            kernel.buffers[static_cast<size_t>(buffer)].role == BufferRole::temp)
          report("role '" + s.names[w] + "' writes '" + name + "' again with no token from role '" +
                 s.names[r] + "', which reads it");
      }
    }
  }
}

}  // namespace

void verify_tokens(const Kernel& kernel, const std::function<void(const std::string&)>& report) {
  if (!kernel.queues.empty()) Balance(kernel, report).run();
  visit(kernel.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::roles) check_roles(kernel, *s, report);
  });
}

}  // namespace tw
