#include "backends/opencl/emitter.h"

#include <algorithm>

#include "ir/storage_types.h"

namespace tw::opencl {
namespace {

constexpr int64_t kMaxCopies = 64;  // most copies of an unrolled body

}  // namespace

Emitter::Emitter(const ThreadForm& thread, const LaunchPlan& plan, const Ranges& ranges)
    : thread_(thread),
      kernel_(thread.kernel),
      plan_(plan),
      ranges_(ranges),
      layout_(workspace_layout(kernel_)) {
  ranges_.insert(thread.variables.begin(), thread.variables.end());
  std::function<void(const Stmt&, int)> walk = [&](const Stmt& s, int depth) {
    if (const auto* loop = as<stmt::Loop>(s)) depths_[loop->var] = ++depth;
    for (const Stmt& child : children(s)) walk(child, depth);
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

// Declares the ids of group and work-item, in the dimensions that the function uses.
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
  const auto beyond = [&] { fail("roles, tokens and asynchronous copies are beyond OpenCL C"); };
  match(
      s,
      [&](const stmt::Sequence& sequence) {
        for (const Stmt& child : sequence.body) emit_stmt(child);
      },
      [&](const stmt::Loop& loop) { emit_loop(loop); },
      [&](const stmt::Store& store) { emit_store(store); },
      [&](const stmt::If& guard) { emit_if(guard); },
      [&](const stmt::Block& block) { emit_stmt(block.body); },
      [&](const stmt::Prefetch&) {},  // only a hint
      [&](const stmt::Barrier&) { line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"); },
      [&](const stmt::Roles&) { beyond(); }, [&](const stmt::Signal&) { beyond(); },
      [&](const stmt::Wait&) { beyond(); });
}

void Emitter::emit_if(const stmt::If& guard) {
  if (const auto known = as_const(simplify(guard.condition, ranges_)))
    return *known ? emit_stmt(guard.body) : void();
  scopes_.emplace_back();
  counts_.clear();
  count(guard.condition);
  const std::string condition = value(guard.condition).text;
  scopes_.pop_back();
  open("if (" + bare(condition) + ")");
  emit_stmt(guard.body);
  close();
}

// Names quotients and remainders of the ids of groups and work-items, which many indices contain.
// They are computed once, in front.
void Emitter::name_divisions() {
  std::vector<std::pair<Expr, int>> found;  // operands come first
  const auto division = [](const Expr& e) {
    const auto* pair = as<expr::Binary>(e);
    return pair && e.type() == DType::i64 &&
           (pair->op == BinaryOp::floor_div || pair->op == BinaryOp::floor_mod);
  };
  const auto known_here = [&](const Expr& e) {
    bool known = std::ranges::any_of(thread_.variables,
                                     [&](const auto& v) { return uses_var(e, v.first); });
    visit(e, [&](const Expr& n) {
      const auto* variable = as<expr::Var>(n);
      known &= !is<expr::Load>(n) && (!variable || vars_.contains(variable->name));
    });
    return known;
  };
  std::function<void(const Expr&)> collect = [&](const Expr& e) {
    for_each_operand(*e, collect);
    if (!division(e) || !known_here(e)) return;
    const auto same = std::ranges::find_if(found, [&](const auto& f) { return equal(f.first, e); });
    if (same == found.end()) found.emplace_back(e, 1);
    else ++same->second;
  };
  visit(kernel_.body, [&](const Stmt& s) {
    const auto* store = as<stmt::Store>(s);
    if (!store) return visit_exprs(*s, collect);
    collect(store->value);
    if (store->where.defined()) collect(store->where);
    for (const Expr& e : store->indices) collect(e);
  });
  for (const auto& [e, uses] : found) {
    if (uses < 2) continue;
    const Text t = value(e);
    divisions_.emplace(hash_value(e),
                       std::pair(e, Text{named(t.narrow ? "int" : "long", t), t.narrow}));
  }
}

void Emitter::emit_loop(const stmt::Loop& loop) {
  const std::optional<int64_t> extent = as_const(loop.extent);
  if (extent && *extent <= 0) return;
  if (loop.kind == LoopKind::vector && emit_vector(loop)) return;
  const bool expand = (loop.kind == LoopKind::unroll || loop.kind == LoopKind::vector) && extent &&
                      *extent <= kMaxCopies;
  if (extent && (*extent == 1 || expand)) {
    for (int64_t i = 0; i < *extent && problem_.empty(); ++i) {
      const Stmt copy = substitute(loop.body, loop.var, Expr(i));
      bodies_.push_back(copy);
      const bool later = loop.role == AxisRole::reduce && i > 0;
      later_reduce_ += later;
      emit_stmt(copy);
      later_reduce_ -= later;
    }
    return;
  }
  const bool narrow = extent && *extent <= INT32_MAX;
  const std::string end = value(loop.extent).text, name = names_.fresh(loop.var);
  vars_[loop.var] = {name, narrow};
  loops_.push_back(&loop);
  open("for (" + std::string(narrow ? "int " : "long ") + name + " = 0; " + name + " < " + end +
       "; ++" + name + ")");
  emit_stmt(loop.body);
  close();
  loops_.pop_back();
}

}  // namespace tw::opencl

namespace tw {

namespace {
// A storage-only type that the kernel loads, stores or computes
std::optional<DType> storage_only_type(const Kernel& kernel) {
  std::optional<DType> found;
  for (const Buffer& buffer : kernel.buffers)
    if (is_storage_only(buffer.dtype)) found = buffer.dtype;
  visit(kernel.body, [&](const Stmt& s) {
    const auto* store = as<stmt::Store>(s);
    if (!store) return;
    visit(store->value, [&](const Expr& e) {
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
