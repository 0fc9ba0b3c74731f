#include "ir/kernel/verify_tokens.h"

#include <algorithm>
#include <map>
#include <set>

namespace tw {
namespace {

constexpr int64_t kMaxSteps = 1 << 18;  // limit of counted statements

bool known(const Expr& e) {
  bool good = true;
  visit(e, [&](const Expr& n) { good &= !is<expr::Load>(n); });
  return good;
}

// Follows loops and conditions and counts the tokens. Gives up where they depend on data or
// symbols, or take too many steps.
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
    visit(e, [&](const Expr& n) {
      const auto* variable = as<expr::Var>(n);
      good &= !variable || vars_.contains(variable->name);
    });
    if (!good) given_up_ = true;
    if (given_up_) return std::nullopt;
    return eval_int(e, [&](std::string_view name) { return vars_.find(name)->second; });
  }

  void walk(const Stmt& s) {
    if (++steps_ > kMaxSteps) given_up_ = true;
    if (given_up_ || !tokens_in(s)) return;
    match(
        s,
        [&](const stmt::Loop& loop) {
          const std::optional<int64_t> extent = value(loop.extent);
          for (int64_t i = 0; extent && i < *extent && !given_up_; ++i) {
            vars_[loop.var] = i;
            walk(loop.body);
            if (is_concurrent(loop.kind)) check(loop.var);
          }
          vars_.erase(loop.var);
        },
        [&](const stmt::If& guard) {
          if (value(guard.condition).value_or(0)) walk(guard.body);
        },
        [&](const stmt::Signal& signal) { add(signal.queue, signal.index, signal.count); },
        [&](const stmt::Wait& wait) { add(wait.queue, wait.index, -wait.count); },
        [&](const auto&) {
          for (const Stmt& child : children(s)) walk(child);
        });
  }

  void add(const std::string& queue, const Expr& index, int64_t tokens) {
    if (const auto at = index.defined() ? value(index) : 0) counts_[{queue, *at}] += tokens;
  }

  bool tokens_in(const Stmt& s) {
    auto found = has_tokens_.find(s.get());
    if (found != has_tokens_.end()) return found->second;
    bool has = is<stmt::Signal, stmt::Wait>(s);
    for (const Stmt& child : children(s)) has |= tokens_in(child);
    return has_tokens_[s.get()] = has;
  }

  // Checks the counts at the end of an iteration of the loop, or of the kernel (loop "").
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
  // value: true if it writes the same places again after giving a token
  std::map<int32_t, bool> writes;
  std::set<int32_t> reads;
};

bool gives_tokens(const Stmt& s) {
  bool found = false;
  visit(s, [&](const Stmt& n) { found |= is<stmt::Signal>(n); });
  return found;
}

// True: other iterations of the loop lead to other places.
bool uses_beyond_modulo(const Expr& e, const std::string& loop) {
  if (as_binary(e, BinaryOp::floor_mod)) return false;
  return is_var(e, loop) ||
         any_operand(*e, [&](const Expr& operand) { return uses_beyond_modulo(operand, loop); });
}

// rounds: the loops around that give a token in each iteration
void collect(const Stmt& s, std::vector<std::string> rounds, Role& role) {
  if (const auto* loop = as<stmt::Loop>(s)) {
    const bool repeats = !is_concurrent(loop->kind) && as_const(loop->extent).value_or(2) > 1;
    if (repeats && gives_tokens(s)) rounds.push_back(loop->var);
  }
  if (const auto* signal = as<stmt::Signal>(s)) role.gives.insert(signal->queue);
  if (const auto* wait = as<stmt::Wait>(s)) role.takes.insert(wait->queue);
  if (const auto* store = as<stmt::Store>(s))
    role.writes[store->buffer.index] |= std::ranges::any_of(rounds, [&](const std::string& loop) {
      return std::ranges::none_of(store->indices,
                                  [&](const Expr& e) { return uses_beyond_modulo(e, loop); });
    });
  visit_exprs(*s, [&](const Expr& e) {
    visit(e, [&](const Expr& n) {
      if (const auto* load = as<expr::Load>(n)) role.reads.insert(load->buffer.index);
    });
  });
  for (const Stmt& child : children(s)) collect(child, rounds, role);
}

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

void check_roles(const Kernel& kernel, const stmt::Roles& s,
                 const std::function<void(const std::string&)>& report) {
  std::vector<Role> roles(s.parts.size());
  for (size_t r = 0; r < roles.size(); ++r) collect(s.parts[r], {}, roles[r]);
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
    if (const auto* roles = as<stmt::Roles>(s)) check_roles(kernel, *roles, report);
  });
}

}  // namespace tw
