// Tasks as text that stands alone: any later version can lower it without the model that it came
// from.
//   task anchor=0 weights_between=0
//   bytes "5f…" "eJxj…"                                  ; contents that kernels depend on
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
// (masks, scales), integers of at most 64 KiB (tables of places), and anything up to that size
// beside a product of integers. Other constants get contents made from their type, so that the same
// layer of two networks has the same text. Values are named by their order. Errors: sizes that are
// read from data, more than 4 MiB of contents to keep.
Expected<std::string> print_task(const Graph& graph, const Group& group);

struct ParsedTask {
  Graph graph;  // the group alone
  Group group;
  uint64_t weights_between = 0;  // weights_between() of its original network
  std::string key() const;
};
Expected<ParsedTask> parse_task(std::string_view text, std::string_view file = "");

// Lowers by this algorithm only. Errors: no lowering for the target; an algorithm that does not
// apply.
Expected<Task> lower_task(const ParsedTask& parsed, const Target& target,
                          Algorithm algorithm = Algorithm::direct);

}  // namespace tw
