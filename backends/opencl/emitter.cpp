#include "backends/opencl/emitter.h"

#include <algorithm>

#include "ir/kernel/guards.h"
#include "ir/schedule/interleave.h"

namespace tw::opencl {
namespace {

constexpr int64_t kMaxCopies = 64;        // of an unrolled body

std::string id_of(const char* what, int dim) { return std::string("get_") + what + "_id(" + std::to_string(dim) + ")"; }

}  // namespace

Emitter::Emitter(const Kernel& kernel, const Target& target, const LaunchPlan& plan, const Ranges& ranges)
    : kernel_(kernel), target_(target), plan_(plan), ranges_(ranges), layout_(workspace_layout(kernel)) {
  std::function<void(const Stmt&, int)> walk = [&](const Stmt& s, int depth) {
    if (s->kind == StmtKind::loop) depths_[s->var] = ++depth;
    for (const Stmt& child : s->body) walk(child, depth);
  };
  walk(plan.body, 0);
}

Expected<std::string> Emitter::emit(const std::string& function, OpenClLaunch& launch) {
  launch.function = names_.fresh(function);
  launch.local_bytes = plan_.local_bytes;
  for (size_t d = 0; d < 3; ++d) {
    launch.local[d] = Expr(plan_.items[d]);
    launch.global[d] = simplify(plan_.groups[d] * Expr(plan_.items[d]), ranges_);
  }
  std::string parameters;
  const auto parameter = [&](OpenClArgument::Kind kind, size_t index, const std::string& text) {
    launch.arguments.push_back({kind, static_cast<int>(index)});
    parameters += (parameters.empty() ? "" : ", ") + text;
  };
  bool workspace = false;
  for (const auto& [index, place] : plan_.spaces) {
    const Buffer& buffer = kernel_.buffers[static_cast<size_t>(index)];
    buffers_[index] = names_.fresh(buffer.name);
    workspace |= place == Space::workspace;
    if (place != Space::parameter) continue;
    const std::string constant = buffer.role == BufferRole::output ? "" : "const ";
    parameter(OpenClArgument::Kind::buffer, static_cast<size_t>(index),
              "__global " + constant + "uchar* " + buffers_[index] + "_mem, long " + buffers_[index] + "_at");
  }
  if (workspace) parameter(OpenClArgument::Kind::workspace, 0, "__global uchar* tw_work, long tw_work_at");
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    vars_[kernel_.symbols[i]] = {names_.fresh(kernel_.symbols[i])};
    parameter(OpenClArgument::Kind::symbol, i, "long " + vars_[kernel_.symbols[i]].text);
  }
  std::string group;
  if (plan_.work_items() > 0) {
    for (const int64_t n : plan_.items) group += (group.empty() ? "" : ", ") + std::to_string(n);
    line("__kernel __attribute__((reqd_work_group_size(" + group + ")))");
  }
  open("void " + launch.function + "(" + parameters + ")");
  declare_buffers();
  emit_stmt(plan_.body);
  close();
  if (!problem_.empty()) return make_error(DiagCode::unsupported, "{0}", problem_);
  return std::move(text_);
}

void Emitter::declare_buffers() {
  for (const auto& [index, place] : plan_.spaces) {
    const Buffer& buffer = kernel_.buffers[static_cast<size_t>(index)];
    const std::string& name = buffers_[index];
    std::string type = storage_type(buffer.dtype);
    if (place == Space::parameter) {
      const std::string pointer = std::string("__global ") + (buffer.role == BufferRole::output ? "" : "const ") + type + "*";
      line(pointer + " " + name + " = (" + pointer + ")(" + name + "_mem + " + name + "_at);");
    } else if (place == Space::workspace) {
      const Text at = value(layout_.offsets[static_cast<size_t>(index)]);
      line("__global " + type + "* " + name + " = (__global " + type + "*)(tw_work + tw_work_at + " + at.text + ");");
    } else {
      int64_t count = 1;
      for (const Expr& extent : buffer.shape) count *= *as_const(extent);
      line(std::string(place == Space::shared ? "__local " : "") + type + " " + name + "[" + std::to_string(std::max<int64_t>(count, 1)) + "];");
    }
  }
}

void Emitter::barrier() { line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"); }

// What keeps all but one work-item out, of the dimensions that no loop around or inside runs over.
std::vector<std::string> Emitter::absent_items(const Stmt& s) const {
  std::array<bool, 3> items = bound_items_, groups = bound_groups_;
  visit(s, [&](const Stmt& n) {
    if (n->kind != StmtKind::loop || n->loop_kind != LoopKind::bind) return;
    if (const auto place = axis_place(target_, n->axis)) (place->group ? groups : items)[static_cast<size_t>(place->dim)] = true;
  });
  std::vector<std::string> conditions;
  for (int d = 0; d < 3; ++d) {
    const auto i = static_cast<size_t>(d);
    if (!items[i] && plan_.items[i] > 1) conditions.push_back(id_of("local", d) + " == 0");
    if (!groups[i] && !is_const(plan_.groups[i], 1)) conditions.push_back(id_of("group", d) + " == 0");
  }
  return conditions;
}

// Where work-items must meet, all of them walk the structure and conditions wait for the statements; elsewhere they are asked at once.
void Emitter::emit_stmt(const Stmt& s) {
  if (!problem_.empty()) return;
  if (!synchronizes(s, target_)) return emit_guarded(s);
  switch (s->kind) {
    case StmtKind::block: return emit_sequence(s);
    case StmtKind::barrier: return barrier();
    case StmtKind::region: return emit_stmt(s->body[0]);
    case StmtKind::loop: return emit_loop(s);
    case StmtKind::if_then: {
      bool differs = false;
      for (const StmtNode* loop : loops_)
        if (loop->loop_kind == LoopKind::bind && !axis_place(target_, loop->axis)->group) differs |= uses_var(s->condition, loop->var);
      if (differs) return fail("a barrier under a condition that differs between work-items");
      open("if (" + value(s->condition).text + ")");
      emit_stmt(s->body[0]);
      return close();
    }
    case StmtKind::store:
    case StmtKind::roles:
    case StmtKind::signal:
    case StmtKind::wait:
    case StmtKind::prefetch: return emit_guarded(s);
  }
}

void Emitter::emit_guarded(const Stmt& s) {
  std::vector<std::string> conditions = std::exchange(waiting_, {});
  const std::vector<std::string> kept = conditions;
  for (std::string& absent : absent_items(s)) conditions.push_back(std::move(absent));
  const auto groups = bound_groups_, items = bound_items_;
  bound_groups_ = bound_items_ = {true, true, true};   // asked for here
  std::string all;
  for (const std::string& c : conditions) all += (all.empty() ? "" : " && ") + c;
  if (!all.empty()) open("if (" + all + ")");
  emit_plain(s);
  if (!all.empty()) close();
  bound_groups_ = groups, bound_items_ = items;
  waiting_ = kept;
}

void Emitter::emit_plain(const Stmt& s) {
  if (!problem_.empty()) return;
  switch (s->kind) {
    case StmtKind::block:
      for (const Stmt& child : s->body) emit_plain(child);
      return;
    case StmtKind::loop: return emit_loop(s);
    case StmtKind::store: return emit_store(s);
    case StmtKind::if_then: {
      if (const auto known = as_const(simplify(s->condition, ranges_))) return *known ? emit_plain(s->body[0]) : void();
      scopes_.emplace_back();
      counts_.clear();
      count(s->condition);
      const std::string condition = value(s->condition).text;
      scopes_.pop_back();
      open("if (" + bare(condition) + ")");
      emit_plain(s->body[0]);
      return close();
    }
    case StmtKind::region: return emit_plain(s->body[0]);
    case StmtKind::prefetch: return;   // a hint
    case StmtKind::roles:
    case StmtKind::signal:
    case StmtKind::wait:
    case StmtKind::barrier: return fail("a barrier, roles or tokens where work-items cannot meet");
  }
}

void Emitter::emit_sequence(const Stmt& s) {
  bool first = true;
  for (const Stmt& child : s->body) {
    if (!first && child->kind != StmtKind::barrier) barrier();
    emit_stmt(child);
    first = child->kind == StmtKind::barrier;
  }
}

// Quotients and remainders of the numbers of groups and work-items, which many indices are made of: once, in front.
void Emitter::name_divisions(const StmtNode& loop) {
  std::vector<std::pair<Expr, int>> found;   // operands first
  const auto division = [](const Expr& e) { return e->kind == ExprKind::binary && e.type() == DType::i64 && (e->binary == BinaryOp::floor_div || e->binary == BinaryOp::floor_mod); };
  const auto known_here = [&](const Expr& e) {
    bool known = uses_var(e, loop.var);
    visit(e, [&](const Expr& n) { known &= n->kind != ExprKind::load && (n->kind != ExprKind::var || vars_.contains(n->name)); });
    return known;
  };
  std::function<void(const Expr&)> collect = [&](const Expr& e) {
    for (const Expr& arg : e->args) collect(arg);
    if (!division(e) || !known_here(e)) return;
    const auto same = std::ranges::find_if(found, [&](const auto& f) { return equal(f.first, e); });
    if (same == found.end()) found.emplace_back(e, 1);
    else ++same->second;
  };
  visit(loop.body[0], [&](const Stmt& s) {
    for (const Expr& e : {s->extent, s->condition, s->value, s->where})
      if (e.defined()) collect(e);
    for (const Expr& e : s->indices) collect(e);
  });
  for (const auto& [e, uses] : found) {
    if (uses < 2) continue;
    const Text t = value(e);
    divisions_.emplace(hash_value(e), std::pair(e, Text{named(t.narrow ? "int" : "long", t), t.narrow}));
  }
}

void Emitter::emit_bound(const Stmt& s) {
  const AxisPlace place = *axis_place(target_, s->axis);
  const auto dim = static_cast<size_t>(place.dim);
  const std::optional<int64_t> extent = as_const(s->extent);
  const bool narrow = extent && *extent <= INT32_MAX;
  const Expr all = place.group ? plan_.groups[dim] : Expr(plan_.items[dim]);
  vars_[s->var] = {names_.fresh(s->var), narrow};
  const std::string type = narrow ? "int" : "long";
  line("const " + type + " " + vars_[s->var].text + " = (" + type + ")" + id_of(place.group ? "group" : "local", place.dim) + ";");
  bool& bound = (place.group ? bound_groups_ : bound_items_)[dim];
  const bool before = std::exchange(bound, true);
  loops_.push_back(s.get());
  name_divisions(*s);
  const std::string guard = equal(all, s->extent) ? "" : vars_[s->var].text + " < " + value(s->extent).text;
  const bool meets = synchronizes(s->body[0], target_);
  if (!guard.empty() && meets) waiting_.push_back(guard);
  if (!guard.empty() && !meets) open("if (" + guard + ")");
  meets ? emit_stmt(s->body[0]) : emit_guarded(s->body[0]);
  if (!guard.empty() && !meets) close();
  if (!guard.empty() && meets) waiting_.pop_back();
  loops_.pop_back();
  bound = before;
}

void Emitter::emit_loop(const Stmt& s) {
  const std::optional<int64_t> extent = as_const(s->extent);
  if (extent && *extent <= 0) return;
  if (s->loop_kind == LoopKind::bind) return emit_bound(s);
  if (s->loop_kind == LoopKind::vector && emit_vector(s)) return;
  const bool meets = synchronizes(s, target_);
  const bool expand = (s->loop_kind == LoopKind::unroll || s->loop_kind == LoopKind::vector) && extent && *extent <= kMaxCopies;
  if (extent && (*extent == 1 || expand)) {
    for (int64_t i = 0; i < *extent && problem_.empty(); ++i) {
      const Stmt copy = substitute(s->body[0], s->var, Expr(i));
      bodies_.push_back(copy);
      const bool later = s->role == AxisRole::reduce && i > 0;
      later_reduce_ += later;
      meets ? emit_stmt(copy) : emit_plain(copy);
      later_reduce_ -= later;
      if (meets && i + 1 < *extent) barrier();
    }
    return;
  }
  const bool narrow = extent && *extent <= INT32_MAX;
  const std::string end = value(s->extent).text, name = names_.fresh(s->var);
  vars_[s->var] = {name, narrow};
  loops_.push_back(s.get());
  open("for (" + std::string(narrow ? "int " : "long ") + name + " = 0; " + name + " < " + end + "; ++" + name + ")");
  meets ? emit_stmt(s->body[0]) : emit_plain(s->body[0]);
  if (meets) barrier();
  close();
  loops_.pop_back();
}

}  // namespace tw::opencl

namespace tw {

Expected<OpenClSource> emit_opencl(const Kernel& kernel, const Target& target, const std::string& name) {
  const auto refused = [&](Error error) { return make_error(DiagCode::unsupported, "kernel '{0}': {1}", kernel.name, error_text(std::move(error))); };
  const Kernel plain = kernel.queues.empty() ? interleave_virtual_threads(kernel) : kernel;
  Ranges ranges;
  for (const std::string& symbol : plain.symbols) ranges[symbol] = {Expr(1), Expr()};
  visit(plain.body, [&](const Stmt& s) { if (s->kind == StmtKind::loop) ranges[s->var] = {Expr(0), s->extent - Expr(1)}; });
  const Stmt body = hoist_guards(rewrite_exprs(plain.body, [&](const Expr& e) { return simplify(e, ranges); }));
  auto plans = plan_launches(plain, body, target);
  if (!plans) return refused(plans.takeError());
  OpenClSource source;
  for (size_t i = 0; i < plans->size(); ++i) {
    const std::string function = plans->size() == 1 ? name : name + "_" + std::to_string(i);
    OpenClLaunch launch;
    auto text = opencl::Emitter(plain, target, (*plans)[i], ranges).emit(function, launch);
    if (!text) return refused(text.takeError());
    source.text += (i ? "\n" : "") + *text;
    source.launches.push_back(std::move(launch));
  }
  source.doubles = source.text.find("double") != std::string::npos;
  if (source.doubles && !target.has("fp64")) return refused(make_error(DiagCode::unsupported, "f64, which the device does not have"));
  return source;
}

std::string opencl_program(std::span<const OpenClSource> sources) {
  std::string text;
  bool doubles = false;
  for (const OpenClSource& source : sources) {
    text += "\n" + source.text;
    doubles |= source.doubles;
  }
  const std::string head = doubles ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "";
  return head + "#pragma OPENCL FP_CONTRACT OFF\n\n" + opencl::support_functions(text) + text;
}

}  // namespace tw
