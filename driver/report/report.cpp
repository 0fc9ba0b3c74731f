#include "driver/report/report.h"

#include <algorithm>

#include "driver/compile/example_sizes.h"
#include "support/dates.h"

namespace tw {
namespace {

const char* place_text(Place place) {
  switch (place) {
    case Place::input: return "input";
    case Place::output: return "output";
    case Place::arena: return "arena";
    case Place::weights: return "weights";
    case Place::growable: return "growable";
  }
  TW_UNREACHABLE("bad place");
}

int64_t bytes_at(DType dtype, const std::vector<Expr>& dims, Sizes& sizes) {
  int64_t bytes = dtype_bytes(dtype);
  for (const Expr& dim : dims) bytes *= value_at(dim, sizes);
  return bytes;
}

ReportArgument argument_at(const Operand& operand, std::string name, int64_t bytes, Sizes& sizes) {
  const bool numbered = operand.place == Place::input || operand.place == Place::output;
  return {std::move(name), place_text(operand.place),
          numbered ? operand.index : value_at(operand.offset, sizes), bytes};
}

// Remembers which call wrote bytes last.
class Writers {
 public:
  void read(const ReportArgument& argument, std::vector<int>& after) const {
    for (size_t i = writes_.size(); i-- > 0;) {
      const auto& [call, at] = writes_[i];
      if (at.place != argument.place || at.offset >= argument.offset + argument.bytes ||
          argument.offset >= at.offset + at.bytes)
        continue;
      after.push_back(call);
      if (at.offset <= argument.offset && at.offset + at.bytes >= argument.offset + argument.bytes)
        return;
    }
  }
  void write(int call, const ReportArgument& argument) { writes_.push_back({call, argument}); }

 private:
  std::vector<std::pair<int, ReportArgument>> writes_;
};

void add_kernel_arguments(const Kernel& kernel, const KernelCall& call, Sizes& sizes, int number,
                          Writers& writers, ReportCall& out) {
  Sizes own;
  for (size_t s = 0; s < kernel.symbols.size() && s < call.symbols.size(); ++s)
    own[kernel.symbols[s]] = value_at(call.symbols[s], sizes);
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    const Buffer& buffer = kernel.buffers[a];
    out.arguments.push_back(argument_at(call.arguments[a], buffer.name,
                                        bytes_at(buffer.dtype, buffer.shape, own), sizes));
    if (buffer.role == BufferRole::input) writers.read(out.arguments.back(), out.after);
  }
  for (size_t a = 0; a < call.arguments.size(); ++a)
    if (kernel.buffers[a].role == BufferRole::output) writers.write(number, out.arguments[a]);
}

void add_function_arguments(const KernelCall& call, Sizes& sizes, int number, Writers& writers,
                            ReportCall& out) {
  const auto add = [&](const ExternCall::View& view, const char* name) {
    if (view.argument < 0) return false;
    out.arguments.push_back(argument_at(call.arguments[static_cast<size_t>(view.argument)], name,
                                        bytes_at(view.dtype, view.dims, sizes), sizes));
    return true;
  };
  for (const ExternCall::View& view : call.function->inputs)
    if (add(view, "in")) writers.read(out.arguments.back(), out.after);
  for (const ExternCall::View& view : call.function->outputs)
    if (add(view, "out")) writers.write(number, out.arguments.back());
}

void add_schedule(const CompileReport& compiled, size_t kernel, ReportCall& call) {
  if (kernel < compiled.schedules.size()) {
    const Pin& pin = compiled.schedules[kernel];
    call.algorithm = pin.algorithm, call.source = source_of(pin), call.schedule = pin.schedule;
    if (pin.tuned) call.tuned = date_text(pin.time);
  }
  if (kernel >= compiled.kernel_reports.size()) return;
  const KernelReport& code = compiled.kernel_reports[kernel];
  call.code_bytes = code.code_bytes, call.spills = code.spills + code.reloads;
}

Json to_json(const ReportCall& c) {
  Json::Array arguments;
  for (const ReportArgument& a : c.arguments)
    arguments.push_back(Json::Object{
        {"name", a.name}, {"place", a.place}, {"offset", a.offset}, {"bytes", a.bytes}});
  return Json::Object{
      {"name", c.name},         {"kernel", c.kernel},       {"after", json_array(c.after)},
      {"arguments", arguments}, {"algorithm", c.algorithm}, {"source", c.source},
      {"schedule", c.schedule}, {"tuned", c.tuned},         {"code_bytes", c.code_bytes},
      {"spills", c.spills},     {"device", c.device}};
}

}  // namespace

Report make_report(const PlannedProgram& planned, const CompileReport& compiled,
                   const Target& target) {
  Report report;
  Sizes sizes = compiled.example;
  report.model = planned.program.name, report.target = target.name;
  report.sizes = sizes.empty() ? "" : sizes_text(sizes, compiled.symbol_names);
  report.weight_bytes = compiled.weight_bytes, report.artifact_bytes = compiled.artifact_bytes;
  report.naive_arena_bytes = compiled.naive_arena_bytes;
  report.arena_bytes = value_at(compiled.arena_bytes, sizes);
  Writers writers;
  for (const KernelCall& call : planned.program.calls) {
    ReportCall& out = report.calls.emplace_back();
    const int number = static_cast<int>(report.calls.size()) - 1;
    out.name = call.name, out.device = call.device;
    if (call.function) {
      out.kernel = call.function->function;
      add_function_arguments(call, sizes, number, writers, out);
    } else {
      const auto k = static_cast<size_t>(call.kernel);
      out.kernel = planned.program.kernels[k].name;
      add_kernel_arguments(planned.program.kernels[k], call, sizes, number, writers, out);
      add_schedule(compiled, k, out);
    }
    std::ranges::sort(out.after);
    out.after.erase(std::unique(out.after.begin(), out.after.end()), out.after.end());
  }
  for (size_t b = 0; b < planned.buffers.size() && b < planned.arena.offsets.size(); ++b) {
    const Lifetime& life = planned.buffers[b];
    report.buffers.push_back({value_at(planned.arena.offsets[b], sizes),
                              value_at(life.bytes, sizes), life.first, life.last});
  }
  return report;
}

void add_errors(const NodeErrors& errors, const std::string& note, Report& report) {
  report.errors_note = note;
  for (const NodeDifference& node : errors.results) {
    const auto call = std::ranges::find(report.calls, node.group, &ReportCall::name);
    report.errors.push_back(
        {node.group, node.value, node.type,
         call == report.calls.end() ? -1 : static_cast<int>(call - report.calls.begin()),
         node.difference.max_rel, node.difference.max_ulp, node.difference.max_abs});
  }
}

void add_accuracy(const AccuracyReport& accuracy, const std::string& note, Report& report) {
  report.choices_note = note;
  for (const LayerAccuracy& l : accuracy.layers) {
    const auto call = std::ranges::find(report.calls, l.layer.group, &ReportCall::name);
    report.choices.push_back(
        {l, call == report.calls.end() ? -1 : static_cast<int>(call - report.calls.begin())});
  }
}

double ReportEstimate::hot_percent() const {
  const double most = hot.once() * peak_flops / 2;
  return most > 0 ? 100 * hot.multiply_adds / most : 0;
}

Json::Array estimates_json(const Report& report) {
  Json::Array out;
  for (size_t i = 0; i < report.estimates.size(); ++i) {
    const ReportEstimate& e = report.estimates[i];
    Json::Object hot{{"cycles", e.hot.cycles},
                     {"iterations", e.hot.iterations},
                     {"cycles_an_iteration", e.hot.once()},
                     {"multiply_adds_an_iteration", e.hot.multiply_adds},
                     {"spills_an_iteration", e.hot.spills},
                     {"peak_percent", e.hot_percent()}};
    out.push_back(Json::Object{{"call", report.calls[i].name},
                               {"kernel", report.calls[i].kernel},
                               {"problem", e.problem},
                               {"cycles", e.cycles},
                               {"flops", e.flops},
                               {"peak_flops", e.peak_flops},
                               {"hot_loop", e.hot.iterations > 0 ? Json(std::move(hot)) : Json()}});
  }
  return out;
}

static Json to_json(const ReportChoice& c) {
  const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(); };
  return Json::Object{{"name", c.layer.layer.name},
                      {"choice", c.layer.layer.choice},
                      {"error", number(c.layer.error)},
                      {"saved_ms", number(c.layer.saved_ms)},
                      {"weight_bytes", c.layer.layer.weight_bytes},
                      {"exact_weight_bytes", c.layer.layer.exact_bytes},
                      {"state", c.layer.exact ? "taken back" : "kept"},
                      {"call", c.call}};
}

Json to_json(const Report& r) {
  Json::Array calls, buffers, times, errors, choices;
  for (const ReportChoice& choice : r.choices) choices.push_back(to_json(choice));
  for (const ReportCall& call : r.calls) calls.push_back(to_json(call));
  for (const ReportBuffer& b : r.buffers)
    buffers.push_back(Json::Object{
        {"offset", b.offset}, {"bytes", b.bytes}, {"first", b.first}, {"last", b.last}});
  for (const ReportTime& t : r.times)
    times.push_back(Json::Object{{"ms", t.ms},
                                 {"roof_ms", t.roof_ms},
                                 {"flops", t.flops},
                                 {"bytes", t.bytes},
                                 {"bound", t.bound}});
  for (const ReportError& e : r.errors)
    errors.push_back(Json::Object{{"name", e.name},
                                  {"value", e.value},
                                  {"type", e.type},
                                  {"call", e.call},
                                  {"max_rel", e.max_rel},
                                  {"max_ulp", e.max_ulp},
                                  {"max_abs", e.max_abs}});
  return Json::Object{{"kind", "model"},
                      {"model", r.model},
                      {"target", r.target},
                      {"sizes", r.sizes},
                      {"weight_bytes", r.weight_bytes},
                      {"artifact_bytes", r.artifact_bytes},
                      {"naive_arena_bytes", r.naive_arena_bytes},
                      {"arena_bytes", r.arena_bytes},
                      {"calls", calls},
                      {"buffers", buffers},
                      {"times", times},
                      {"no_times", r.no_times},
                      {"estimates", estimates_json(r)},
                      {"clock", r.clock},
                      {"estimated_alike", json_array(r.estimated_alike)},
                      {"peaks", r.peaks},
                      {"gflops", r.gflops},
                      {"dram_gbs", r.dram_gbs},
                      {"errors", errors},
                      {"errors_note", r.errors_note},
                      {"choices", choices},
                      {"choices_note", r.choices_note}};
}

}  // namespace tw
