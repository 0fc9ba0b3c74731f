#include "cli/compile_report.h"

#include <algorithm>
#include <cstdio>

#include "cli/text/became.h"
#include "support/dates.h"

namespace tw {

static void add_schedule(Json::Object& kernel, const Pin& pin, int64_t tuned_since) {
  const KernelStory story = story_of(pin, tuned_since);
  kernel.push_back({"schedule", source_of(pin)});
  kernel.push_back({"became", became_name(story.became)});
  if (story.became == Became::default_kept) kernel.push_back({"trials", story.trials});
  if (!pin.task.empty()) kernel.push_back({"task", pin.task});
  if (!pin.left_out.empty()) kernel.push_back({"left_out", pin.left_out});
  if (!(pin.seconds > 0)) return;
  kernel.push_back({"tuned", date_text(pin.time)});
  kernel.push_back({"tuned_seconds", pin.seconds});
}

Json::Object to_json(const CompileReport& r, const std::vector<PassTime>& passes, double seconds,
                     int64_t tuned_since) {
  Json::Array stages, times, kernels;
  for (const StageReport& s : r.stages)
    stages.push_back(Json::Object{{"name", s.name}, {"seconds", s.seconds}});
  for (const PassTime& p : passes)
    times.push_back(Json::Object{
        {"name", p.pass}, {"seconds", p.seconds}, {"changed", p.changed}, {"report", p.report}});
  for (size_t i = 0; i < r.kernel_reports.size(); ++i) {
    const KernelReport& k = r.kernel_reports[i];
    Json::Object kernel{{"name", k.name},
                        {"code_bytes", k.code_bytes},
                        {"spills", k.spills},
                        {"reloads", k.reloads},
                        {"registers", k.registers},
                        {"stack_bytes", k.stack_bytes},
                        {"shared_bytes", k.shared_bytes}};
    if (i < r.schedules.size()) add_schedule(kernel, r.schedules[i], tuned_since);
    kernels.push_back(std::move(kernel));
  }
  Sizes sizes = r.example;
  Json::Object out{
      {"output", r.output},
      {"header", r.header},
      {"seconds", seconds},
      {"nodes", r.nodes},
      {"groups", r.groups},
      {"kernels", r.kernels},
      {"cached_kernels", std::ranges::count_if(r.kernel_reports, &KernelReport::stored)},
      {"calls", r.calls},
      {"model_bytes", r.model_bytes},
      {"weight_bytes", r.weight_bytes},
      {"arena_bytes", value_at(r.arena_bytes, sizes)},
      {"naive_arena_bytes", r.naive_arena_bytes},
      {"warm_share", r.warm_share},
      {"artifact_bytes", r.artifact_bytes},
      {"peak_memory_bytes", r.peak_memory_bytes},
      {"stages", stages},
      {"kernel_reports", kernels}};
  if (r.object)
    out.push_back({"memory", Json::Object{{"code_bytes", r.object->code},
                                          {"constant_bytes", r.object->constants},
                                          {"written_bytes", r.object->written}}});
  if (!r.faults.empty()) out.push_back({"faults", json_array(r.faults)});
  if (!sizes.empty()) {
    Json::Object at;
    for (const auto& [symbol, size] : sizes)
      at.push_back({symbol_name(r.symbol_names, symbol), size});
    out.push_back({"arena", to_string(r.arena_bytes, r.symbol_names)});
    out.push_back({"sizes", at});
  }
  if (!r.warnings.empty()) out.push_back({"warnings", json_array(r.warnings)});
  if (!r.notes.empty()) out.push_back({"notes", json_array(r.notes)});
  if (!r.device_notes.empty()) out.push_back({"device_notes", json_array(r.device_notes)});
  if (!r.host_reasons.empty()) out.push_back({"on_processor", json_array(r.host_reasons)});
  if (!passes.empty()) out.push_back({"passes", times});
  return out;
}

std::string remarks(const CompileReport& r) {
  std::string text;
  for (const std::string& fault : r.faults) text += "warning: " + fault + "\n";
  for (const std::string& warning : r.warnings) text += "warning: " + warning + "\n";
  for (const std::string& note : r.notes) text += "note: " + note + "\n";
  return text;
}

std::string pass_table(const std::vector<PassTime>& passes) {
  std::string text;
  for (const PassTime& p : passes) {
    char line[96];
    std::snprintf(line, sizeof line, "%9.3f ms  %-34s %s", p.seconds * 1e3, p.pass.c_str(),
                  p.changed ? "changed" : "");
    text += std::string(line) + (p.report.empty() ? "" : "  " + p.report) + "\n";
  }
  return text;
}

}  // namespace tw
