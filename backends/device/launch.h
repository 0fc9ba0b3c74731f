// What a launch is made of: which statements, which buffers where, how many work-groups and
// work-items.
#pragma once
#include <array>
#include <map>
#include <optional>

#include "ir/program.h"
#include "ir/simplify.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw::device {

// shared: __local; own: of a work-item
enum class Space : uint8_t { parameter, workspace, shared, own };

struct AxisPlace {
  bool group = false;  // counts work-groups, else the work-items of one
  int dim = 0;
};

struct LaunchPlan {
  Stmt body;
  std::map<int32_t, Space> spaces;  // of the buffers it uses
  // Of buffers that are a thread's own although all threads have one: these dimensions count the
  // threads, and fall away.
  std::map<int32_t, std::vector<size_t>> thread_dims;
  std::array<Expr, 3> groups;  // of each dimension
  std::array<int64_t, 3> items;
  int64_t local_bytes = 0;
  int64_t work_items() const { return items[0] * items[1] * items[2]; }
};

// Axes of the level "block" count groups, those of the level "thread" the items of one, in the
// order of the target's list.
std::optional<AxisPlace> axis_place(const Target& target, const std::string& axis);
bool holds_loop_of(const Stmt& s, const Target& target, bool group);
// Something in it makes work-items of a group wait for each other: a barrier, or loops over
// work-items beside or after each other.
bool synchronizes(const Stmt& s, const Target& target);

struct LaunchPlans {
  // Virtual threads interleaved, expressions simplified, conditions asked where they are known
  Kernel kernel;
  Ranges ranges;                     // of its symbols and loops
  std::vector<LaunchPlan> launches;  // in order; their bodies are parts of the kernel's
};

// The kernel cut into launches. Errors: what does not map, with the kernel's name.
Expected<LaunchPlans> plan_launches(const Kernel& kernel, const Target& target);
// No rule of the schedules spreads some nest of many points over the device's threads.
Expected<bool> runs_in_one_thread(const Kernel& kernel, const Target& target);

}  // namespace tw::device
