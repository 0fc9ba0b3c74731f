// For tests: graphs cut into scheduled kernels, each with the arguments it has in a run of the
// whole and what the interpreter makes of them.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/opencl.h"
#include "ir/graph/graph.h"
#include "passes/choose/choose_algorithms.h"
#include "tests/opencl/case.h"

namespace tw::test {

struct Job {
  std::string name;  // of the case
  Kernel kernel;     // scheduled
  std::vector<int64_t> symbols;
  // One a parameter buffer, before and after
  std::vector<std::vector<std::byte>> arguments, expected;
};

// Lowered and scheduled for the target; kernels run once, in the order of the calls.
std::vector<Job> jobs_of(const std::string& name, Graph graph, const std::vector<Tensor>& inputs,
                         const Target& target, int64_t symbol,
                         const AlgorithmOptions& algorithms = {});
// Values in [-2, 2), integers from 0 to 2, the same on every call; free dimensions have that size.
std::vector<Tensor> inputs_of(const Graph& graph, int64_t symbol);
// Of every so many-th case, free dimensions of size 3.
std::vector<Job> jobs_of_cases(std::span<const Case> cases, const Target& target, size_t every = 1);
// Of a graph with one kernel besides copies to layouts: at the default point of its template space, but for the knobs given.
Job job_at(const std::string& name, const Graph& graph, const Target& target,
           const std::map<std::string, int64_t>& knobs);
// Of a case with one kernel besides copies to layouts: points of its template space, drawn at random, and about how many
// legal ones there are.
struct SpaceJobs {
  std::vector<Job> jobs;
  double legal_points = 0;
  int repeated = 0;  // of 600 legal points, those that mean what another one means
};
SpaceJobs jobs_of_points(const Case& one, const Target& target, size_t points, unsigned seed);
// Convolutions of 3x3 by Winograd's algorithm, of all tiles that a device has and both strides, with
// edges on all sides. Their interpreted results are compared with the evaluator's in f64.
std::vector<Job> winograd_jobs(const Target& target);
// A convolution with constant weights: images, channels, height, width; output channels; stride.
struct ConvSizes {
  std::vector<int64_t> in;
  int64_t out = 1, stride = 1;
  DType type = DType::f32;
};
Graph conv_graph(const ConvSizes& sizes);
// The first job of each kernel.
std::vector<Job> distinct(std::vector<Job> jobs);
// How the outputs differ; "" if they do not.
std::string difference(const Job& job, const std::vector<std::vector<std::byte>>& got);

}  // namespace tw::test
