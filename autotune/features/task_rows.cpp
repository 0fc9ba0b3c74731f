// Features that predictors read beside the schedule: the task, and the machine.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "autotune/features/features.h"
#include "autotune/features/named_row.h"
#include "autotune/features/statements.h"
#include "ir/schedule/arguments.h"

namespace tw {
namespace {
using namespace features;
constexpr size_t kSpatial = 6, kReduce = 4, kOperands = 4;  // columns of the main statement
constexpr CurveShape kOneShotCurves{3, 30};
constexpr size_t kOneShotKnobs = 20, kOneShotTask = 8;

double log_of(double value) { return std::log2(1 + std::max(0.0, value)); }

class TaskRow : public NamedRow {
 public:
  using NamedRow::NamedRow;
  void add(const std::string& name, const std::vector<double>& list, size_t length) {
    for (size_t i = 0; i < length; ++i)
      raw(name + "[" + std::to_string(i) + "]", i < list.size() ? list[i] : 0);
  }
};

void add_operators(const std::vector<Statement>& all, TaskRow& row) {
  OpCounts sum;
  double stores = 0;
  for (const Statement& s : all) {
    const double n = s.iterations();
    sum.mad += n * s.floats.mad, sum.add += n * s.floats.add, sum.mul += n * s.floats.mul;
    sum.div += n * s.floats.div, sum.compare += n * s.floats.compare;
    sum.math += n * s.floats.math, stores += n;
  }
  row.raw("mad", log_of(sum.mad)), row.raw("add", log_of(sum.add));
  row.raw("mul", log_of(sum.mul)), row.raw("div", log_of(sum.div));
  row.raw("compare", log_of(sum.compare)), row.raw("math", log_of(sum.math));
  row.raw("stores", log_of(stores));
  row.raw("statements", static_cast<double>(all.size()));
}

void add_buffers(const Kernel& kernel, TaskRow& row) {
  std::map<BufferRole, double> bytes;
  for (size_t b = 0; b < kernel.buffers.size(); ++b)
    bytes[kernel.buffers[b].role] += bytes_of(kernel, BufferId{static_cast<int32_t>(b)});
  row.raw("bytes.input", log_of(bytes[BufferRole::input]));
  row.raw("bytes.constant", log_of(bytes[BufferRole::constant]));
  row.raw("bytes.output", log_of(bytes[BufferRole::output]));
  row.raw("bytes.temp", log_of(bytes[BufferRole::temp]));
}

// Adds the main statement: its loops from the innermost outwards, and the elements that it touches.
void add_main(const Kernel& kernel, const std::vector<Statement>& all, TaskRow& row) {
  const Statement* main = main_statement(all);
  std::vector<double> spatial, reduce, touched;
  if (main) {
    for (const LoopAround& loop : main->loops) {
      if (loop.extent <= 1) continue;
      (loop.node->role == AxisRole::spatial ? spatial : reduce).push_back(log_of(loop.extent));
    }
    for (const Touch& touch : main->touches)
      touched.push_back(log_of(elements(kernel, *main, touch, 0)));
  }
  row.raw("main.spatial", static_cast<double>(spatial.size()));
  row.raw("main.reduce", static_cast<double>(reduce.size()));
  std::ranges::reverse(spatial);  // innermost first, as there always is one
  std::ranges::reverse(reduce);
  row.add("main.spatial", spatial, kSpatial);
  row.add("main.reduce", reduce, kReduce);
  row.add("main.elements", touched, kOperands);
  row.raw("main.share", main && main->iterations() > 0 ? 1 : 0);
}

FeatureRow make_task_row(const Kernel& lowered, std::vector<std::string>* names) {
  const std::vector<Statement> all = statements_of(lowered);
  TaskRow row(names);
  add_operators(all, row);
  add_buffers(lowered, row);
  add_main(lowered, all, row);
  return std::move(row.values);
}

// Puts numbers at the right end of a part of the row, as many as fit.
void place_right(FeatureRow& row, size_t begin, size_t length, std::vector<float> part) {
  part.resize(std::min(part.size(), length));
  std::ranges::copy(part, row.begin() + static_cast<ptrdiff_t>(begin + length - part.size()));
}

// Four extents of the first buffer with the role; leading extents beyond four are multiplied.
std::vector<float> four_extents(const Kernel& kernel, BufferRole role) {
  const auto buffer = std::ranges::find(kernel.buffers, role, &Buffer::role);
  std::vector<float> extents;
  if (buffer == kernel.buffers.end()) return {0, 0, 0, 0};
  for (const Expr& e : buffer->shape)
    extents.push_back(static_cast<float>(as_const(e).value_or(static_cast<int64_t>(kSymbolValue))));
  while (extents.size() > 4) {
    extents[1] *= extents[0];
    extents.erase(extents.begin());
  }
  extents.insert(extents.begin(), 4 - extents.size(), 0.0f);
  return extents;
}

}  // namespace

FeatureRow task_row(const Kernel& lowered) { return make_task_row(lowered, nullptr); }

std::vector<std::string> task_feature_names() {
  std::vector<std::string> names;
  make_task_row({"k", {}, {}, {}, make_sequence({})}, &names);
  return names;
}

FeatureRow one_shot_row(const Kernel& lowered, const Schedule& schedule, const Kernel& scheduled) {
  FeatureRow curves = curve_row(scheduled, kOneShotCurves);
  std::erase_if(curves,
                [](float value) { return std::isnan(value); });  // drops buffers that do not exist
  std::vector<float> knobs;
  for (const Step& step : schedule.steps)
    for (const StepArgument& argument : arguments(step))
      if (const auto* number = std::get_if<int64_t>(&argument))
        knobs.push_back(static_cast<float>(*number));
  std::vector<float> task = four_extents(lowered, BufferRole::input);
  const std::vector<float> weights = four_extents(lowered, BufferRole::constant);
  task.insert(task.end(), weights.begin(), weights.end());
  FeatureRow row(kOneShotCurves.columns() + kOneShotKnobs + kOneShotTask, 0.0f);
  place_right(row, 0, kOneShotCurves.columns(), std::move(curves));
  place_right(row, kOneShotCurves.columns(), kOneShotKnobs, std::move(knobs));
  place_right(row, kOneShotCurves.columns() + kOneShotKnobs, kOneShotTask, std::move(task));
  return row;
}

std::vector<std::string> one_shot_feature_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kOneShotCurves.columns(); ++i)
    names.push_back("curve[" + std::to_string(i) + "]");
  for (size_t i = 0; i < kOneShotKnobs; ++i) names.push_back("knob[" + std::to_string(i) + "]");
  for (size_t i = 0; i < kOneShotTask; ++i) names.push_back("task[" + std::to_string(i) + "]");
  return names;
}

namespace {
std::vector<std::pair<const char*, double>> hardware_of(const Target& target, int threads) {
  const CoreRates rates = core_rates(target);
  return {{"threads", static_cast<double>(threads)},
          {"vector_bytes", target.vector_bits / 8.0},
          {"vector_registers", static_cast<double>(target.vector_registers)},
          {"l1_bytes", static_cast<double>(target.l1_bytes)},
          {"l2_bytes", static_cast<double>(target.l2_bytes)},
          {"l3_bytes", static_cast<double>(target.l3_bytes)},
          {"clock", rates.clock},
          {"multiply_adds.f32", rates.f32},
          {"multiply_adds.i8", rates.i8},
          {"loads", rates.loads},
          {"stores", rates.stores},
          {"bytes.l2", rates.l2_bytes},
          {"bytes.l3", rates.l3_bytes},
          {"bytes.memory", rates.memory_bytes},
          {"bytes.tensors", rates.tensor_bytes},
          {"scattered", rates.scattered}};
}
}  // namespace

FeatureRow hardware_row(const Target& target, int threads) {
  FeatureRow row;
  for (const auto& [name, value] : hardware_of(target, threads))
    row.push_back(static_cast<float>(value));
  return row;
}

std::vector<std::string> hardware_feature_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : hardware_of(baseline_target(Arch::x86_64), 1))
    names.emplace_back(name);
  return names;
}

}  // namespace tw
