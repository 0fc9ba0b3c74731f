// Chooses which tasks keep what a search found for them, by the time of the whole network.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/compare/compare_artifacts.h"

namespace tw {

struct TaskClaim {
  std::string task, name;
  double saved = 0;   // seconds of the network's time that its new records claim to save
  bool sure = false;  // the interval of its own gain lies above 1
};

using TaskSet = std::set<std::string>;
TaskSet tasks_of(std::span<const TaskClaim> claims);
// Times the network in which the tasks of `before` have their new records, in turns with the one in
// which those of `after` have them. nullopt: there is no time left.
using TimeTasks =
    std::function<Expected<std::optional<Comparison>>(const TaskSet& before, const TaskSet& after)>;
struct KeptTasks {
  TaskSet kept;
  // The network with all new records against the one with none. nullopt: it was not timed, and all
  // tasks are kept.
  std::optional<Comparison> all;
  // The network with the kept tasks' records against the one with none, if those are fewer
  std::optional<Comparison> some;
};
// Keeps all where the whole network gains. Where no difference can be seen, it keeps the tasks
// whose own gains are sure. Where the network is slower, it leaves out the unsure ones first. Then
// it halves the list, largest claims first, and takes back every part that makes the network
// slower.
Expected<KeptTasks> choose_kept(std::vector<TaskClaim> claims, const TimeTasks& time);

}  // namespace tw
