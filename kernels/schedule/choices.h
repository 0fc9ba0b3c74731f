// Decisions of a function that builds a schedule, left to the points of a space: run once, it tells
// which knobs it has; run again with a point, it gets that point's values.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tw {

// One free choice: each value is a list of numbers (a factorisation, a switch, a depth).
struct Knob {
  std::string name;
  std::vector<std::vector<int64_t>> values;
};

class Choices {
 public:
  // Notes knobs, gives the usual values.
  explicit Choices(bool rules) : rules_(rules) {}
  // Gives the point's.
  Choices(const std::vector<Knob>& knobs, const std::vector<int>& choice, bool rules)
      : rules_(rules), given_(&knobs), choice_(&choice) {}
  bool rules() const { return rules_; }
  // values: the usual one first. A knob that is asked for again keeps its values; one that is not
  // in the point has the usual one.
  std::vector<int64_t> choose(const std::string& knob,
                              const std::function<std::vector<std::vector<int64_t>>()>& values);
  const std::vector<Knob>& noted() const { return noted_; }

 private:
  bool rules_ = true;
  std::vector<Knob> noted_;
  const std::vector<Knob>* given_ = nullptr;  // null: notes knobs
  const std::vector<int>* choice_ = nullptr;
};

std::vector<int64_t> counted(int64_t first, int64_t last);  // first .. last
std::vector<int64_t> divisors(int64_t n, int64_t most);     // from 1 up to `most`

}  // namespace tw
