#include "driver/run/device_report.h"

#include <cstdio>
#include <cstdlib>

#include "driver/compile/manifest.h"

namespace tw {

void use_device(const std::string& address) {
  if (!address.empty()) ::setenv("TILEWRIGHT_DEVICE", address.c_str(), 1);
}

Expected<std::vector<DeviceReport>> device_reports(const ModelRun& run) {
  const tw_api& api = run.api();
  std::vector<DeviceReport> reports;
  // The library is older than device counts, or has no devices.
  if (api.size < sizeof(tw_api) || api.device_count == 0) return reports;
  TW_ASSIGN(const Manifest manifest, parse_manifest(api.manifest, api.name));
  for (int32_t d = 0; d < api.device_count && static_cast<size_t>(d) < manifest.devices.size();
       ++d) {
    DeviceReport report{manifest.devices[static_cast<size_t>(d)], {}};
    report.stats = run.device_stats(d);
    if (report.stats.launches) reports.push_back(report);
  }
  return reports;
}

Json to_json(const std::vector<DeviceReport>& reports) {
  Json::Array list;
  for (const DeviceReport& r : reports)
    list.push_back(Json::Object{{"name", r.name},
                                {"launches", r.stats.launches},
                                {"cycles", r.stats.cycles},
                                {"busy_cycles", r.stats.busy_cycles},
                                {"utilisation", r.busy()},
                                {"read_bytes", r.stats.read_bytes},
                                {"written_bytes", r.stats.written_bytes}});
  return list;
}

std::string to_string(const std::vector<DeviceReport>& reports) {
  std::string text;
  for (const DeviceReport& r : reports) {
    char busy[16];
    std::snprintf(busy, sizeof busy, "%.1f%%", 100 * r.busy());
    text += "device " + r.name + ": " + std::to_string(r.stats.launches) + " launches, " +
            std::to_string(r.stats.cycles) + " cycles, arithmetic busy " + busy + " of them, " +
            std::to_string(r.stats.read_bytes) + " bytes read, " +
            std::to_string(r.stats.written_bytes) + " written\n";
  }
  return text;
}

}  // namespace tw
