#include "backends/opencl/emitter.h"

#include <algorithm>

#include "ir/storage_types.h"

namespace tw::opencl {
namespace {

constexpr int64_t kMaxCopies = 64;  // of an unrolled body

}  // namespace

Emitter::Emitter(const ThreadForm& thread, const LaunchPlan& plan, const Ranges& ranges)
    : thread_(thread),
      kernel_(thread.kernel),
      plan_(plan),
      ranges_(ranges),
      layout_(workspace_layout(kernel_)) {
  ranges_.insert(thread.variables.begin(), thread.variables.end());
  std::function<void(const Stmt&, int)> walk = [&](const Stmt& s, int depth) {
    if (s->kind == StmtKind::loop) depths_[s->var] = ++depth;
    for (const Stmt& child : s->body) walk(child, depth);
  };
  walk(kernel_.body, 0);
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
              "__global " + constant + "uchar* " + buffers_[index] + "_mem, long " +
                  buffers_[index] + "_at");
  }
  if (workspace)
    parameter(OpenClArgument::Kind::workspace, 0, "__global uchar* tw_work, long tw_work_at");
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
  declare_variables();
  name_divisions();
  emit_stmt(kernel_.body);
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
      const std::string pointer = std::string("__global ") +
                                  (buffer.role == BufferRole::output ? "" : "const ") + type + "*";
      line(pointer + " " + name + " = (" + pointer + ")(" + name + "_mem + " + name + "_at);");
    } else if (place == Space::workspace) {
      const Text at = value(layout_.offsets[static_cast<size_t>(index)]);
      line("__global " + type + "* " + name + " = (__global " + type +
           "*)(tw_work + tw_work_at + " + at.text + ");");
    } else {
      int64_t count = 1;
      for (const Expr& extent : buffer.shape) count *= *as_const(extent);
      line(std::string(place == Space::shared ? "__local " : "") + type + " " + name + "[" +
           std::to_string(std::max<int64_t>(count, 1)) + "];");
    }
  }
}

// Which work-item this is, of those dimensions that the function asks for.
void Emitter::declare_variables() {
  for (int d = 0; d < 6; ++d) {
    const AxisPlace place{d < 3, d % 3};
    const std::string variable = device::thread_variable(place);
    bool used = false;
    rewrite_exprs(kernel_.body, [&](const Expr& e) { return used |= uses_var(e, variable), e; });
    if (!used) continue;
    const std::optional<int64_t> last = as_const(simplify(thread_.variables.at(variable).max));
    const bool narrow = last && *last <= INT32_MAX;
    const std::string type = narrow ? "int" : "long", what = place.group ? "group" : "local";
    vars_[variable] = {names_.fresh((place.group ? "group" : "item") + std::to_string(place.dim)),
                       narrow};
    line("const " + type + " " + vars_[variable].text + " = (" + type + ")get_" + what + "_id(" +
         std::to_string(place.dim) + ");");
  }
}

void Emitter::emit_stmt(const Stmt& s) {
  if (!problem_.empty()) return;
  switch (s->kind) {
    case StmtKind::sequence:
      for (const Stmt& child : s->body) emit_stmt(child);
      return;
    case StmtKind::loop: return emit_loop(s);
    case StmtKind::store: return emit_store(s);
    case StmtKind::if_then: {
      if (const auto known = as_const(simplify(s->condition, ranges_)))
        return *known ? emit_stmt(s->body[0]) : void();
      scopes_.emplace_back();
      counts_.clear();
      count(s->condition);
      const std::string condition = value(s->condition).text;
      scopes_.pop_back();
      open("if (" + bare(condition) + ")");
      emit_stmt(s->body[0]);
      return close();
    }
    case StmtKind::block: return emit_stmt(s->body[0]);
    case StmtKind::prefetch: return;  // a hint
    case StmtKind::barrier: return line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
    case StmtKind::roles:
    case StmtKind::signal:
    case StmtKind::wait: return fail("roles, tokens and asynchronous copies are beyond OpenCL C");
  }
}

// Quotients and remainders of the numbers of groups and work-items, which many indices are made of:
// once, in front.
void Emitter::name_divisions() {
  std::vector<std::pair<Expr, int>> found;  // operands first
  const auto division = [](const Expr& e) {
    return e->kind == ExprKind::binary && e.type() == DType::i64 &&
           (e->binary == BinaryOp::floor_div || e->binary == BinaryOp::floor_mod);
  };
  const auto known_here = [&](const Expr& e) {
    bool known = std::ranges::any_of(thread_.variables,
                                     [&](const auto& v) { return uses_var(e, v.first); });
    visit(e, [&](const Expr& n) {
      known &= n->kind != ExprKind::load && (n->kind != ExprKind::var || vars_.contains(n->name));
    });
    return known;
  };
  std::function<void(const Expr&)> collect = [&](const Expr& e) {
    for (const Expr& arg : e->args) collect(arg);
    if (!division(e) || !known_here(e)) return;
    const auto same = std::ranges::find_if(found, [&](const auto& f) { return equal(f.first, e); });
    if (same == found.end()) found.emplace_back(e, 1);
    else ++same->second;
  };
  visit(kernel_.body, [&](const Stmt& s) {
    for (const Expr& e : {s->extent, s->condition, s->value, s->where})
      if (e.defined()) collect(e);
    for (const Expr& e : s->indices) collect(e);
  });
  for (const auto& [e, uses] : found) {
    if (uses < 2) continue;
    const Text t = value(e);
    divisions_.emplace(hash_value(e),
                       std::pair(e, Text{named(t.narrow ? "int" : "long", t), t.narrow}));
  }
}

void Emitter::emit_loop(const Stmt& s) {
  const std::optional<int64_t> extent = as_const(s->extent);
  if (extent && *extent <= 0) return;
  if (s->loop_kind == LoopKind::vector && emit_vector(s)) return;
  const bool expand = (s->loop_kind == LoopKind::unroll || s->loop_kind == LoopKind::vector) &&
                      extent && *extent <= kMaxCopies;
  if (extent && (*extent == 1 || expand)) {
    for (int64_t i = 0; i < *extent && problem_.empty(); ++i) {
      const Stmt copy = substitute(s->body[0], s->var, Expr(i));
      bodies_.push_back(copy);
      const bool later = s->role == AxisRole::reduce && i > 0;
      later_reduce_ += later;
      emit_stmt(copy);
      later_reduce_ -= later;
    }
    return;
  }
  const bool narrow = extent && *extent <= INT32_MAX;
  const std::string end = value(s->extent).text, name = names_.fresh(s->var);
  vars_[s->var] = {name, narrow};
  loops_.push_back(s.get());
  open("for (" + std::string(narrow ? "int " : "long ") + name + " = 0; " + name + " < " + end +
       "; ++" + name + ")");
  emit_stmt(s->body[0]);
  close();
  loops_.pop_back();
}

}  // namespace tw::opencl

namespace tw {

namespace {
// A type that the kernel loads, stores or computes and that is for storage only.
std::optional<DType> storage_only_type(const Kernel& kernel) {
  std::optional<DType> found;
  for (const Buffer& buffer : kernel.buffers)
    if (is_storage_only(buffer.dtype)) found = buffer.dtype;
  visit(kernel.body, [&](const Stmt& s) {
    if (!s->value.defined()) return;
    visit(s->value, [&](const Expr& e) {
      if (is_storage_only(e.type())) found = e.type();
    });
  });
  return found;
}
}  // namespace

Expected<OpenClSource> emit_opencl(const Kernel& kernel, const Target& target,
                                   const std::string& name) {
  const auto refused = [&](Error error) {
    return make_error(DiagCode::unsupported, "kernel '{0}': {1}", kernel.name,
                      error_text(std::move(error)));
  };
  if (const std::optional<DType> type = storage_only_type(kernel))
    return refused(
        make_error(DiagCode::unsupported, "{0} has no form in OpenCL C", dtype_name(*type)));
  TW_ASSIGN(const device::LaunchPlans plans, device::plan_launches(kernel, target));
  OpenClSource source;
  for (size_t i = 0; i < plans.launches.size(); ++i) {
    const std::string function = plans.launches.size() == 1 ? name : name + "_" + std::to_string(i);
    auto thread = device::thread_form(plans.kernel, plans.launches[i], target);
    if (!thread) return refused(thread.takeError());
    OpenClLaunch launch;
    auto text = opencl::Emitter(*thread, plans.launches[i], plans.ranges).emit(function, launch);
    if (!text) return refused(text.takeError());
    source.text += (i ? "\n" : "") + *text;
    source.launches.push_back(std::move(launch));
  }
  source.doubles = source.text.find("double") != std::string::npos;
  if (source.doubles && !target.has("fp64"))
    return refused(make_error(DiagCode::unsupported, "f64, which the device does not have"));
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
