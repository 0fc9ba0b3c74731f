// For tests: graphs cut into scheduled kernels. A job has one of them, with its arguments in a run
// of the graph, and the interpreter's results.
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
  std::string name;  // case
  Kernel kernel;     // as scheduled
  std::vector<int64_t> symbols;
  // one for each parameter buffer, before and after the run
  std::vector<std::vector<std::byte>> arguments, expected;
};

// Lowers and schedules the graph for the target. The kernels run once, in the order of the calls.
std::vector<Job> jobs_of(const std::string& name, Graph graph, const std::vector<Tensor>& inputs,
                         const Target& target, int64_t symbol,
                         const AlgorithmOptions& algorithms = {});
// Returns floats in [-2, 2) and integers from 0 to 2, the same on every call. Free dimensions have
// the size `symbol`.
std::vector<Tensor> inputs_of(const Graph& graph, int64_t symbol);
// Returns the jobs of every `every`-th case, with free dimensions of size 3.
std::vector<Job> jobs_of_cases(std::span<const Case> cases, const Target& target, size_t every = 1);
// Takes a graph with one kernel, besides kernels that convert layouts. Returns its job at the
// default point of its template space, with these knobs changed.
Job job_at(const std::string& name, const Graph& graph, const Target& target,
           const std::map<std::string, int64_t>& knobs);
// Jobs of a case with one kernel, besides kernels that convert layouts: at random points of its
// template space. Also an estimate of the number of its legal points.
struct SpaceJobs {
  std::vector<Job> jobs;
  double legal_points = 0;
  int repeated = 0;  // points that share a schedule with another one, among 600 legal ones
};
SpaceJobs jobs_of_points(const Case& one, const Target& target, size_t points, unsigned seed);
// Returns 3x3 convolutions by Winograd's algorithm, with all of a device's tiles, both strides, and
// edges on all sides. Their interpreted results are checked against the evaluator in f64.
std::vector<Job> winograd_jobs(const Target& target);
// A convolution with constant weights: images, channels, height, width; output channels; stride.
struct ConvSizes {
  std::vector<int64_t> in;
  int64_t out = 1, stride = 1;
  DType type = DType::f32;
};
Graph conv_graph(const ConvSizes& sizes);
// Keeps the first job of each kernel.
std::vector<Job> distinct(std::vector<Job> jobs);
// Returns a difference of the outputs; "" if there is none.
std::string difference(const Job& job, const std::vector<std::vector<std::byte>>& got);

}  // namespace tw::test
