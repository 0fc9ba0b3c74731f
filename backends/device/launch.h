// Plans the launches of a kernel: their statements, the places of buffers, and the numbers of
// work-groups and work-items.
#pragma once
#include <array>
#include <map>
#include <optional>

#include "ir/program.h"
#include "ir/simplify.h"
#include "ir/target.h"
#include "support/diag.h"

namespace tw::device {

// shared: __local; own: memory of one work-item
enum class Space : uint8_t { parameter, workspace, shared, own };

struct AxisPlace {
  bool group = false;  // true: counts work-groups; false: counts the work-items of a group
  int dim = 0;
};

struct LaunchPlan {
  Stmt body;
  std::map<int32_t, Space> spaces;  // places of the buffers that the launch uses
  // For buffers that become a thread's own though they are declared for all threads: the dimensions
  // that count threads, which fall away.
  std::map<int32_t, std::vector<size_t>> thread_dims;
  std::array<Expr, 3> groups;  // by dimension
  std::array<int64_t, 3> items;
  int64_t local_bytes = 0;
  int64_t work_items() const { return items[0] * items[1] * items[2]; }
};

// The place of an axis: axes of level "block" count groups, axes of level "thread" count items of a
// group, each in the order of the target's list.
std::optional<AxisPlace> axis_place(const Target& target, const std::string& axis);
bool holds_loop_of(const Stmt& s, const Target& target, bool group);
// True when work-items of a group must wait for each other: at a barrier, or between loops over
// work-items beside or after each other.
bool synchronizes(const Stmt& s, const Target& target);

struct LaunchPlans {
  // The kernel with virtual threads interleaved, expressions simplified, and guards hoisted
  Kernel kernel;
  Ranges ranges;                     // ranges of its symbols and loops
  std::vector<LaunchPlan> launches;  // in order; their bodies are parts of the kernel's
};

// Cuts the kernel into launches. Errors contain the kernel's name: a construct that cannot be
// mapped.
Expected<LaunchPlans> plan_launches(const Kernel& kernel, const Target& target);
// True when a nest of many points runs in one thread, because no schedule rule spreads it over the
// device's threads.
Expected<bool> runs_in_one_thread(const Kernel& kernel, const Target& target);

}  // namespace tw::device
