// Decisions of a function that builds a schedule, left to the points of a space: run once, it tells
// which knobs it has; run again with a point, it gets that point's values.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tw {

struct Kernel;

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
  // The kernel that the schedule makes, once it is built: nobody has to apply it again. Null: not
  // built by steps that were applied one by one.
  void keep(std::shared_ptr<const Kernel> scheduled) { scheduled_ = std::move(scheduled); }
  const std::shared_ptr<const Kernel>& scheduled() const { return scheduled_; }

 private:
  bool rules_ = true;
  std::vector<Knob> noted_;
  const std::vector<Knob>* given_ = nullptr;  // null: notes knobs
  const std::vector<int>* choice_ = nullptr;
  std::shared_ptr<const Kernel> scheduled_;
};

std::vector<int64_t> counted(int64_t first, int64_t last);  // first .. last
std::vector<int64_t> divisors(int64_t n, int64_t most);     // from 1 up to `most`

}  // namespace tw
