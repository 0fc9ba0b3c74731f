#include "cli/text/kernel_table.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/text/manifest_counts.h"

namespace tw {
namespace {

double per_second(double amount, double ms) { return ms > 0 ? amount / (ms * 1e-3) : 0; }
double bytes_of(const KernelRow& row) { return row.weight_bytes + row.tensor_bytes; }
// The percentage of the time that `seconds` are
double percent(double seconds, double ms) { return 100 * per_second(seconds, ms); }

constexpr int kWide = 69, kNarrow = 54;  // columns of the numbers
// Columns that names should have, else the narrow table is taken
constexpr int kLeastNames = 40;

std::string line(bool wide, double ms, double share, double flops, double arithmetic, double bytes,
                 double roof_seconds, const char* bound, int64_t spills) {
  char text[160];
  if (wide)
    std::snprintf(text, sizeof text, "%9.4f %5.1f %8.1f %6.1f %8.2f %7.1f %6.1f  %-4s %6lld", ms,
                  share, per_second(flops, ms) * 1e-9, percent(arithmetic, ms), bytes * 1e-6,
                  per_second(bytes, ms) * 1e-9, percent(roof_seconds, ms), bound,
                  static_cast<long long>(spills));
  else
    std::snprintf(text, sizeof text, "%9.4f %5.1f %8.1f %6.1f %8.2f %6.1f  %-4s", ms, share,
                  per_second(flops, ms) * 1e-9, percent(arithmetic, ms), bytes * 1e-6,
                  percent(roof_seconds, ms), bound);
  return text;
}

}  // namespace

Expected<KernelTable> kernel_table(const Manifest& manifest, const Symbols& symbols,
                                   const Peaks& peaks, const std::vector<double>& ms) {
  KernelTable table;
  const SymbolNames names = symbol_names(manifest);
  TW_ASSIGN(const double arena, value_of(manifest.arena_bytes, symbols, names));
  const double resident = arena + static_cast<double>(manifest.weight_bytes);
  for (size_t i = 0; i < ms.size(); ++i) {
    const ManifestCall& call = manifest.calls[i];
    const bool library = call.kernel < 0;
    const ManifestKernel kernel = library ? ManifestKernel{call.function, ""}
                                          : manifest.kernels[static_cast<size_t>(call.kernel)];
    KernelRow row;
    row.call = call.name;
    row.kernel = kernel.name;
    row.ms = ms[i];
    TW_ASSIGN(row.flops, value_of(call.flops, symbols, names));
    row.arithmetic = row.flops / (peaks.gflops_of(kernel.multiplies) * 1e9);
    TW_ASSIGN(row.weight_bytes, value_of(call.weight_bytes, symbols, names));
    TW_ASSIGN(row.tensor_bytes, value_of(call.tensor_bytes, symbols, names));
    TW_ASSIGN(row.loaded_bytes, value_of(call.loaded_bytes, symbols, names));
    if (call.device == 0 && call.from == 0 && !library)  // the peaks are the processor's
      row.roof = roof_of(peaks, kernel.multiplies, row.flops, row.loaded_bytes, row.weight_bytes,
                         row.tensor_bytes, resident);
    row.spills = kernel.spills + kernel.reloads;
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json to_json(const KernelTable& table) {
  Json::Array list;
  for (const KernelRow& r : table.rows)
    list.push_back(Json::Object{{"name", r.call},
                                {"kernel", r.kernel},
                                {"ms", r.ms},
                                {"flops", r.flops},
                                {"loaded_bytes", r.loaded_bytes},
                                {"weight_bytes", r.weight_bytes},
                                {"tensor_bytes", r.tensor_bytes},
                                {"gflops", per_second(r.flops, r.ms) * 1e-9},
                                {"peak_percent", percent(r.arithmetic, r.ms)},
                                {"gbs", per_second(bytes_of(r), r.ms) * 1e-9},
                                {"roof_ms", r.roof.seconds * 1e3},
                                {"roof_percent", percent(r.roof.seconds, r.ms)},
                                {"bound", r.roof.bound},
                                {"spills", r.spills}});
  return list;
}

std::string to_string(const KernelTable& table, int columns) {
  std::vector<const KernelRow*> order;
  double ms = 0, flops = 0, arithmetic = 0, bytes = 0, roof = 0;
  int64_t spills = 0;
  for (const KernelRow& r : table.rows) {
    order.push_back(&r);
    ms += r.ms;
    flops += r.flops;
    arithmetic += r.arithmetic;
    bytes += bytes_of(r);
    roof += r.roof.seconds;
    spills += r.spills;
  }
  std::sort(order.begin(), order.end(), [](const KernelRow* a, const KernelRow* b) {
    return a->ms != b->ms ? a->ms > b->ms : a < b;
  });
  const bool wide = columns >= kWide + kLeastNames;
  const int names = std::max(12, columns - (wide ? kWide : kNarrow) - 2);
  std::string text =
      wide ? "       ms     %  GFLOP/s  peak%       MB    GB/s  roof%  by   spills  kernel, call\n"
           : "       ms     %  GFLOP/s  peak%       MB  roof%  by    kernel, call\n";
  for (const KernelRow* r : order)
    text += line(wide, r->ms, ms > 0 ? 100 * r->ms / ms : 0, r->flops, r->arithmetic, bytes_of(*r),
                 r->roof.seconds, r->roof.bound.c_str(), r->spills) +
            "  " + fit(r->kernel + "  " + r->call, names) + "\n";
  text += line(wide, ms, 100, flops, arithmetic, bytes, roof, "", spills) + "  in " +
          std::to_string(order.size()) + " calls\n";
  return text;
}

std::vector<KernelClass> kernel_classes(const KernelTable& table) {
  std::map<std::string, KernelClass> classes;
  std::map<std::string, std::map<std::string, double>> bounds;  // ms by class and bound
  for (const KernelRow& r : table.rows) {
    const size_t end = r.kernel.find_last_not_of("0123456789");
    const bool numbered = end + 1 < r.kernel.size() && end > 0 && r.kernel[end] == '_';
    const std::string name = numbered ? r.kernel.substr(0, end) : r.kernel;
    KernelClass& found = classes[name];
    found.name = name;
    ++found.calls;
    found.ms += r.ms, found.roof_ms += r.roof.seconds * 1e3;
    double& here = bounds[name][r.roof.bound];
    here += r.ms;
    if (here >= bounds[name][found.bound]) found.bound = r.roof.bound;
  }
  std::vector<KernelClass> out;
  for (auto& [name, found] : classes) out.push_back(std::move(found));
  std::ranges::stable_sort(out, std::ranges::greater(), &KernelClass::ms);
  return out;
}

Json to_json(const std::vector<KernelClass>& classes) {
  Json::Array list;
  for (const KernelClass& c : classes)
    list.push_back(Json::Object{{"class", c.name},
                                {"calls", c.calls},
                                {"ms", c.ms},
                                {"roof_ms", c.roof_ms},
                                {"bound", c.bound}});
  return list;
}

std::string to_string(const std::vector<KernelClass>& classes) {
  double ms = 0;
  KernelClass all;
  all.name = "all";
  for (const KernelClass& c : classes) {
    ms += c.ms;
    all.calls += c.calls, all.ms += c.ms, all.roof_ms += c.roof_ms;
  }
  std::string text = "       ms     %    roof ms  lost%  by    calls  class\n";
  const auto add = [&](const KernelClass& c) {
    const double whole = ms > 0 ? ms : 1;
    char line[96];
    std::snprintf(line, sizeof line, "%9.4f %5.1f  %9.4f  %5.1f  %-4s %6d  ", c.ms,
                  100 * c.ms / whole, c.roof_ms, 100 * (c.ms - c.roof_ms) / whole, c.bound.c_str(),
                  c.calls);
    text += line + c.name + "\n";
  };
  for (const KernelClass& c : classes) add(c);
  add(all);
  return text;
}

}  // namespace tw
