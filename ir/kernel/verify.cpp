// Rules that hold for every kernel, lowered and scheduled. Checking builds also verify after each
// step.
#include <algorithm>
#include <set>

#include "ir/kernel/copies.h"
#include "ir/kernel/in_place.h"
#include "ir/kernel/verify_tokens.h"

namespace tw {

bool is_name(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  bool literal = s == "inf" || s == "nan" || s == "true" || s == "false";
  return !s.empty() && !literal && letter(s[0]) && std::all_of(s.begin(), s.end(), inner);
}

namespace {

constexpr int64_t kMaxTokens = 1 << 12;

bool may_be_extent(const Expr& extent) {
  const int64_t known = as_const(extent).value_or(0);
  return known >= 0 && known <= kMostExtentOfKernels;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  Error run() {
    if (!is_name(kernel_.name)) report("the name is not an identifier");
    std::set<std::string> names;
    for (const std::string& s : kernel_.symbols) {
      declare(names, s, "symbol");
      scope_.push_back({.name = s});
    }
    check_buffers();
    check_queues();
    if (!kernel_.body) report("no body");
    else check(kernel_.body);
    for (const Buffer& b : kernel_.buffers)
      if (!b.per.empty() && !owners_.contains(b.name))
        report("'{0}' is per '{1}', which is no loop", b.name, b.per);
    for (const TokenQueue& q : kernel_.queues)
      if (!q.per.empty() && !owners_.contains(q.name))
        report("token queue '{0}' is per '{1}', which is no loop", q.name, q.per);
    if (diags_.empty()) check_in_place();
    if (diags_.empty())
      verify_tokens(kernel_, [&](const std::string& problem) { report("{0}", problem); });
    return make_error(std::move(diags_));
  }

 private:
  struct Variable {
    std::string name;
    LoopKind kind = LoopKind::serial;
    std::string axis{};
    bool serial_scan = false;
  };

  template <class... Args>
  void report(const char* format, Args&&... args) {
    std::string where = stage_.empty() ? "" : " stage '" + stage_ + "':";
    diags_.push_back({DiagCode::invalid_argument,
                      "kernel @" + kernel_.name + ":" + where + " " +
                          llvm::formatv(format, std::forward<Args>(args)...).str(),
                      {},
                      {}});
  }

  void declare(std::set<std::string>& names, const std::string& name, const char* what) {
    if (!is_name(name)) report("the {0} name '{1}' is not an identifier", what, name);
    if (!names.insert(name).second) report("a second {0} '{1}'", what, name);
  }

  std::string text(const Expr& e) const {
    return to_string(e, [this](BufferId id) {
      bool known = id.valid() && static_cast<size_t>(id.index) < kernel_.buffers.size();
      return known ? kernel_.buffer(id).name : "?" + std::to_string(id.index);
    });
  }
  const Buffer* find(BufferId id) {
    if (id.valid() && static_cast<size_t>(id.index) < kernel_.buffers.size())
      return &kernel_.buffer(id);
    report("there is no buffer number {0}", id.index);
    return nullptr;
  }

  void check_buffers() {
    std::set<std::string> names;
    bool temps = false;
    for (const Buffer& b : kernel_.buffers) {
      declare(names, b.name, "buffer");
      bool temp = b.role == BufferRole::temp;
      if (temps && !temp) report("parameter '{0}' comes after a temp", b.name);
      temps |= temp;
      if (!is_name(b.scope))
        report("the scope '{0}' of '{1}' is not an identifier", b.scope, b.name);
      if (!temp && b.scope != "global")
        report("parameter '{0}' must be in scope global, not {1}", b.name, b.scope);
      for (const Expr& extent : b.shape) {
        check_expr(extent, DType::i64, "an extent of the buffer", false);
        if (!may_be_extent(extent)) report("buffer '{0}' has the extent {1}", b.name, text(extent));
        if (b.scope == "register" && !as_const(extent))
          report("register buffer '{0}' needs constant extents, not {1}", b.name, text(extent));
      }
    }
  }

  void check_in_place() {
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      std::set<std::string> inputs;
      for (const std::string& name : kernel_.buffers[i].in_place) {
        const std::optional<BufferId> input = kernel_.find_buffer(name);
        if (!inputs.insert(name).second)
          report("'{0}' is in place of '{1}' twice", kernel_.buffers[i].name, name);
        else if (!input || !may_be_in_place(kernel_, BufferId{static_cast<int32_t>(i)}, *input))
          report("'{0}' may not be made in place of '{1}'", kernel_.buffers[i].name, name);
      }
    }
  }

  void check_queues() {
    std::set<std::string> names;
    for (const TokenQueue& q : kernel_.queues) {
      declare(names, q.name, "token queue");
      if (q.extent.value_or(1) < 1 || q.extent.value_or(1) > kMaxTokens)
        report("token queue '{0}' has the extent {1}, not 1 to {2}", q.name, *q.extent, kMaxTokens);
      if (q.initial < 0 || q.initial > kMaxTokens)
        report("token queue '{0}' starts with {1} tokens, not 0 to {2}", q.name, q.initial,
               kMaxTokens);
    }
  }

  void check(const Stmt& s) {
    const bool nests = is<stmt::Loop, stmt::If, stmt::Roles>(s);
    if (nests) nesting_.push_back(s.get());
    match(s, [&](const auto& kind) { check_kind(kind); });
    if (nests) nesting_.pop_back();
  }

  void check_kind(const stmt::Sequence& sequence) {
    for (const Stmt& child : sequence.body) check(child);
  }

  void check_kind(const stmt::If& guard) {
    check_expr(guard.condition, DType::boolean, "a condition", true);
    check(guard.body);
  }

  void check_kind(const stmt::Block& block) {
    declare(blocks_, block.name, "block");
    check(block.body);
  }

  void check_kind(const stmt::Prefetch& prefetch) {
    if (const Buffer* b = find(prefetch.buffer)) check_access(*b, prefetch.indices);
    if (prefetch.locality < 0 || prefetch.locality > 3)
      report("a prefetch has the locality {0}, not 0 to 3", prefetch.locality);
  }

  void check_kind(const stmt::Loop& loop) {
    declare(loop_names_, loop.var, "loop");
    if (std::find(kernel_.symbols.begin(), kernel_.symbols.end(), loop.var) !=
        kernel_.symbols.end())
      report("loop '{0}' has the name of a symbol", loop.var);
    check_expr(loop.extent, DType::i64, "a loop's extent", false);
    std::optional<int64_t> extent = as_const(loop.extent);
    if (!may_be_extent(loop.extent)) report("loop '{0}' has the extent {1}", loop.var, *extent);
    bool expanded = loop.kind == LoopKind::vector || loop.kind == LoopKind::unroll;
    if (expanded && !extent)
      report("{0} loop '{1}' needs a constant extent, not {2}", loop_kind_name(loop.kind), loop.var,
             text(loop.extent));
    if (loop.kind == LoopKind::parallel) {
      for (size_t i = scope_.size(); i-- > kernel_.symbols.size();)
        if (!scope_[i].serial_scan) {
          report("parallel loop '{0}' lies inside loop '{1}'", loop.var, scope_[i].name);
          break;
        }
      if (loop.role != AxisRole::spatial)
        report("parallel loop '{0}' is a {1} loop", loop.var, axis_role_name(loop.role));
    }
    if (loop.role == AxisRole::scan && loop.kind != LoopKind::serial &&
        loop.kind != LoopKind::unroll)
      report("scan loop '{0}' is {1}: its iterations run in order", loop.var,
             loop_kind_name(loop.kind));
    if (loop.kind == LoopKind::vthread && !extent)
      report("vthread loop '{0}' needs a constant extent, not {1}", loop.var, text(loop.extent));
    if ((loop.kind == LoopKind::bind) != !loop.axis.empty())
      report("loop '{0}' is {1} and names the axis '{2}'", loop.var, loop_kind_name(loop.kind),
             loop.axis);
    for (const Variable& v : scope_)
      if (!loop.axis.empty() && v.axis == loop.axis)
        report("loops '{0}' and '{1}' are both bound to {2}", v.name, loop.var, loop.axis);
    std::set<std::string> keys;
    for (const Annotation& a : loop.annotations) declare(keys, a.key, "annotation");
    check_private(loop);
    scope_.push_back({loop.var, loop.kind, loop.axis,
                      loop.role == AxisRole::scan && loop.kind == LoopKind::serial});
    check(loop.body);
    scope_.pop_back();
  }

  // Buffers and queues that are "per" a loop may be used only inside it.
  void check_private(const stmt::Loop& loop) {
    auto used_outside = [&](auto uses) {
      bool outside = false;
      std::function<void(const Stmt&)> walk = [&](const Stmt& s) {
        if (as<stmt::Loop>(s) == &loop) return;
        outside |= uses(*s);
        for (const Stmt& child : children(s)) walk(child);
      };
      walk(kernel_.body);
      return outside;
    };
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& b = kernel_.buffers[i];
      if (b.per != loop.var) continue;
      owners_.insert(b.name);
      if (b.role != BufferRole::temp)
        report("parameter '{0}' is per '{1}': only temps can be", b.name, b.per);
      if (!is_concurrent(loop.kind))
        report("'{0}' is per '{1}', which is no bound or virtual thread loop", b.name, b.per);
      if (used_outside(
              [&](const StmtNode& s) { return accesses(s, BufferId{static_cast<int32_t>(i)}); }))
        report("'{0}' is per '{1}' and used outside of that loop", b.name, b.per);
    }
    for (const TokenQueue& q : kernel_.queues) {
      if (q.per != loop.var) continue;
      owners_.insert(q.name);
      if (!is_concurrent(loop.kind))
        report("token queue '{0}' is per '{1}', which is no bound or virtual thread loop", q.name,
               q.per);
      if (used_outside([&](const StmtNode& s) {
            const auto* signal = as<stmt::Signal>(s);
            const auto* wait = as<stmt::Wait>(s);
            return (signal && signal->queue == q.name) || (wait && wait->queue == q.name);
          }))
        report("token queue '{0}' is per '{1}' and used outside of that loop", q.name, q.per);
    }
  }

  static bool accesses(const StmtNode& s, BufferId id) {
    const auto* store = as<stmt::Store>(s);
    bool found = store && store->buffer == id;
    visit_exprs(s, [&](const Expr& e) {
      visit(e, [&](const Expr& n) {
        const auto* load = as<expr::Load>(n);
        found |= load && load->buffer == id;
      });
    });
    return found;
  }

  void check_kind(const stmt::Roles& s) {
    std::set<std::string> names;
    for (const std::string& name : s.names) declare(names, name, "role");
    if (in_roles_) report("roles inside of roles");
    for (const Variable& v : scope_)
      if (v.kind == LoopKind::vector || v.kind == LoopKind::parallel)
        report("roles inside the {0} loop '{1}'", loop_kind_name(v.kind), v.name);
    in_roles_ = true;
    for (const Stmt& role : s.parts) check(role);
    in_roles_ = false;
  }

  void check_kind(const stmt::Signal& s) { check_token("signal", s.queue, s.index, s.count); }
  void check_kind(const stmt::Wait& s) { check_token("wait", s.queue, s.index, s.count); }

  void check_token(const char* what, const std::string& queue, const Expr& index, int64_t count) {
    const TokenQueue* q = kernel_.find_queue(queue);
    if (!q) return report("a {0} of '{1}', which is no token queue", what, queue);
    if (index.defined() != q->extent.has_value())
      report("a {0} of '{1}' {2} an index", what, queue, index.defined() ? "with" : "without");
    if (index.defined()) check_expr(index, DType::i64, "an index", true);
    if (count < 1 || count > kMaxTokens) report("a {0} of {1} tokens of '{2}'", what, count, queue);
  }

  // All threads that meet must reach the barrier, and equally often. So nothing between the loop
  // and the barrier may differ among them.
  void check_kind(const stmt::Barrier& s) {
    bool below = false;
    std::set<std::string> threads;
    auto differs = [&](const Expr& e) {
      bool found = false;
      visit(e, [&](const Expr& n) {
        const auto* variable = as<expr::Var>(n);
        found |= is<expr::Load>(n) || (variable && threads.contains(variable->name));
      });
      return found;
    };
    for (const StmtNode* n : nesting_) {
      if (below && is<stmt::Roles>(*n))
        report("the barrier of '{0}' is in a role, which not all its threads run", s.loop);
      const auto* guard = as<stmt::If>(*n);
      if (below && guard && differs(guard->condition))
        report("the barrier of '{0}' is under a condition that differs between its threads",
               s.loop);
      const auto* loop = as<stmt::Loop>(*n);
      if (!loop) continue;
      if (loop->var == s.loop) below = true;
      if (loop->var == s.loop && loop->kind != LoopKind::bind)
        report("the barrier of '{0}', which is no bound loop", s.loop);
      if (below && loop->var != s.loop && differs(loop->extent))
        report("the barrier of '{0}' is in loop '{1}', whose extent differs between its threads",
               s.loop, loop->var);
      if (below && is_concurrent(loop->kind)) threads.insert(loop->var);
    }
    if (!below) report("the barrier of '{0}', which is no loop around it", s.loop);
  }

  void check_kind(const stmt::Store& s) {
    stage_ = s.label;
    declare(labels_, s.label, "stage");
    if (const Buffer* b = find(s.buffer)) {
      if (b->role != BufferRole::output && b->role != BufferRole::temp)
        report("'{0}' may not be written", b->name);
      check_access(*b, s.indices);
      check_expr(s.value, b->dtype, "the value", true);
      if (s.init.defined()) check_expr(s.init, b->dtype, "the init", true);
      if (s.combiner != Combiner::none && b->dtype == DType::boolean)
        report("bool values have no combiner");
    }
    if (s.init.defined() && s.combiner == Combiner::none) report("an init without a combiner");
    if (s.where.defined()) check_expr(s.where, DType::boolean, "the where condition", true);
    if (s.async &&
        (s.combiner != Combiner::none || s.where.defined() || !copied_load(s.value).defined()))
      report("an asynchronous store only copies, or stores zeros");
    stage_.clear();
  }

  void check_access(const Buffer& b, const std::vector<Expr>& indices) {
    if (indices.size() != b.shape.size())
      report("'{0}' has {1} dimensions and is accessed with {2} indices", b.name, b.shape.size(),
             indices.size());
    for (const Expr& index : indices) {
      check_expr(index, DType::i64, "an index", true);
      if (b.scope == "register") check_register_index(b, index);
    }
  }

  void check_register_index(const Buffer& b, const Expr& index) {
    visit(index, [&](const Expr& e) {
      if (is<expr::Load>(e)) report("register buffer '{0}' is indexed by a load", b.name);
      const auto* variable = as<expr::Var>(e);
      if (!variable) return;
      for (const Variable& v : scope_)
        if (v.name == variable->name && v.kind != LoopKind::unroll && v.kind != LoopKind::vector)
          report(
              "register buffer '{0}' is indexed by '{1}', which is neither unrolled nor vectorized",
              b.name, v.name);
    });
  }

  // Indices inside a load are checked with that load.
  void check_expr(const Expr& e, DType type, const char* what, bool loads) {
    if (!e.defined()) return report("{0} is missing", what);
    if (e.type() != type)
      report("{0} {1} is {2}, not {3}", what, text(e), dtype_name(e.type()), dtype_name(type));
    check_uses(e, loads);
  }

  void check_uses(const Expr& e, bool loads) {
    if (const auto* variable = as<expr::Var>(e)) {
      bool found = std::any_of(scope_.begin(), scope_.end(),
                               [&](const Variable& v) { return v.name == variable->name; });
      if (!found) report("variable '{0}' is not in scope", variable->name);
      if (e.type() != DType::i64)
        report("variable '{0}' is {1}, not i64", variable->name, dtype_name(e.type()));
    }
    if (const auto* load = as<expr::Load>(e)) {
      if (!loads) report("{0} may not be loaded in an extent", text(e));
      if (const Buffer* b = find(load->buffer)) {
        if (b->dtype != e.type())
          report("'{0}' holds {1} and is loaded as {2}", b->name, dtype_name(b->dtype),
                 dtype_name(e.type()));
        check_access(*b, load->indices);
      }
      return;
    }
    for_each_operand(*e, [&](const Expr& operand) { check_uses(operand, loads); });
  }

  const Kernel& kernel_;
  std::vector<Diag> diags_;
  std::vector<Variable> scope_;
  std::vector<const StmtNode*> nesting_;
  std::set<std::string> loop_names_, labels_, blocks_, owners_;
  bool in_roles_ = false;
  std::string stage_;
};

}  // namespace

Error verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace tw
