// Lets the points of a space make the decisions of a function that builds a schedule. A first run
// of the function notes its knobs. A run with a point gets that point's values.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tw {

struct RunKernel;

// A free choice. Each value is a list of numbers (a factorisation, a switch, a depth).
struct Knob {
  std::string name;
  std::vector<std::vector<int64_t>> values;
};

class Choices {
 public:
  // Every decision is the default one. Only the kernel is kept.
  Choices() : open_(false) {}
  // Notes knobs and returns the default values.
  explicit Choices(bool rules) : rules_(rules) {}
  // Returns the values of the point.
  Choices(const std::vector<Knob>& knobs, const std::vector<int>& choice, bool rules)
      : rules_(rules), given_(&knobs), choice_(&choice) {}
  bool open() const { return open_; }  // true: points of a space decide
  bool rules() const { return rules_; }
  // values: the default one first. A knob keeps its values when it is asked for again. A knob that
  // the point lacks has the default value.
  std::vector<int64_t> choose(const std::string& knob,
                              const std::function<std::vector<std::vector<int64_t>>()>& values);
  // True: the point leaves the knob at its first value.
  bool leaves(const std::string& knob) const;
  const std::vector<Knob>& noted() const { return noted_; }
  // Keeps the kernel that the finished schedule makes, so nobody has to apply the schedule again.
  // null: the schedule was not built by applying steps.
  void keep(std::shared_ptr<const RunKernel> scheduled) { scheduled_ = std::move(scheduled); }
  const std::shared_ptr<const RunKernel>& scheduled() const { return scheduled_; }

 private:
  bool open_ = true, rules_ = true;
  std::vector<Knob> noted_;
  const std::vector<Knob>* given_ = nullptr;  // null: this run notes knobs
  const std::vector<int>* choice_ = nullptr;
  std::shared_ptr<const RunKernel> scheduled_;
};

std::vector<int64_t> counted(int64_t first, int64_t last);
std::vector<int64_t> divisors(int64_t n, int64_t most);  // from 1 up to `most`

}  // namespace tw
