#include "cli/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/progress.h"
#include "cli/text/became.h"
#include "cli/text/formatted.h"
#include "cli/text/text_width.h"
#include "packager/header.h"
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

constexpr int kKernelColumns = 24;  // columns of a kernel's name

double calls_of(const CompileReport& r, size_t kernel) {
  return kernel < r.kernel_calls.size() ? static_cast<double>(r.kernel_calls[kernel]) : 1;
}

// A line for each kernel: the fate of its schedule, its time if that was measured, and its share of
// all measured times
std::string schedule_lines(const CompileReport& r, int64_t tuned_since, int columns) {
  if (!r.schedules_in_use) return "";
  std::array<int, kBecameCount> counts{};
  int64_t oldest = std::numeric_limits<int64_t>::max(), others = 0;
  double all = 0;
  for (size_t i = 0; i < r.schedules.size(); ++i) {
    const Pin& pin = r.schedules[i];
    ++counts[static_cast<size_t>(story_of(pin, tuned_since).became)];
    all += calls_of(r, i) * pin.seconds;
    if (!pin.tuned) continue;
    oldest = std::min(oldest, pin.time);
    others += !pin.tool.empty() && pin.tool != std::string("tilewright ") + TW_VERSION;
  }
  std::string text = "schedules";
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      text += (text == "schedules" ? " " : ", ") + std::to_string(counts[i]) + " " +
              became_text(static_cast<Became>(i));
  text += "\n";
  if (oldest != std::numeric_limits<int64_t>::max())
    text += "  measured since " + date_text(oldest) +
            (others ? ", " + std::to_string(others) + " by other versions of tilewright" : "") +
            "\n";
  for (size_t i = 0; i < r.schedules.size(); ++i) {
    const Pin& pin = r.schedules[i];
    const std::string time = pin.seconds > 0 && all > 0
                                 ? formatted("%9.4f ms %5.1f%%", pin.seconds * 1e3,
                                             100 * calls_of(r, i) * pin.seconds / all)
                                 : "";
    const std::string story = formatted(
        "  %-28s %19s  ", to_string(story_of(pin, tuned_since)).c_str(), time.c_str());
    text += story +
            fit((i < r.kernel_reports.size() ? r.kernel_reports[i].name + "  " : "") +
                    (pin.name.empty() ? "copy" : pin.name),
                std::max(kKernelColumns, columns - static_cast<int>(story.size()))) +
            (pin.left_out.empty() ? "" : " without " + pin.left_out) + "\n";
  }
  return text;
}

// The arena as a function of the sizes, if people can read it; else the header has it.
std::string arena_formula(const CompileReport& r) {
  if (as_const(r.arena_bytes)) return "";
  const std::string text = to_string(r.arena_bytes, r.symbol_names);
  return "         in bytes: " +
         (text.size() <= kReadableColumns ? text : "the function ..._arena_bytes of " + r.header) +
         "\n";
}

std::string arena_line(const CompileReport& r) {
  Sizes sizes = r.example;
  const auto bytes = static_cast<uint64_t>(value_at(r.arena_bytes, sizes));
  return "arena    " + format_bytes(bytes) +
         (sizes.empty() ? "" : " at " + sizes_text(sizes, r.symbol_names)) + ", without sharing " +
         format_bytes(r.naive_arena_bytes) + ", " +
         std::to_string(std::lround(r.warm_share * 100)) + "% of it reused while in the cache\n" +
         arena_formula(r);
}

// The programs of a library for several processors
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

// The memory that a program needs for the object, besides its tensors
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

// A note on weights that are larger because of their order in memory, not of the alignment of small
// ones alone
std::string growth_line(const CompileReport& r, bool for_size) {
  constexpr uint64_t kAlignment = 4096;
  if (r.weight_bytes <= r.constant_bytes + r.constant_bytes / 20 + kAlignment) return "";
  const std::string growth = "weights  " + format_bytes(r.weight_bytes) + ", in the model " +
                             format_bytes(r.constant_bytes);
  if (for_size) return growth + ": blocks that they do not fill\n";
  return growth + ": in the form that is fastest; --optimize size makes the library about " +
         format_bytes(r.weight_bytes - r.constant_bytes) + " smaller\n";
}

}  // namespace

std::string summary_text(const CompileReport& r, double seconds, int64_t tuned_since, int columns,
                         bool for_size) {
  const std::string on_processor = r.host_reasons.empty()
                                       ? ""
                                       : std::to_string(r.host_reasons.size()) +
                                             " kernels on the processor; the first: " +
                                             r.host_reasons.front() + "\n";
  const auto stored = std::ranges::count_if(r.kernel_reports, &KernelReport::stored);
  const std::string from_cache = stored > 0 ? std::to_string(stored) + " of them from the cache, "
                                            : "";
  return r.output + ": " + format_bytes(r.artifact_bytes) + " (model " +
         format_bytes(r.model_bytes) + ", weights " + format_bytes(r.weight_bytes) + ")\n" +
         r.header + "\nkernels  " + std::to_string(r.kernels) + " distinct, " + from_cache +
         std::to_string(r.calls) + " calls of " + std::to_string(r.groups) + " groups, " +
         std::to_string(r.nodes) + " nodes\n" + path_lines(r) + arena_line(r) + object_lines(r) +
         growth_line(r, for_size) + on_processor + device_lines(r) +
         schedule_lines(r, tuned_since, columns) + "compiled " +
         (tuned_since > 0 ? "and tuned in " : "in ") + format_seconds(seconds) + ", peak memory " +
         format_bytes(r.peak_memory_bytes) + "\n";
}

}  // namespace tw
