#include "kernels/schedule/choices.h"

#include <algorithm>

namespace tw {

std::vector<int64_t> Choices::choose(
    const std::string& knob, const std::function<std::vector<std::vector<int64_t>>()>& values) {
  const std::vector<Knob>& known = given_ ? *given_ : noted_;
  const auto found = std::ranges::find(known, knob, &Knob::name);
  if (found != known.end())
    return found->values[given_ ? static_cast<size_t>(
                                      (*choice_)[static_cast<size_t>(found - known.begin())])
                                : 0];
  const std::vector<std::vector<int64_t>> all = values();
  if (given_) return all.front();
  Knob fresh{knob, {}};
  for (const std::vector<int64_t>& value : all)
    if (std::ranges::find(fresh.values, value) == fresh.values.end()) fresh.values.push_back(value);
  noted_.push_back(std::move(fresh));
  return all.front();
}

bool Choices::leaves(const std::string& knob) const {
  if (!given_) return false;
  const auto found = std::ranges::find(*given_, knob, &Knob::name);
  return found != given_->end() && (*choice_)[static_cast<size_t>(found - given_->begin())] == 0;
}

std::vector<int64_t> counted(int64_t first, int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t n = first; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

std::vector<int64_t> divisors(int64_t n, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

}  // namespace tw
