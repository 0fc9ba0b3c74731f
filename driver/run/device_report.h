// What the devices of a model did in its last run, as their drivers count it.
#pragma once
#include "driver/run/model_run.h"
#include "support/json.h"

namespace tw {

// For models loaded from now on: "rtl:"; "" leaves it to the environment and the target
void use_device(const std::string& address);

struct DeviceReport {
  std::string name;
  tw_device_stats stats{};
  double busy() const {
    return stats.cycles ? static_cast<double>(stats.busy_cycles) / static_cast<double>(stats.cycles)
                        : 0;
  }
};
// Of the devices whose drivers count, by the manifest's names.
Expected<std::vector<DeviceReport>> device_reports(const ModelRun& run);
Json to_json(const std::vector<DeviceReport>& reports);
std::string to_string(const std::vector<DeviceReport>& reports);  // a line each

}  // namespace tw
