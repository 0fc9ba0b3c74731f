// Counters of the fake libcuda: objects that exist, and work done since the process began.
#pragma once
#include <cstdint>

namespace tw::test {

struct FakeCounts {
  int32_t contexts = 0, current = 0, allocations = 0, streams = 0, modules = 0, graphs = 0,
          executables = 0;
  // pending: work that has not run yet
  int32_t launches = 0, barriers = 0, instantiations = 0, replays = 0, pending = 0;
  bool same_objects(const FakeCounts& o) const {
    return contexts == o.contexts && current == o.current && allocations == o.allocations &&
           streams == o.streams && modules == o.modules && graphs == o.graphs &&
           executables == o.executables && pending == o.pending;
  }
};

}  // namespace tw::test
