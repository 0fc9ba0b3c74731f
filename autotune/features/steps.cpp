// TLP's features of a schedule. They need no kernel, so they cost next to nothing.
#include <algorithm>
#include <array>
#include <map>

#include "autotune/features/features.h"
#include "ir/schedule/arguments.h"

namespace tw {
namespace {

// The primitives in schedules of processors. All others count as one more kind.
constexpr std::array kPrimitives = {
    step::Vectorize::kKeyword,     step::Unroll::kKeyword,
    step::Split::kKeyword,         step::Reorder::kKeyword,
    step::Fuse::kKeyword,          step::Parallel::kKeyword,
    step::ComputeAt::kKeyword,     step::DecomposeReduction::kKeyword,
    step::SetScope::kKeyword,      step::CacheRead::kKeyword,
    step::CacheWrite::kKeyword,    step::RFactor::kKeyword,
    step::Prefetch::kKeyword,      step::Layout::kKeyword,
    step::Peel::kKeyword,          step::Partition::kKeyword,
    step::ComputeInline::kKeyword, step::Pack::kKeyword,
    step::Pad::kKeyword,           step::Block::kKeyword,
};
constexpr std::array<std::string_view, 3> kScopes = {"register", "stack", "thread"};

// Numbers names by their first appearance. Scopes have fixed numbers.
class Names {
 public:
  float number(const std::string& name) {
    const auto scope = std::ranges::find(kScopes, name);
    if (scope != kScopes.end()) return static_cast<float>(scope - kScopes.begin() + 1);
    const auto added = numbers_.emplace(name, numbers_.size() + 1).first;
    return static_cast<float>(added->second);
  }

 private:
  std::map<std::string, size_t> numbers_;
};

}  // namespace

std::vector<FeatureRow> step_rows(const Schedule& schedule) {
  std::vector<FeatureRow> rows;
  Names names;
  for (const Step& step : schedule.steps) {
    FeatureRow& row = rows.emplace_back(kPrimitives.size() + 1 + kStepParameters, 0.0f);
    const std::string_view word = keyword(step);
    const auto primitive = std::ranges::find(kPrimitives, word);
    row[static_cast<size_t>(primitive - kPrimitives.begin())] = 1;
    size_t at = kPrimitives.size() + 1;
    for (const StepArgument& argument : arguments(step)) {
      const auto* number = std::get_if<int64_t>(&argument);
      const float value = number ? static_cast<float>(*number)
                                 : names.number(std::get<std::string>(argument));
      if (at < row.size()) row[at++] = value;
    }
  }
  if (rows.empty()) rows.emplace_back(kPrimitives.size() + 1 + kStepParameters, 0.0f);
  return rows;
}

std::vector<std::string> step_feature_names() {
  std::vector<std::string> names(kPrimitives.begin(), kPrimitives.end());
  names.emplace_back("other");
  for (size_t i = 0; i < kStepParameters; ++i) names.push_back("p" + std::to_string(i));
  return names;
}

}  // namespace tw
