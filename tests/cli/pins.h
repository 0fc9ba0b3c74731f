// Records and schedules made from the pins of a lock
#pragma once
#include <string>
#include <variant>

#include "autotune/record.h"
#include "ir/schedule/schedule.h"
#include "program/schedules.h"

namespace tw {

inline Record record_of(const Pin& pin, const std::string& schedule, double seconds = 1e-6) {
  Record r;
  r.key = {pin.task, pin.target, 1};
  r.algorithm = pin.algorithm;
  r.kernel_hash = pin.kernel_hash;
  r.schedule = schedule;
  r.seconds = {seconds};
  r.device = "by hand";
  r.tool = "test";
  r.time = 1'763'800'000;  // 2025-11-22
  return r;
}

// Always legal: leaves the kernel as lowered, but for the layouts of its parameters, which the
// pin's schedule begins with.
inline std::string no_steps(const Pin& pin) {
  Schedule layouts;
  if (pin.schedule.empty()) return print(layouts);
  for (const Step& step : llvm::cantFail(parse_schedule(pin.schedule)).steps)
    if (const auto* block = std::get_if<step::Block>(&step);
        block && (block->buffer.starts_with("x") || block->buffer == "y"))
      layouts.steps.push_back(step);
  return print(layouts);
}

}  // namespace tw
