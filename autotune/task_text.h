// Tasks as text that stands alone: any later version lowers it without the model that it came from.
//   task anchor=0 weights_between=0
//   bytes "5f…" "eJxj…"                                  ; of constants that kernels depend on
//   graph @task() {
//     %x0: f32[1, 64, 56, 56]@1:8 = input
//     %c1: f32[64, 64, 3, 3] = const #"0a…"               ; contents made up
//     %v2: f32[1, 64, 56, 56]@1:8 = conv(%x0, %c1) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
//     output %v2
//   }
#pragma once
#include <string>
#include <string_view>

#include "autotune/task.h"

namespace tw {

// Constants keep their contents where kernels may depend on them: at most four different values
// (masks, scales), integers of at most 64 KiB (tables of places), and anything of that size beside
// a product of integers. Others have contents made from their type, so that one layer of two
// networks is one text. Values are named by their order. Errors: sizes that are read from data,
// more than 4 MiB of contents that are to be kept.
Expected<std::string> print_task(const Graph& graph, const Group& group);

struct ParsedTask {
  Graph graph;  // the group alone
  Group group;
  uint64_t weights_between = 0;  // of the network that it came from
  std::string key() const;       // the task's own
};
Expected<ParsedTask> parse_task(std::string_view text, std::string_view file = "");

// By this algorithm alone. Errors: no lowering for the target; an algorithm that does not apply.
Expected<Task> lower_task(const ParsedTask& parsed, const Target& target,
                          Algorithm algorithm = Algorithm::direct);

}  // namespace tw
