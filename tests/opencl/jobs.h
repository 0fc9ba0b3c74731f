// For tests: graphs cut into scheduled kernels, each with the arguments it has in a run of the whole and what the interpreter makes of them.
#pragma once
#include <string>
#include <vector>

#include "backends/opencl/opencl.h"
#include "ir/graph/graph.h"

namespace tw::test {

struct Job {
  std::string name;                             // of the case
  Kernel kernel;                                // scheduled
  std::vector<int64_t> symbols;
  std::vector<std::vector<std::byte>> arguments, expected;   // one a parameter buffer, before and after
};

// Lowered and scheduled for the target; kernels run once, in the order of the calls.
std::vector<Job> jobs_of(const std::string& name, Graph graph, const std::vector<Tensor>& inputs, const Target& target, int64_t symbol);
// How the outputs differ; "" if they do not.
std::string difference(const Job& job, const std::vector<std::vector<std::byte>>& got);

}  // namespace tw::test
