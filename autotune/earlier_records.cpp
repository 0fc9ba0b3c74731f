#include "autotune/earlier_records.h"

#include <algorithm>

#include "kernels/arranged.h"

namespace tw {

std::optional<std::string> EarlierForm::present(const std::string& schedule) const {
  Expected<Schedule> rest = parse_schedule(schedule);
  if (!rest) {
    llvm::consumeError(rest.takeError());
    return std::nullopt;
  }
  Schedule whole = steps;
  std::ranges::copy(rest->steps, std::back_inserter(whole.steps));
  return print(whole);
}

std::optional<EarlierForm> earlier_form(const LoweredGroup& lowered, const Target& target) {
  Expected<ArrangedKernel> made = arranged(lowered, target);
  if (!made) {
    llvm::consumeError(made.takeError());  // then the default schedule says so
    return std::nullopt;
  }
  if (made->steps.steps.empty()) return std::nullopt;
  return EarlierForm{kernel_hash(made->run.kernel), std::move(made->steps)};
}

std::vector<Record> present_records(std::vector<Record> records, const Task& task,
                                    const Target& target) {
  const auto is_known = [&](const Record& r) {
    return std::ranges::any_of(task.variants, [&](const Variant& v) {
      return definition_hash(v.lowered) == r.kernel_hash;
    });
  };
  if (std::ranges::all_of(records, is_known)) return records;
  for (const Variant& variant : task.variants) {
    const std::optional<EarlierForm> earlier = earlier_form(variant.lowered, target);
    if (!earlier) continue;
    for (Record& record : records) {
      if (record.kernel_hash != earlier->kernel_hash) continue;
      std::optional<std::string> schedule = earlier->present(record.schedule);
      if (!schedule) continue;
      record.schedule = std::move(*schedule);
      record.kernel_hash = definition_hash(variant.lowered);
    }
  }
  return records;
}

}  // namespace tw
