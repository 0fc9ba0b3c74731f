// A kernel's loops, stages and buffers as values. Lowering makes them and a schedule takes them, so
// a schedule cannot name what its lowering does not make.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tw {

// A loop by its name; none by default. A loop whose handle is there may still be absent from the
// kernel: a step may have left it out because it had one iteration.
class Loop {
 public:
  Loop() = default;
  const std::string& name() const { return name_; }
  bool defined() const { return !name_.empty(); }
  friend bool operator==(const Loop&, const Loop&) = default;

 private:
  friend struct Axis;            // of a stage that lowering makes
  friend class ScheduleBuilder;  // loops that steps make
  explicit Loop(std::string name) : name_(std::move(name)) {}
  std::string name_;
};
using Loops = std::vector<Loop>;  // outermost first

// A buffer by its name; none by default.
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

// A stage by its label, with the buffer that it writes; none by default.
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

// An instruction that lowering has made a stage's sums for.
struct SumInstruction {
  std::string intrinsic;  // of the target; empty: none
  int64_t rows = 1;       // of the stage's rows
  int64_t columns = 1;    // of the stage's lanes
  Loop depth;             // the stage's innermost loop, which it takes whole; none: one step
  Loop row;               // over its rows; none: it has one
  bool defined() const { return !intrinsic.empty(); }
};

}  // namespace tw
