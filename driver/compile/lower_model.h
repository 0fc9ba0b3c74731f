// From an imported graph to a program: rewrite, fuse, place, lower, schedule, plan.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "driver/compile/compile.h"
#include "driver/compile/dump.h"
#include "passes/pass.h"
#include "program/plan_program.h"

namespace tw {

using DeviceBackends = std::vector<std::unique_ptr<DeviceBackend>>;  // by index in Target::devices

struct LoweredModel {
  int64_t nodes = 0, groups = 0;
  // Layout blocks by value, if costs of layouts were known
  std::optional<std::map<std::string, int64_t>> layouts;
  std::map<std::string, Algorithm> algorithms;  // CompileReport::algorithms
  std::vector<LossyLayer> lossy;                // CompileReport::lossy
  std::set<std::string> exact;                  // CompileReport::exact
  std::vector<std::string> host_reasons;        // CompileReport::host_reasons
  std::vector<Pin> schedules;                   // one for each kernel
  ScheduleRemarks remarks;
  PlannedProgram planned;  // result of the last step
  // The text that options.emit asks for, if it is the text of a step: the compile ends with it
  std::optional<std::string> text;
};

// dims: the dimensions that are bound in the graph
Expected<LoweredModel> lower_model(Graph graph, const std::map<std::string, int64_t>& dims,
                                   const CompileOptions& options, const Target& target,
                                   const DeviceBackends& devices, StageClock& stages, Dump& dump);

// The graph after the passes, which make it smaller and its patterns plainer, and choose layouts
// last
struct RewrittenGraph {
  Graph graph;
  std::optional<std::map<std::string, int64_t>> layouts;  // LoweredModel::layouts
  std::map<std::string, NarrowedLayer> narrowed;          // PassContext::narrowed
};
Expected<RewrittenGraph> rewrite_graph(Graph graph, const CompileOptions& options,
                                       const Target& target, const ModelSchedules& schedules);

}  // namespace tw
