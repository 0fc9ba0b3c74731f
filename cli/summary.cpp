#include "cli/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "cli/progress.h"
#include "cli/text/text_width.h"
#include "support/dates.h"

namespace tw {
namespace {

std::string device_lines(const CompileReport& r) {
  std::string text;
  for (const std::string& note : r.device_notes) text += note + "\n";
  int64_t kernels = 0, bytes = 0, registers = 0, shared = 0;
  for (const KernelReport& k : r.kernel_reports) {
    if (!k.on_device) continue;
    ++kernels, bytes += k.code_bytes;
    registers = std::max(registers, k.registers), shared = std::max(shared, k.shared_bytes);
  }
  if (kernels == 0) return text;
  text += "devices  " + std::to_string(kernels) + " kernels, " +
          format_bytes(static_cast<uint64_t>(bytes)) + " of code, at most " +
          (registers ? std::to_string(registers) + " registers and " : "") +
          format_bytes(static_cast<uint64_t>(shared)) + " a block\n";
  return text;
}

// A line a kernel: where its schedule comes from.
std::string schedule_lines(const CompileReport& r, int columns) {
  if (!r.schedules_in_use) return "";
  std::map<std::string_view, int> counts;
  for (const Pin& pin : r.schedules) ++counts[source_of(pin)];
  const auto fixed = std::ranges::count_if(r.schedules,
                                           [](const Pin& pin) { return pin.task.empty(); });
  std::string text =
      "schedules " + std::to_string(counts["tuned"]) + " tuned, " +
      std::to_string(counts["transferred"]) + " transferred, " +
      (counts.contains("predicted") ? std::to_string(counts["predicted"]) + " predicted, " : "") +
      std::to_string(counts["default"]) + " default" +
      (fixed ? ", " + std::to_string(fixed) + " of them of kernels that are not tuned" : "") + "\n";
  int64_t oldest = std::numeric_limits<int64_t>::max(), others = 0;
  for (const Pin& pin : r.schedules) {
    if (!pin.tuned) continue;
    oldest = std::min(oldest, pin.time);
    others += !pin.tool.empty() && pin.tool != std::string("tilewright ") + TW_VERSION;
  }
  if (counts["tuned"] > 0)
    text += "  measured since " + date_text(oldest) +
            (others ? ", " + std::to_string(others) + " by other versions of tilewright" : "") +
            "\n";
  for (size_t i = 0; i < r.schedules.size(); ++i) {
    const Pin& pin = r.schedules[i];
    char line[64];
    if (pin.tuned)
      std::snprintf(line, sizeof line, "  tuned   %s %9.4f ms  ", date_text(pin.time).c_str(),
                    pin.seconds * 1e3);
    else std::snprintf(line, sizeof line, "  %-11s %21s", source_of(pin), "");
    text += fit(line + (i < r.kernel_reports.size() ? r.kernel_reports[i].name + "  " : "") +
                    (pin.name.empty() ? "copy" : pin.name) +
                    (pin.left_out.empty() ? "" : " without " + pin.left_out),
                columns) +
            "\n";
  }
  return text;
}

std::string arena_line(const CompileReport& r) {
  Sizes sizes = r.example;
  const auto bytes = static_cast<uint64_t>(value_at(r.arena_bytes, sizes));
  return "arena    " + format_bytes(bytes) +
         (sizes.empty() ? "" : " at " + sizes_text(sizes, r.symbol_names)) + ", without sharing " +
         format_bytes(r.naive_arena_bytes) + ", " +
         std::to_string(std::lround(r.warm_share * 100)) + "% of it reused while in the cache\n" +
         (as_const(r.arena_bytes)
              ? ""
              : "         in bytes: " + to_string(r.arena_bytes, r.symbol_names) + "\n");
}

// Of a library for several processors.
std::string path_lines(const CompileReport& r) {
  std::string text;
  for (size_t i = 0; i < r.paths.size() && r.paths.size() > 1; ++i) {
    const PathReport& path = r.paths[i];
    text += "path     " + path.target + ": " + std::to_string(path.kernels) + " kernels, " +
            std::to_string(path.calls) + " calls, weights " + format_bytes(path.weight_bytes) +
            (i ? ", of them shared " + format_bytes(path.shared_weight_bytes) : "") + "\n";
  }
  return text;
}

// What a program needs for the object, besides its tensors.
std::string object_lines(const CompileReport& r) {
  if (!r.object) return "";
  Sizes sizes = r.example;
  const uint64_t arena = static_cast<uint64_t>(value_at(r.arena_bytes, sizes));
  return "flash    " + format_bytes(r.object->code + r.object->constants) + ": code " +
         format_bytes(r.object->code) + ", constants and weights " +
         format_bytes(r.object->constants) + "\nRAM      " +
         format_bytes(r.object->written + arena) + ": written data " +
         format_bytes(r.object->written) + ", arena " + format_bytes(arena) + "\n";
}

// Weights that have got larger by their order in memory, not by the alignment of small ones alone.
std::string growth_line(const CompileReport& r) {
  constexpr uint64_t kAlignment = 4096;
  if (r.weight_bytes <= r.constant_bytes + r.constant_bytes / 20 + kAlignment) return "";
  return "weights  " + format_bytes(r.weight_bytes) + ", in the model " +
         format_bytes(r.constant_bytes) +
         ": fast algorithms keep them in a larger form; --optimize size does not\n";
}

}  // namespace

std::string summary_text(const CompileReport& r, double seconds, bool tuned, int columns) {
  const std::string on_processor = r.host_reasons.empty()
                                       ? ""
                                       : std::to_string(r.host_reasons.size()) +
                                             " kernels on the processor; the first: " +
                                             r.host_reasons.front() + "\n";
  return r.output + ": " + format_bytes(r.artifact_bytes) + " (model " +
         format_bytes(r.model_bytes) + ", weights " + format_bytes(r.weight_bytes) + ")\n" +
         r.header + "\nkernels  " + std::to_string(r.kernels) + " distinct, " +
         std::to_string(r.calls) + " calls of " + std::to_string(r.groups) + " groups, " +
         std::to_string(r.nodes) + " nodes\n" + path_lines(r) + arena_line(r) + object_lines(r) +
         growth_line(r) + on_processor + device_lines(r) + schedule_lines(r, columns) +
         "compiled " + (tuned ? "and tuned in " : "in ") + format_seconds(seconds) +
         ", peak memory " + format_bytes(r.peak_memory_bytes) + "\n";
}

}  // namespace tw
