// Ansor's features of an innermost statement (reference: "Ansor: Generating High-Performance Tensor
// Programs for Deep Learning", and its feature extractor), with two of our own: if a buffer lies in
// registers, and the guards. Counts are sign(x) * log2(|x| + 1).
#include <algorithm>
#include <array>
#include <cmath>

#include "autotune/features/features.h"
#include "autotune/features/named_row.h"
#include "autotune/features/statements.h"

namespace tw {
namespace {
using namespace features;
constexpr size_t kBuffers = 5;
constexpr int kCurvePoints = 10;
constexpr double kLineBytes = 64;

class LoopsRow : public NamedRow {
 public:
  using NamedRow::NamedRow;
  void add(const std::string& name, double value) {
    raw(name, std::copysign(std::log2(std::abs(value) + 1), value));
  }
  template <size_t N>
  void choice(const std::string& name, const std::array<const char*, N>& words, size_t chosen) {
    for (size_t i = 0; i < N; ++i) raw(name + words[i], i == chosen);
  }
};

void add_ops(const Statement& s, LoopsRow& row) {
  const double n = s.iterations();
  for (const bool floats : {true, false}) {
    const OpCounts& ops = floats ? s.floats : s.ints;
    const std::string at = floats ? "float_" : "int_";
    row.add(at + "mad", n * ops.mad);
    row.add(at + "add", n * ops.add);
    row.add(at + "mul", n * ops.mul);
    row.add(at + "div", n * ops.div);
    row.add(at + "compare", n * ops.compare);
    row.add(at + "math", n * ops.math);
    row.add(at + "other", n * ops.other);
  }
  row.add("bool", n * s.bools);
  row.add("select", n * s.selects);
}

constexpr std::array<const char*, 8> kPositions = {
    "none",         "inner_spatial", "middle_spatial", "outer_spatial",
    "inner_reduce", "middle_reduce", "outer_reduce",   "mixed"};

// Adds features of the loops of one kind: number, product, innermost extent, and position.
void add_kind(const Statement& s, const std::string& name, LoopKind kind, LoopsRow& row) {
  double number = 0, product = 1, inner = 1;
  size_t position = 0;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    const stmt::Loop& loop = *s.loops[i].node;
    if (loop.kind != kind) continue;
    ++number;
    product *= s.loops[i].extent;
    inner = s.loops[i].extent;
    const size_t place = i + 1 == s.loops.size() ? 1 : i > 0 ? 2 : 3;
    const size_t here = place + (loop.role == AxisRole::spatial ? 0 : 3);
    position = number == 1 || (position < 4) == (here < 4) ? here : kPositions.size() - 1;
  }
  row.add(name + ".loops", number);
  row.add(name + ".product", number > 0 ? product : 0);
  row.add(name + ".innermost", number > 0 ? inner : 0);
  row.choice(name + ".", kPositions, position);
}

void add_device(const Statement& s, LoopsRow& row) {
  constexpr std::array<const char*, 6> axes = {"block.x",  "block.y",  "block.z",
                                               "thread.x", "thread.y", "thread.z"};
  std::array<double, 6> lengths = {};
  double virtual_threads = 0, bound = 0;
  for (const LoopAround& l : s.loops) {
    if (l.node->kind == LoopKind::vthread)
      virtual_threads = std::max(1.0, virtual_threads) * l.extent;
    if (l.node->kind != LoopKind::bind) continue;
    bound = 1;
    for (size_t i = 0; i < axes.size(); ++i)
      if (l.node->axis == axes[i]) lengths[i] = l.extent;
  }
  row.raw("bound", bound);
  for (size_t i = 0; i < axes.size(); ++i) row.add(axes[i], lengths[i]);
  row.add("virtual_threads", virtual_threads);
}

enum class ReuseKind : uint8_t { loop, serial, none };
struct Reuse {
  ReuseKind kind = ReuseKind::none;
  // Iterations and bytes between two uses; `times` is how often the data are used again.
  double iterations = 0, bytes = 0, times = 0;
};

double touched_bytes(const Kernel& kernel, const Statement& s, size_t level) {
  double bytes = 0;
  for (const Touch& t : s.touches)
    bytes += elements(kernel, s, t, level) * dtype_bytes(kernel.buffer(t.buffer).dtype);
  return bytes;
}

// The reuse by the innermost loop that does not move the buffer, or else by another statement that
// uses the buffer in a common loop.
Reuse reuse_of(const Kernel& kernel, const std::vector<Statement>& all, const Statement& s,
               const Touch& touch) {
  for (size_t i = s.loops.size(); i-- > 0;)
    if (!moves(touch, i) && s.loops[i].extent > 1)
      return {ReuseKind::loop, s.iterations(i + 1), touched_bytes(kernel, s, i + 1),
              s.loops[i].extent};
  Reuse nearest;
  for (const Statement& other : all) {
    const bool uses = std::any_of(other.touches.begin(), other.touches.end(),
                                  [&](const Touch& t) { return t.buffer == touch.buffer; });
    if (&other == &s || !uses) continue;
    size_t common = 0;
    while (common < s.loops.size() && common < other.loops.size() &&
           s.loops[common].node == other.loops[common].node)
      ++common;
    const double bytes = touched_bytes(kernel, s, common) + touched_bytes(kernel, other, common);
    if (nearest.kind == ReuseKind::none || bytes < nearest.bytes)
      nearest = {ReuseKind::serial, s.iterations(common), bytes, nearest.times};
    nearest.times += 1;
  }
  return nearest;
}

struct Traffic {
  const Touch* touch;
  double bytes, unique_bytes, lines, unique_lines, stride;
};

Traffic traffic_of(const Kernel& kernel, const Statement& s, const Touch& touch) {
  const double element = dtype_bytes(kernel.buffer(touch.buffer).dtype), n = s.iterations();
  const double uses = static_cast<double>(touch.uses.size());
  size_t moving = s.loops.size();  // behind the innermost loop that moves the buffer
  while (moving > 0 && !moves(touch, moving - 1)) --moving;
  double step = 0;
  if (moving > 0)
    for (const Use& use : touch.uses) step = std::max(step, stride(kernel, s, use, moving - 1));
  const double repeats = s.iterations(moving);  // iterations at one place
  const double lines_touched = moving > 0 ? n / repeats * std::min(1.0, step * element / kLineBytes)
                                          : 1;
  return {&touch,
          uses * n * element,
          elements(kernel, s, touch, 0) * element,
          uses * std::max(1.0, lines_touched),
          lines(kernel, s, touch, 0, kLineBytes),
          step};
}

void add_buffers(const Kernel& kernel, const std::vector<Statement>& all, const Statement& s,
                 LoopsRow& row) {
  std::vector<Traffic> list;
  for (const Touch& touch : s.touches) list.push_back(traffic_of(kernel, s, touch));
  std::stable_sort(list.begin(), list.end(), [](const Traffic& a, const Traffic& b) {
    return a.lines != b.lines ? a.lines > b.lines : a.bytes > b.bytes;
  });
  for (size_t b = 0; b < kBuffers; ++b) {
    const std::string at = "buffer" + std::to_string(b) + ".";
    const bool there = b < list.size();
    const Traffic t = there ? list[b] : Traffic{nullptr, 0, 0, 0, 0, 0};
    const Reuse reuse = there ? reuse_of(kernel, all, s, *t.touch) : Reuse();
    const size_t access = !there                              ? 3
                          : t.touch->read && t.touch->written ? 2
                          : t.touch->written                  ? 1
                                                              : 0;
    row.choice(at, std::array<const char*, 3>{"read", "write", "read_write"}, access);
    row.raw(at + "register", there && kernel.buffer(t.touch->buffer).scope == "register");
    row.add(at + "bytes", t.bytes);
    row.add(at + "unique_bytes", t.unique_bytes);
    row.add(at + "lines", t.lines);
    row.add(at + "unique_lines", t.unique_lines);
    row.choice(at, std::array<const char*, 3>{"reuse_loop", "reuse_serial", "reuse_none"},
               there ? static_cast<size_t>(reuse.kind) : 3);
    row.add(at + "reuse_distance", reuse.iterations);
    row.add(at + "reuse_distance_bytes", reuse.bytes);
    row.add(at + "reuse_count", reuse.times);
    const double times = std::max(1.0, reuse.times);
    row.add(at + "bytes_by_reuse", t.bytes / times);
    row.add(at + "unique_bytes_by_reuse", t.unique_bytes / times);
    row.add(at + "lines_by_reuse", t.lines / times);
    row.add(at + "unique_lines_by_reuse", t.unique_lines / times);
    row.add(at + "stride", t.stride);
  }
}

// log2 of operations per byte from the innermost loop outwards, at ten steps of log2(operations).
void add_intensity(const Kernel& kernel, const Statement& s, LoopsRow& row) {
  std::vector<double> ops, bytes;
  const double each = std::max(1.0, s.floats.total());
  for (size_t level = s.loops.size() + 1; level-- > 0;) {
    ops.push_back(std::log2(each * s.iterations(level)));
    bytes.push_back(std::log2(std::max(1.0, touched_bytes(kernel, s, level))));
  }
  for (int i = 1; i <= kCurvePoints; ++i) {
    const double at = ops.back() * i / kCurvePoints;
    size_t j = 1;
    while (j + 1 < ops.size() && ops[j] < at) ++j;
    double value = bytes.front();
    if (ops.size() > 1) {
      const double width = ops[j] - ops[j - 1],
                   part = width > 0 ? std::clamp((at - ops[j - 1]) / width, 0.0, 1.0) : 1.0;
      value = bytes[j - 1] + part * (bytes[j] - bytes[j - 1]);
    }
    row.raw("intensity[" + std::to_string(i - 1) + "]", at - value);
  }
}

FeatureRow row_of(const Kernel& kernel, const std::vector<Statement>& all, const Statement& s,
                  std::vector<std::string>* names) {
  LoopsRow row(names);
  add_ops(s, row);
  add_kind(s, "vector", LoopKind::vector, row);
  add_kind(s, "unroll", LoopKind::unroll, row);
  add_kind(s, "parallel", LoopKind::parallel, row);
  add_device(s, row);
  add_buffers(kernel, all, s, row);
  add_intensity(kernel, s, row);
  const Touch& written = s.touches.front();
  const bool temp = kernel.buffer(written.buffer).role == BufferRole::temp;
  const double size = temp ? bytes_of(kernel, written.buffer) : 0,
               stored = elements(kernel, s, written, 0);
  row.add("alloc.bytes", size);
  row.add("alloc.bytes_stored", size * s.iterations() / stored);
  row.add("alloc.stores", stored);
  row.add("alloc.stores_each", s.iterations() / stored);
  row.add("iterations", s.iterations());
  row.add("loops", static_cast<double>(s.loops.size()));
  row.add("guards", s.guards);
  return row.values;
}

}  // namespace

std::vector<FeatureRow> loop_rows(const Kernel& kernel) {
  const std::vector<Statement> all = statements_of(kernel);
  std::vector<FeatureRow> rows;
  for (const Statement& s : all) rows.push_back(row_of(kernel, all, s, nullptr));
  if (rows.empty()) rows.emplace_back(1, 0.0f);
  return rows;
}

std::vector<std::string> loop_feature_names() {
  Kernel kernel{"k", {}, {{"x", DType::f32, {Expr(1)}, BufferRole::output}}, {}, nullptr};
  kernel.body = make_store(
      {.label = "x", .buffer = BufferId{0}, .indices = {Expr(0)}, .value = float_imm(0)});
  const std::vector<Statement> all = statements_of(kernel);
  std::vector<std::string> names;
  row_of(kernel, all, all.front(), &names);
  return names;
}

Features loop_features() {
  return {"loops", false,
          [](const Candidate& candidate) { return loop_rows(candidate.run->kernel); }};
}

}  // namespace tw
