// Handles of a kernel's loops, stages and buffers. Lowering makes them and the schedule uses them,
// so a schedule can only name what its lowering has made.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tw {

// A loop by its name; none by default. The kernel may lack a loop although its handle exists: a
// step may have dropped it because it had one iteration.
class Loop {
 public:
  Loop() = default;
  const std::string& name() const { return name_; }
  bool defined() const { return !name_.empty(); }
  friend bool operator==(const Loop&, const Loop&) = default;

 private:
  friend struct Axis;            // for stages that lowering makes
  friend class ScheduleBuilder;  // for loops that steps make
  explicit Loop(std::string name) : name_(std::move(name)) {}
  std::string name_;
};
using Loops = std::vector<Loop>;  // outermost first

// A buffer by its name; none by default
class BufferName {
 public:
  BufferName() = default;
  const std::string& name() const { return name_; }
  bool defined() const { return !name_.empty(); }
  friend bool operator==(const BufferName&, const BufferName&) = default;

 private:
  friend class GroupBuilder;
  friend class ScheduleBuilder;
  explicit BufferName(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

// A stage by its label, with the buffer that it writes; none by default
class Stage {
 public:
  Stage() = default;
  const std::string& label() const { return label_; }
  const BufferName& buffer() const { return buffer_; }
  bool defined() const { return !label_.empty(); }
  friend bool operator==(const Stage&, const Stage&) = default;

 private:
  friend class GroupBuilder;
  friend class ScheduleBuilder;
  Stage(std::string label, BufferName buffer)
      : label_(std::move(label)), buffer_(std::move(buffer)) {}
  std::string label_;
  BufferName buffer_;
};
using Stages = std::vector<Stage>;

// The instruction for which a stage's sums are arranged
struct SumInstruction {
  std::string intrinsic;  // name in the target; empty: none
  int64_t rows = 1;       // rows of the stage that one instruction covers
  int64_t columns = 1;    // lanes of the stage that one instruction covers
  Loop depth;             // innermost loop, which it covers whole; none: one step
  Loop row;               // loop over its rows; none: it has one row
  bool defined() const { return !intrinsic.empty(); }
};

}  // namespace tw
