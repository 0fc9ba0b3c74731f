// What every kernel must satisfy; passes run it after each step in checking builds.
#include <algorithm>
#include <set>

#include "ir/kernel/kernel.h"

namespace tw {
namespace {

bool is_name(const std::string& s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  bool literal = s == "inf" || s == "nan" || s == "true" || s == "false";
  return !s.empty() && !literal && letter(s[0]) && std::all_of(s.begin(), s.end(), inner);
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  Error run() {
    if (!is_name(kernel_.name)) report("the name is not an identifier");
    std::set<std::string> names;
    for (const std::string& s : kernel_.symbols) {
      declare(names, s, "symbol");
      scope_.push_back({s, LoopKind::serial, false});
    }
    check_buffers();
    if (!kernel_.body) report("no body");
    else check(kernel_.body);
    return make_error(std::move(diags_));
  }

 private:
  struct Variable { std::string name; LoopKind kind; bool serial_scan = false; };

  template <class... Args>
  void report(const char* format, Args&&... args) {
    std::string where = stage_.empty() ? "" : " stage '" + stage_ + "':";
    diags_.push_back({DiagCode::invalid_argument,
                      "kernel @" + kernel_.name + ":" + where + " " + llvm::formatv(format, std::forward<Args>(args)...).str(), {}, {}});
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
    if (id.valid() && static_cast<size_t>(id.index) < kernel_.buffers.size()) return &kernel_.buffer(id);
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
      if (!is_name(b.scope)) report("the scope '{0}' of '{1}' is not an identifier", b.scope, b.name);
      if (!temp && b.scope != "global") report("parameter '{0}' must be in scope global, not {1}", b.name, b.scope);
      for (const Expr& extent : b.shape) {
        check_expr(extent, DType::i64, "an extent of the buffer", false);
        if (as_const(extent).value_or(0) < 0) report("buffer '{0}' has the extent {1}", b.name, text(extent));
        if (b.scope == "register" && !as_const(extent)) report("register buffer '{0}' needs constant extents, not {1}", b.name, text(extent));
      }
    }
  }

  void check(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::block:
        for (const Stmt& child : s->body) check(child);
        return;
      case StmtKind::loop: return check_loop(*s);
      case StmtKind::if_then:
        check_expr(s->condition, DType::boolean, "a condition", true);
        return check(s->body[0]);
      case StmtKind::store: return check_store(*s);
    }
    TW_UNREACHABLE("bad statement");
  }

  void check_loop(const StmtNode& loop) {
    declare(loop_names_, loop.var, "loop");
    if (std::find(kernel_.symbols.begin(), kernel_.symbols.end(), loop.var) != kernel_.symbols.end())
      report("loop '{0}' has the name of a symbol", loop.var);
    check_expr(loop.extent, DType::i64, "a loop's extent", false);
    std::optional<int64_t> extent = as_const(loop.extent);
    if (extent.value_or(0) < 0) report("loop '{0}' has the extent {1}", loop.var, *extent);
    bool expanded = loop.loop_kind == LoopKind::vector || loop.loop_kind == LoopKind::unroll;
    if (expanded && !extent) report("{0} loop '{1}' needs a constant extent, not {2}", loop_kind_name(loop.loop_kind), loop.var, text(loop.extent));
    if (loop.loop_kind == LoopKind::parallel) {
      for (size_t i = scope_.size(); i-- > kernel_.symbols.size();)
        if (!scope_[i].serial_scan) {
          report("parallel loop '{0}' lies inside loop '{1}'", loop.var, scope_[i].name);
          break;
        }
      if (loop.role != AxisRole::spatial) report("parallel loop '{0}' is a {1} loop", loop.var, axis_role_name(loop.role));
    }
    if (loop.role == AxisRole::scan && loop.loop_kind != LoopKind::serial && loop.loop_kind != LoopKind::unroll)
      report("scan loop '{0}' is {1}: its iterations run in order", loop.var, loop_kind_name(loop.loop_kind));
    scope_.push_back({loop.var, loop.loop_kind, loop.role == AxisRole::scan && loop.loop_kind == LoopKind::serial});
    check(loop.body[0]);
    scope_.pop_back();
  }

  void check_store(const StmtNode& s) {
    stage_ = s.label;
    declare(labels_, s.label, "stage");
    if (const Buffer* b = find(s.buffer)) {
      if (b->role != BufferRole::output && b->role != BufferRole::temp) report("'{0}' may not be written", b->name);
      check_access(*b, s.indices);
      check_expr(s.value, b->dtype, "the value", true);
      if (s.init.defined()) check_expr(s.init, b->dtype, "the init", true);
      if (s.combiner != Combiner::none && b->dtype == DType::boolean) report("bool values have no combiner");
    }
    if (s.init.defined() && s.combiner == Combiner::none) report("an init without a combiner");
    if (s.where.defined()) check_expr(s.where, DType::boolean, "the where condition", true);
    stage_.clear();
  }

  void check_access(const Buffer& b, const std::vector<Expr>& indices) {
    if (indices.size() != b.shape.size()) report("'{0}' has {1} dimensions and is accessed with {2} indices", b.name, b.shape.size(), indices.size());
    for (const Expr& index : indices) {
      check_expr(index, DType::i64, "an index", true);
      if (b.scope == "register") check_register_index(b, index);
    }
  }

  void check_register_index(const Buffer& b, const Expr& index) {
    visit(index, [&](const Expr& e) {
      if (e->kind == ExprKind::load) report("register buffer '{0}' is indexed by a load", b.name);
      if (e->kind != ExprKind::var) return;
      for (const Variable& v : scope_)
        if (v.name == e->name && v.kind != LoopKind::unroll && v.kind != LoopKind::vector)
          report("register buffer '{0}' is indexed by '{1}', which is neither unrolled nor vectorized", b.name, v.name);
    });
  }

  // Nested indices are checked by the load that they belong to.
  void check_expr(const Expr& e, DType type, const char* what, bool loads) {
    if (!e.defined()) return report("{0} is missing", what);
    if (e.type() != type) report("{0} {1} is {2}, not {3}", what, text(e), dtype_name(e.type()), dtype_name(type));
    check_uses(e, loads);
  }

  void check_uses(const Expr& e, bool loads) {
    if (e->kind == ExprKind::var) {
      bool found = std::any_of(scope_.begin(), scope_.end(), [&](const Variable& v) { return v.name == e->name; });
      if (!found) report("variable '{0}' is not in scope", e->name);
      if (e.type() != DType::i64) report("variable '{0}' is {1}, not i64", e->name, dtype_name(e.type()));
    }
    if (e->kind == ExprKind::load) {
      if (!loads) report("{0} may not be loaded in an extent", text(e));
      if (const Buffer* b = find(e->buffer)) {
        if (b->dtype != e.type()) report("'{0}' holds {1} and is loaded as {2}", b->name, dtype_name(b->dtype), dtype_name(e.type()));
        check_access(*b, e->args);
      }
      return;
    }
    for (const Expr& arg : e->args) check_uses(arg, loads);
  }

  const Kernel& kernel_;
  std::vector<Diag> diags_;
  std::vector<Variable> scope_;
  std::set<std::string> loop_names_, labels_;
  std::string stage_;
};

}  // namespace

Error verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace tw
