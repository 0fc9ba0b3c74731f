// Counts of the devices of a model in its last run, by their drivers.
#pragma once
#include "driver/run/model_run.h"
#include "support/json.h"

namespace tw {

// Selects the device of models that are loaded later: "rtl:". "" leaves it to the environment and
// the target.
void use_device(const std::string& address);

struct DeviceReport {
  std::string name;
  tw_device_stats stats{};
  double busy() const {
    return stats.cycles ? static_cast<double>(stats.busy_cycles) / static_cast<double>(stats.cycles)
                        : 0;
  }
};
// Reports of the devices whose drivers count, with names from the manifest
Expected<std::vector<DeviceReport>> device_reports(const ModelRun& run);
Json to_json(const std::vector<DeviceReport>& reports);
std::string to_string(const std::vector<DeviceReport>& reports);  // a line for each device

}  // namespace tw
