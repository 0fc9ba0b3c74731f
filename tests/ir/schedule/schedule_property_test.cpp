// Random kernels under random steps: each step is refused, or leaves the results as they were, by
// the interpreter. In the environment, TW_ROUNDS=10000 sets the number of kernels, and TW_SEED=1193
// runs the kernel of that seed.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>

#include "ir/kernel/guards.h"
#include "ir/kernel/in_place.h"
#include "ir/kernel/interpreter.h"
#include "ir/schedule/schedule.h"
#include "ir/target.h"

namespace {

using tw::Kernel;
using tw::Stmt;

struct Random {
  std::mt19937 engine;
  int64_t below(int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); }
  int64_t from(int64_t low, int64_t high) { return low + below(high - low + 1); }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
};

template <class... Args>
std::string text(const char* format, Args&&... args) {
  return llvm::formatv(format, std::forward<Args>(args)...).str();
}

// {0}: element type, {1}...: extents. Braces of the kernel text are doubled for formatv.
std::string gemm(Random& r, const char* type) {
  return text(
      R"(kernel @gemm(x: in {0}[{1}, {3}], w: const {0}[{3}, {2}], b: const {0}[{2}], y: out {0}[{1}, {2}]) {{
  temp c: {0}[{1}, {2}]
  for i in {1} {{ for j in {2} {{ for k in {3} reduce {{
    c: c[i, j] += x[i, k] * w[k, j] init 0
  } } }
  for i1 in {1} {{ for j1 in {2} {{
    y: y[i1, j1] = max(0, c[i1, j1] + b[j1])
  } }
})",
      type, r.from(1, 9), r.from(1, 9), r.from(1, 6));
}

std::string symbolic_gemm(Random& r, const char* type) {
  return text(R"(kernel @gemm[n](x: in {0}[n, {2}], w: const {0}[{2}, {1}], y: out {0}[n, {1}]) {{
  temp c: {0}[n, {1}]
  for i in n {{ for j in {1} {{ for k in {2} reduce {{
    c: c[i, j] += x[i, k] * w[k, j] init 0
  } } }
  for i1 in n {{ for j1 in {1} {{
    y: y[i1, j1] = max(0, c[i1, j1] - 1)
  } }
})",
              type, r.from(1, 9), r.from(1, 6));
}

std::string conv(Random& r, const char* type) {
  const int64_t out = r.from(1, 7), kernel = r.from(1, 3), stride = r.from(1, 2),
                dilation = r.from(1, 2), pad = r.from(0, 1);
  const int64_t in = std::max<int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad,
                                       1);
  return text(
      R"(kernel @conv(x: in {0}[{1}, {2}], w: const {0}[{3}, {1}, {4}], y: out {0}[{3}, {5}]) {{
  temp t: {0}[{1}, {2}]
  temp c: {0}[{3}, {5}]
  for ci in {1} {{ for h in {2} {{
    t: t[ci, h] = x[ci, h] * 2 - 1
  } }
  for co in {3} {{ for ho in {5} {{ for r in {1} reduce {{ for kh in {4} reduce {{
    c: c[co, ho] += t[r, ho * {6} + kh * {7} - {8}] * w[co, r, kh] where {8} <= ho * {6} + kh * {7} && ho * {6} + kh * {7} < {9} init 0
  } } } }
  for o in {3} {{ for p in {5} {{
    y: y[o, p] = max(0, c[o, p])
  } }
})",
      type, r.from(1, 3), in, r.from(1, 5), kernel, out, stride, dilation, pad, in + pad);
}

std::string chain(Random& r, const char* type) {
  return text(
      R"(kernel @chain(x: in {0}[{1}, {2}], z: in {0}[{2}], y: out {0}[{2}, {1}], q: out {0}[{1}]) {{
  temp s: {0}[{1}, {2}]
  temp t: {0}[{2}, {1}]
  for i in {1} {{ for j in {2} {{
    s: s[i, j] = x[i, j] * 2 + z[j]
  } }
  for a in {2} {{ for b in {1} {{
    t: t[a, b] = s[b, a] - 3
  } }
  for u in {2} {{ for v in {1} {{
    y: y[u, v] = t[u, v] + t[{2} - 1 - u, v]
  } }
  for m in {1} {{
    q: q[m] = x[m, 0]
  }
})",
      type, r.from(1, 8), r.from(1, 8));
}

std::string softmax(Random& r, const char* type) {
  return text(R"(kernel @softmax(x: in {0}[{1}, {2}], y: out {0}[{1}, {2}]) {{
  temp top: {0}[{1}]
  temp e: {0}[{1}, {2}]
  temp sum: {0}[{1}]
  for i in {1} {{ for k in {2} reduce {{
    top: top[i] max= x[i, k] init -1000
  } }
  for i1 in {1} {{ for j1 in {2} {{
    e: e[i1, j1] = x[i1, j1] - top[i1]
  } }
  for i2 in {1} {{ for k2 in {2} reduce {{
    sum: sum[i2] += e[i2, k2] init 0
  } }
  for i3 in {1} {{ for j3 in {2} {{
    y: y[i3, j3] = e[i3, j3] * 100 + sum[i3]
  } }
})",
              type, r.from(1, 6), r.from(1, 9));
}

// An input of the output's shape is read where the output is written, and in some kernels elsewhere
// too.
std::string residual(Random& r, const char* type) {
  const int64_t rows = r.from(1, 9), columns = r.from(1, 9);
  const char* elsewhere[] = {"0", "0", "0", "x1[{0} - 1 - i, j]", "x1[i, 0]", "x1[i, j]"};
  return text(
      R"(kernel @residual(x: in {0}[{1}, {3}], w: const {0}[{3}, {2}], x1: in {0}[{1}, {2}], y: out {0}[{1}, {2}]) {{
  temp c: {0}[{1}, {2}]
  for i in {1} {{ for j in {2} {{ for k in {3} reduce {{
    c: c[i, j] += x[i, k] * w[k, j] + {4} init 0
  } } }
  for i1 in {1} {{ for j1 in {2} {{
    y: y[i1, j1] = max(0, c[i1, j1] + x1[i1, j1])
  } }
})",
      type, rows, columns, r.from(1, 4), text(elsewhere[r.below(6)], rows));
}

std::string map(Random& r, const char* type) {
  return text(
      R"(kernel @map(x: in {0}[{1}, {2}], w: const {0}[{1}, {2}], y: out {0}[{1}, {2}]) {{
  for i in {1} {{ for j in {2} {{
    y: y[i, j] = x[i, j] * w[i, j] + {3}
  } }
})",
      type, r.from(1, 9), r.from(1, 9), r.from(1, 4));
}

std::string pool(Random& r, const char* type) {
  const int64_t size = r.from(2, 9);
  return text(R"(kernel @pool(x: in {0}[{1}, {2}, {2}], y: out {0}[{1}, {3}, {3}]) {{
  temp t: {0}[{1}, {2}, {2}]
  for c in {1} {{ for h in {2} {{ for v in {2} {{
    t: t[c, h, v] = max(x[c, h, v], 1)
  } } }
  for c1 in {1} {{ for ho in {3} {{ for wo in {3} {{ for kh in 3 reduce {{ for kw in 3 reduce {{
    y: y[c1, ho, wo] max= t[c1, ho * 2 + kh - 1, wo * 2 + kw - 1] where ho * 2 + kh >= 1 && ho * 2 + kh < {2} + 1 && wo * 2 + kw >= 1 && wo * 2 + kw < {2} + 1 init -99
  } } } } }
})",
              type, r.from(1, 2), size, (size + 1) / 2);
}

// A reduction over a reduction, and a stage that updates in place
std::string two_gemms(Random& r, const char* type) {
  return text(
      R"(kernel @two(x: in {0}[{1}, {2}], w: const {0}[{2}, {3}], v: const {0}[{3}, {4}], y: out {0}[{1}, {4}]) {{
  temp h: {0}[{1}, {3}]
  for i in {1} {{ for j in {3} {{ for k in {2} reduce {{
    h: h[i, j] += x[i, k] * w[k, j] init 1
  } } }
  for i1 in {1} {{ for m in {3} reduce {{ for l in {4} {{
    y: y[i1, l] += h[i1, m] * v[m, l] init 0
  } } }
  for i2 in {1} {{ for l2 in {4} {{
    u: y[i2, l2] = y[i2, l2] * 2 + v[0, l2]
  } }
})",
      type, r.from(1, 6), r.from(1, 4), r.from(1, 5), r.from(1, 6));
}

// A stage sums onto the values of another one, by rows that an instruction of the device adds.
std::string accumulate(Random& r, const char* type) {
  return text(
      R"(kernel @accumulate(x: in {0}[{1}, {2}], w: const {0}[{2}, {3}], y: out {0}[{1}, {3}]) {{
  for i in {1} {{ for j in {3} {{
    start: y[i, j] = x[i, 0] - 1
  } }
  for i1 in {1} {{ for k in {2} reduce {{ for j1 in {3} {{
    y: y[i1, j1] += x[i1, k] * w[k, j1]
  } } }
})",
      type, r.from(1, 5), r.from(1, 4), r.from(1, 9));
}

// Copies in a loop, beside the stage that reads them
std::string staged(Random& r, const char* type) {
  return text(
      R"(kernel @staged(x: in {0}[{1}, {2}], w: const {0}[{2}], y: out {0}[{3}, {1}], q: out {0}[{1}]) {{
  temp xs: {0}[{2}] stack
  temp ws: {0}[{2}] stack
  temp s: {0}[1] stack
  for o in {3} {{
    for i in {1} {{
      for a in {2} {{ xs: xs[a] = x[i, a] }
      for b in {2} {{ ws: ws[b] = w[b] * 2 }
      for k in {2} reduce {{ s: s[0] += xs[k] * ws[k] init 0 }
      y: y[o, i] = s[0]
    }
  }
  for m in {1} {{
    q: q[m] = y[0, m] + 1
  }
})",
      type, r.from(1, 7), r.from(1, 5), r.from(1, 3));
}

// Steps of a scan: sums over the state before, of numbers that count from one of it
std::string steps(Random& r, const char* type) {
  const int64_t count = r.from(1, 3), size = r.from(1, 7);
  return text(
      R"(kernel @steps(x: in {0}[{1}, {2}], w: const {0}[{2}, {2}], y: out {0}[{1}, {2}]) {{
  temp h: {0}[{3}, {2}]
  temp z: {0}[]
  temp q: {0}[{2}]
  temp c: {0}[{2}]
  for a in {2} {{
    h.first: h[0, a] = x[0, a]
  }
  for t in {1} scan {{
    for d in {2} reduce {{ z: z[] max= h[t, d] init -99 }
    for b in {2} {{ q: q[b] = h[t, b] * 2 }
    for j in {2} {{ for k in {2} reduce {{
      c: c[j] += (q[k] - z[]) * w[k, j] init 0
    } }
    for l in {2} {{
      h: h[t + 1, l] = max(0, min(c[l], 5)) - x[t, l]
      y: y[t, l] = h[t + 1, l] * 2
    }
  }
})",
      type, count, size, count + 1);
}

// Rows see some of the columns, and nothing else is computed.
std::string triangle(Random& r, const char* type) {
  return text(
      R"(kernel @triangle(x: in {0}[{1}, {2}], v: const {0}[{2}, {3}], y: out {0}[{1}, {3}]) {{
  temp s: {0}[{1}, {2}]
  temp top: {0}[{1}]
  temp o: {0}[{1}, {3}]
  for s_i in {1} {{ for s_j in {2} {{
    s: s[s_i, s_j] = x[s_i, s_j] * 2 where s_j <= s_i + {4}
  } }
  for t_i in {1} {{ for t_j in {2} reduce {{
    top: top[t_i] max= s[t_i, t_j] where t_j <= t_i + {4} init -999
  } }
  for o_i in {1} {{ for o_c in {3} {{ for o_j in {2} reduce {{
    o: o[o_i, o_c] += s[o_i, o_j] * v[o_j, o_c] where o_j <= o_i + {4} init 0
  } } }
  for i in {1} {{ for j in {3} {{
    y: y[i, j] = o[i, j] + top[i]
  } }
})",
      type, r.from(1, 6), r.from(1, 7), r.from(1, 4), r.from(0, 2));
}

// Blocks of rows with sums that run on over some steps, as attention has them
std::string running(Random& r, const char* type) {
  return text(
      R"(kernel @running(x: in {0}[{1}, {2}, {4}], w: const {0}[{3}, {4}, {5}], y: out {0}[{1}, {2}, {5}]) {{
  temp s: {0}[{2}, {5}]
  temp f: {0}[{2}]
  temp sum: {0}[{2}]
  temp o: {0}[{2}, {5}]
  for b in {1} {{
    for i in {2} {{ sum.first: sum[i] = 0 }
    for i1 in {2} {{ for j1 in {5} {{ o.first: o[i1, j1] = 0 } }
    for t in {3} scan {{
      if t <= b + 1 {{
        for i2 in {2} {{ for j2 in {5} {{ for k2 in {4} reduce {{
          s: s[i2, j2] += x[b, i2, k2] * w[t, k2, j2] init 0
        } } }
        for i3 in {2} {{ for j3 in {5} {{ s.top: s[i3, j3] = max(0, min(s[i3, j3], 3)) } }
        for i4 in {2} {{ f: f[i4] = max(0, x[b, i4, 0]) }
        for i5 in {2} {{ sum.scale: sum[i5] *= f[i5] }
        for i6 in {2} {{ for j6 in {5} reduce {{ sum: sum[i6] += s[i6, j6] } }
        for i7 in {2} {{ for j7 in {5} {{ o.scale: o[i7, j7] *= f[i7] } }
        for i8 in {2} {{ for j8 in {5} {{ for k8 in {5} reduce {{
          o: o[i8, j8] += s[i8, k8] * w[t, 0, j8]
        } } }
      }
    }
    for i9 in {2} {{ for j9 in {5} {{ y: y[b, i9, j9] = o[i9, j9] - sum[i9] } }
  }
})",
      type, r.from(1, 3), r.from(1, 5), r.from(1, 3), r.from(1, 3), r.from(1, 6));
}

struct Names {
  std::vector<std::string> loops, stages, buffers;
};

Names names_of(const Kernel& kernel) {
  Names names;
  tw::visit(kernel.body, [&](const Stmt& s) {
    if (const auto* loop = tw::as<tw::stmt::Loop>(s)) names.loops.push_back(loop->var);
    if (const auto* store = tw::as<tw::stmt::Store>(s)) names.stages.push_back(store->label);
  });
  for (const tw::Buffer& buffer : kernel.buffers) names.buffers.push_back(buffer.name);
  return names;
}

std::vector<std::string> some_nest(const Kernel& kernel, Random& r, const Names& names) {
  std::vector<std::string> loops;
  for (const Stmt& s : tw::path_to(kernel.body, r.pick(names.stages)))
    if (const auto* loop = tw::as<tw::stmt::Loop>(s); loop && r.below(4) > 0)
      loops.push_back(loop->var);
  std::shuffle(loops.begin(), loops.end(), r.engine);
  return loops;
}

// Permutes the dimensions, and cuts one into blocks or rotates one by another.
tw::Step random_layout(const Kernel& kernel, Random& r, const Names& names) {
  tw::step::Layout layout{r.pick(names.buffers), {}, {}};
  const size_t rank = kernel.buffer(*kernel.find_buffer(layout.buffer)).shape.size();
  for (size_t d = 0; d < rank; ++d) layout.dims.push_back(text("d{0}", d));
  for (const std::string& dim : layout.dims) layout.map.push_back(tw::var(dim));
  if (rank == 0) return layout;
  const size_t at = static_cast<size_t>(r.below(static_cast<int64_t>(rank)));
  const tw::Expr dim = layout.map[at];
  if (r.below(2)) {
    const tw::Expr block = r.from(1, 4);
    layout.map[at] = tw::floor_div(dim, block);
    layout.map.push_back(tw::floor_mod(dim, block));
  } else if (at > 0) {
    layout.map[at] = tw::floor_mod(dim + layout.map[at - 1],
                                   kernel.buffer(*kernel.find_buffer(layout.buffer)).shape[at]);
  }
  std::shuffle(layout.map.begin(), layout.map.end(), r.engine);
  return layout;
}

// Widens a stage's conditions over all its loops, or one of them.
tw::Step random_widen(const Kernel& kernel, Random& r, const Names& names) {
  tw::step::Widen widen{r.pick(names.stages), {}, {}, tw::Combiner::add};
  for (const Stmt& s : tw::path_to(kernel.body, widen.stage))
    if (const auto* loop = tw::as<tw::stmt::Loop>(s); loop && r.below(6) > 0) {
      widen.loops.push_back(loop->var);
      widen.factors.push_back(r.from(1, 4));
    }
  if (r.below(2)) widen.combiner = tw::Combiner::max;
  return widen;
}

// Divides the stages of the loop between two parts.
tw::Step random_roles(const Kernel& kernel, Random& r, const std::string& loop) {
  tw::step::Roles roles{loop, r.from(1, 2), {{"front", {}}, {"rear", {}}}};
  const std::vector<tw::StoreRef> stores = tw::stores_of(tw::find_loop(kernel.body, loop));
  const size_t cut = static_cast<size_t>(r.below(static_cast<int64_t>(stores.size()) + 1));
  for (size_t i = 0; i < stores.size(); ++i)
    roles.parts[i < cut ? 0 : 1].second.push_back(stores[i]->label);
  return roles;
}

constexpr int64_t kLongestRow = 9;

std::string row_instruction(std::string_view type, int64_t length) {
  return text("row.{0}.{1}", type, length);
}

const tw::Target& device() {
  static const tw::Target target = [] {
    tw::Target t;
    t.axes = {{"block.x", "block", 1024}, {"thread.x", "thread", 64}};
    t.scopes = {{"shared", "block"}};
    for (const char* type : {"f32", "i32"})
      for (int64_t n = 1; n <= kLongestRow; ++n)
        t.intrinsics.push_back(
            {row_instruction(type, n),
             text(
                 "kernel @row(a: in {0}[1], b: in {0}[{1}], c: out {0}[{1}]) {{ for j in {1} {{ c: "
                 "c[j] += a[0] * b[j] } }",
                 type, n),
             llvm::cantFail(tw::parse_emit({"row(c, a, b)"}))});
    return t;
  }();
  return target;
}

// Uses an instruction as long as the loop, if there is one.
tw::Step random_tensorize(const Kernel& kernel, const std::string& loop, const std::string& name) {
  const tw::LoopRef found = tw::find_loop(kernel.body, loop);
  const int64_t extent = found ? tw::as_const(found->extent).value_or(1) : 1;
  return tw::step::Tensorize{
      loop, row_instruction(tw::dtype_name(kernel.buffers[0].dtype), std::min(extent, kLongestRow)),
      name};
}

// Packs a factor of the stage over its loops in some order, some of them cut.
tw::Step random_pack(const Kernel& kernel, Random& r, const std::string& stage,
                     const std::string& name) {
  tw::step::Pack step{stage, r.below(2) ? tw::Factor::left : tw::Factor::right,
                      name,  r.below(2) ? tw::kConstantScope : "global",
                      {},    {}};
  const auto add = [&](const tw::Expr& index) {
    const auto at = r.below(static_cast<int64_t>(step.map.size()) + 1);
    step.map.insert(step.map.begin() + at, index);
    step.loops.push_back(name + "_" + std::to_string(step.loops.size()));
  };
  std::string slides;  // the loop before, which shares an index with the next one
  for (const Stmt& s : tw::path_to(kernel.body, stage)) {
    const auto* loop = tw::as<tw::stmt::Loop>(s);
    if (!loop || r.below(8) == 0) continue;
    if (!slides.empty()) {
      add(tw::var(slides) * tw::Expr(r.from(1, 3)) + tw::var(loop->var) * tw::Expr(r.from(1, 2)));
      slides.clear();
      continue;
    }
    if (r.below(6) == 0) {
      slides = loop->var;
      continue;
    }
    const tw::Expr variable = tw::var(loop->var), factor(r.from(2, 4));
    const tw::Expr quotient = floor_div(variable, factor);
    if (r.below(2)) {
      add(variable);
      continue;
    }
    add(floor_mod(variable, factor));
    if (r.below(2)) {
      add(quotient);
    } else {
      add(floor_mod(quotient, tw::Expr(2)));
      add(floor_div(quotient, tw::Expr(2)));
    }
  }
  return step;
}

// Blocks of temps alone: those of a parameter change what its caller passes.
tw::Step random_block(const Kernel& kernel, Random& r, const Names& names, const std::string& a,
                      const std::string& b) {
  tw::step::Block block{r.pick(names.buffers), r.from(0, 2), r.from(1, 4), {}};
  const tw::BufferId id = *kernel.find_buffer(block.buffer);
  if (kernel.buffer(id).role != tw::BufferRole::temp)
    return tw::step::Flatten{r.pick(names.stages), a};
  for (const tw::StoreRef& store : tw::stores_of(kernel.body))
    if (store->buffer == id) block.loops.push_back(block.loops.empty() ? a : b);
  return block;
}

// Copies of a temp or two. Others read any of them.
tw::Step random_replicate(const Kernel& kernel, Random& r, const Names& names,
                          const std::string& name) {
  tw::step::Replicate step{{r.pick(names.buffers)}, r.from(1, 3), {}, {}};
  if (const std::string more = r.pick(names.buffers); r.below(2) && more != step.buffers[0])
    step.buffers.push_back(more);
  const auto is_copied = [&](tw::BufferId id) {
    return std::ranges::count(step.buffers, kernel.buffer(id).name) > 0;
  };
  for (const tw::StoreRef& store : tw::stores_of(kernel.body)) {
    if (is_copied(store->buffer)) {
      step.loops.push_back(name + "_" + std::to_string(step.loops.size()));
      continue;
    }
    bool reads = false;
    tw::visit_exprs(*store.stmt(), [&](const tw::Expr& whole) {
      tw::visit(whole, [&](const tw::Expr& e) {
        const auto* load = tw::as<tw::expr::Load>(e);
        reads |= load && is_copied(load->buffer);
      });
    });
    std::string around;
    for (const Stmt& s : tw::path_to(kernel.body, store->label))
      if (const auto* loop = tw::as<tw::stmt::Loop>(s)) around = loop->var;
    if (reads)
      step.copy.push_back(around.empty() || r.below(2)
                              ? tw::Expr(r.from(0, step.copies - 1))
                              : tw::floor_mod(tw::var(around), tw::Expr(step.copies)));
  }
  return step;
}

tw::Step random_step(const Kernel& kernel, Random& r, int number) {
  namespace step = tw::step;
  const Names names = names_of(kernel);
  const std::string a = text("a{0}", number), b = text("b{0}", number);
  const std::vector<std::string> scopes = {"global", "stack", "register", "shared"};
  const auto loop = [&] { return names.loops.empty() ? "none" : r.pick(names.loops); };
  switch (r.below(70)) {
    case 0: return step::Split{loop(), r.from(1, 5), tw::Tail::guard, a, b};
    case 1: return step::Split{loop(), r.from(1, 5), tw::Tail::shift, a, b};
    case 2:
    case 3: return step::ComputeAt{r.pick(names.stages), loop()};
    case 4: {
      if (names.loops.empty()) break;
      const size_t at = static_cast<size_t>(r.below(static_cast<int64_t>(names.loops.size())));
      return step::Fuse{names.loops[at], names.loops[std::min(at + 1, names.loops.size() - 1)], a};
    }
    case 5:
    case 6: return step::Reorder{some_nest(kernel, r, names)};
    case 7: return step::Vectorize{loop()};
    case 8: return step::Unroll{loop()};
    case 9: return step::Parallel{loop()};
    case 10:
    case 11: return step::ComputeAt{r.pick(names.stages), loop()};
    case 12: return step::ComputeInline{r.pick(names.stages)};
    case 13:
      return r.below(2) ? tw::Step(step::CacheWrite{r.pick(names.stages), a, r.pick(scopes)})
                        : tw::Step(step::CacheRead{r.pick(names.buffers), r.pick(names.stages), a,
                                                   r.pick(scopes)});
    case 14: return step::SetScope{r.pick(names.buffers), r.pick(scopes)};
    case 15: return step::Partition{loop(), r.from(1, 2), r.from(1, 2), a, b};
    case 16: return step::Peel{loop(), r.from(1, 3), r.below(2) == 1, a};
    case 17: break;
    case 61:
    case 62: return random_replicate(kernel, r, names, a);
    case 65:
    case 66: return step::Hoist{r.pick(names.stages), r.pick(names.stages)};
    case 63:
    case 64: return step::RFactor{r.pick(names.stages), loop(), a};
    case 28: return step::VirtualThread{loop()};
    case 29:
    case 30: return step::Bind{loop(), r.below(2) ? "block.x" : "thread.x"};
    case 31: return step::Blockize{loop(), a};
    case 32:
    case 33: return step::AsyncCopy{r.pick(names.stages)};
    case 34:
    case 35:
    case 54: return step::Pipeline{loop(), r.from(2, 3), {r.pick(names.stages)}};
    case 36:
    case 37: return random_roles(kernel, r, loop());
    case 38:
    case 39:
    case 40: return random_tensorize(kernel, loop(), a);
    case 41:
    case 42:
      return step::Specialize{
          loop(), r.from(1, 3), {kernel.symbols.empty() ? a : r.pick(kernel.symbols)}, b};
    case 26:
      return step::Tile{{loop(), loop()}, {r.from(1, 4), r.from(1, 4)}, {a, b, a + "i", b + "i"}};
    case 18:
    case 27: return step::ReverseComputeAt{r.pick(names.stages), loop()};
    case 19: return step::ComputeRoot{r.pick(names.stages)};
    case 20: return step::RFactor{r.pick(names.stages), loop(), a};
    case 21: return step::StorageAlign{r.pick(names.buffers), r.below(2), r.from(1, 8), 0};
    case 22: {
      step::Pad pad{{loop()}, r.from(1, 4), r.below(2) == 1, tw::Combiner::add};
      if (!pad.repeat && r.below(3) == 0) pad.combiner = tw::Combiner::max;
      if (r.below(3) == 0) pad.loops.push_back(loop());
      return pad;
    }
    case 48:
    case 49: return random_block(kernel, r, names, a, b);
    case 50:
    case 51: return step::Flatten{r.pick(names.stages), a};
    case 45:
    case 46:
      return step::Recount{r.pick(names.stages), r.below(2) ? tw::Factor::left : tw::Factor::right,
                           r.from(-3, 3), a, r.pick(scopes)};
    case 47:
    case 57:
    case 58:
      return step::Narrow{r.pick(names.stages), r.below(2) ? tw::Factor::left : tw::Factor::right,
                          r.below(2) ? tw::DType::i8 : tw::DType::i16};
    case 59:
    case 60: {
      constexpr tw::DType types[] = {tw::DType::i16, tw::DType::i64, tw::DType::f32,
                                     tw::DType::f64};
      return step::Retype{r.pick(names.buffers), types[r.below(4)]};
    }
    case 55:
    case 56:
      return step::Skew{
          loop(),
          r.from(1, 14),
          {r.below(2) ? tw::Expr(r.from(0, 3)) : tw::floor_mod(tw::var(loop()), r.from(1, 4))}};
    case 67:
    case 68:
    case 69: return random_widen(kernel, r, names);
    case 52:
    case 53:
      return step::Unguard{r.pick(names.stages), r.below(2) ? tw::Factor::left : tw::Factor::right};
    case 43:
    case 44: return random_pack(kernel, r, r.pick(names.stages), a);
    case 23: return random_layout(kernel, r, names);
    case 24:
      return step::Prefetch{r.pick(names.buffers), loop(), r.from(0, 3), r.from(0, 3),
                            r.below(2) ? loop() : ""};
    case 25: return step::Annotate{loop(), "grain", text("{0}", r.below(9))};
  }
  return step::DecomposeReduction{r.pick(names.stages), loop()};
}

using Values = std::vector<tw::KernelArgument>;

template <class T>
void fill(tw::KernelArgument& argument, int64_t count, Random& r) {
  argument.bytes.resize(static_cast<size_t>(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(r.from(-4, 4));
    std::memcpy(argument.bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
}

Values random_arguments(const Kernel& kernel, Random& r,
                        const std::map<std::string, int64_t>& symbols) {
  Values values;
  for (const tw::Buffer& buffer : kernel.buffers) {
    if (buffer.role == tw::BufferRole::temp) continue;
    int64_t count = 1;
    for (const tw::Expr& dim : buffer.shape)
      count *= tw::eval_int(dim,
                            [&](std::string_view name) { return symbols.at(std::string(name)); });
    values.emplace_back();
    buffer.dtype == tw::DType::f32 ? fill<float>(values.back(), count, r)
                                   : fill<int32_t>(values.back(), count, r);
  }
  return values;
}

// Compares bits. All values are small integers, so sums are exact in any order, in f32 too.
bool same(const Values& a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes != b[i].bytes) return false;
  return true;
}

// Returns the kernel with every spatial loop run from its end.
Kernel reversed(Kernel kernel) {
  kernel.body = tw::rewrite(kernel.body, [](const Stmt& s) -> Stmt {
    const auto* loop = tw::as<tw::stmt::Loop>(s);
    if (!loop || loop->role != tw::AxisRole::spatial) return nullptr;
    const tw::Expr from_end = loop->extent - 1 - tw::var(loop->var);
    return tw::with_body(s, tw::substitute(loop->body, loop->var, from_end));
  });
  return kernel;
}

// Gives outputs an input's memory wherever that is allowed. Results must stay. Returns the number
// of runs.
int check_in_place(const Kernel& kernel, const Values& start, const Values& expected,
                   const std::map<std::string, int64_t>& symbols) {
  int runs = 0;
  for (Kernel made : {kernel, reversed(kernel)}) {
    // Some kernels depend on the order, as with a pipelined loop.
    Values alone = start;
    if (tw::error_text(tw::interpret(made, alone, symbols)) != "" || !same(alone, expected))
      continue;
    for (size_t out = 0; out < start.size(); ++out)
      for (const tw::BufferId in :
           tw::in_place_inputs(made, tw::BufferId{static_cast<int32_t>(out)})) {
        made.buffers[out].in_place = {made.buffer(in).name};
        Values shared = start;
        shared[out] = {{}, static_cast<size_t>(in.index)};
        CAPTURE(made.buffer(in).name);
        REQUIRE(tw::error_text(tw::interpret(made, shared, symbols)) == "");
        REQUIRE(shared[static_cast<size_t>(in.index)].bytes == expected[out].bytes);
        ++runs;
      }
  }
  return runs;
}

struct Tally {
  std::array<int, std::variant_size_v<tw::Step>> applied{};  // by kind of step
  int refused = 0, in_place = 0, may = 0;  // in_place: runs; may: kernels with a run as lowered
};

void try_schedule(uint32_t seed, Tally& tally) {
  Random r{std::mt19937(seed)};
  const std::vector<std::string (*)(Random&, const char*)> makers = {
      gemm,     symbolic_gemm, conv,       chain,      softmax, pool,  two_gemms, staged,  triangle,
      residual, residual,      accumulate, accumulate, map,     steps, steps,     running, running};
  const std::string source = r.pick(makers)(r, r.below(2) ? "f32" : "i32");
  CAPTURE(seed);
  CAPTURE(source);
  llvm::Expected<Kernel> kernel = tw::parse_kernel(source);
  REQUIRE_MESSAGE(bool(kernel), tw::error_text(kernel.takeError()));
  std::map<std::string, int64_t> symbols;
  for (const std::string& symbol : kernel->symbols) symbols[symbol] = r.from(1, 9);
  Values expected = random_arguments(*kernel, r, symbols), start = expected;
  REQUIRE(tw::error_text(tw::interpret(*kernel, expected, symbols)) == "");

  tw::Schedule schedule;
  Kernel current = *kernel;
  for (int number = 0; number < 24; ++number) {
    const tw::Step step = random_step(current, r, number);
    llvm::Expected<Kernel> next = tw::apply(current, step, &device());
    if (!next) {
      std::vector<tw::Diag> diags = tw::take_diags(next.takeError());
      REQUIRE(diags.size() == 1);
      CHECK(diags[0].code == tw::DiagCode::illegal_schedule);
      ++tally.refused;
      continue;
    }
    ++tally.applied[step.index()];
    schedule.steps.push_back(step);
    current = std::move(*next);
  }
  const std::string scheduled = tw::print(schedule), result = tw::print(current);
  CAPTURE(scheduled);
  CAPTURE(result);
  llvm::Expected<Kernel> whole = tw::apply(*kernel, schedule, &device());
  if (whole) {
    CHECK(tw::print(*whole) == result);
    CHECK(tw::error_text(tw::verify(*whole)) == "");
  } else {  // only more steps would make their scopes legal
    CHECK(tw::take_diags(whole.takeError())[0].message.starts_with("after step"));
    for (tw::Buffer& buffer : current.buffers) buffer.scope = "global";
  }
  Values actual = start;
  REQUIRE(tw::error_text(tw::interpret(current, actual, symbols)) == "");
  REQUIRE(same(actual, expected));
  tally.in_place += check_in_place(current, start, expected, symbols);
  tally.may += check_in_place(*kernel, start, expected, symbols) > 0;
  Kernel hoisted = current;
  hoisted.body = tw::hoist_guards(current.body);
  Values again = start;
  REQUIRE(tw::error_text(tw::interpret(hoisted, again, symbols)) == "");
  REQUIRE(same(again, expected));
  llvm::Expected<tw::Schedule> reparsed = tw::parse_schedule(scheduled);
  REQUIRE(bool(reparsed));
  CHECK(tw::print(*reparsed) == scheduled);
}

}  // namespace

TEST_CASE("schedule: random steps are refused or keep the results") {
  const char* given = std::getenv("TW_SEED");
  const char* rounds = std::getenv("TW_ROUNDS");
  const uint32_t first = given ? static_cast<uint32_t>(std::atoi(given)) : 1000;
  const uint32_t count = rounds ? static_cast<uint32_t>(std::atoi(rounds)) : given ? 1 : 900;
  MESSAGE("seeds from " << first);
  Tally tally;
  for (uint32_t i = 0; i < count; ++i) try_schedule(first + i, tally);
  std::string applied;
  for (size_t kind = 0; kind < tally.applied.size(); ++kind) {
    if (!given) CHECK_MESSAGE(tally.applied[kind] > 0, "no step of kind " << kind);
    applied += " " + std::to_string(tally.applied[kind]);
  }
  if (!given) CHECK(tally.in_place > tally.may / 3);
  MESSAGE("applied, by kind:" << applied << "; refused: " << tally.refused
                              << "; in place: " << tally.in_place << " of " << tally.may);
}
