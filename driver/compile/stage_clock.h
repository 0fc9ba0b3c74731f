// The stages of a compile as users see them: names and times.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tw {

// Told when a stage begins: "import", "passes", "lower", "codegen", "link", "weights"
using OnStage = std::function<void(const std::string& stage)>;

struct StageReport {
  std::string name;
  double seconds = 0;
};

// Times the stages, and tells progress when one begins.
class StageClock {
 public:
  explicit StageClock(const OnStage& progress) : progress_(progress) {}
  void begin(const std::string& name) {
    end();
    if (progress_) progress_(name);
    reports_.push_back({name});
    start_ = std::chrono::steady_clock::now();
    open_ = true;
  }
  void end() {
    if (open_)
      reports_.back().seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    open_ = false;
  }
  // A stage that has not ended has 0 seconds.
  std::vector<StageReport> reports() const { return reports_; }

 private:
  const OnStage& progress_;
  std::vector<StageReport> reports_;
  std::chrono::steady_clock::time_point start_;
  bool open_ = false;
};

}  // namespace tw
