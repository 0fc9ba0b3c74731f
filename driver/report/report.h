// What a compile made of a model, for people to read: the calls after fusion, what each waits for,
// its schedule, and the memory between them. driver/report/page.h makes a page of it.
#pragma once
#include <string>
#include <vector>

#include "driver/accuracy/gate.h"
#include "driver/compare/per_node.h"
#include "driver/compile/compile.h"
#include "support/json.h"

namespace tw {

struct ReportBuffer {  // of the processor's arena
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;  // calls, inclusive
};
struct ReportArgument {
  std::string name, place;  // the kernel's name of it; "input", "arena", "weights", ...
  int64_t offset = 0, bytes = 0;
};
// Of one call, where the library ran here.
struct ReportTime {
  double ms = 0, roof_ms = 0;
  double flops = 0, bytes = 0;
  std::string bound;  // as Roof::bound
};
// Of one call, by LLVM's model of the target's processor.
struct ReportEstimate {
  double cycles = 0;
  HotLoop hot;
  double flops = 0;
  double peak_flops = 0;  // a cycle, of the kernel's operands: what the target's rates say
  std::string problem;    // why there is no estimate

  // Of that peak in the hot loop; 0: it has no multiply-adds
  double hot_percent() const;
};
struct ReportCall {
  std::string name, kernel;
  std::vector<int> after;  // calls whose results it reads
  std::vector<ReportArgument> arguments;
  std::string algorithm, source, schedule;  // as Pin has them; "" of a library's function
  std::string tuned;                        // the date
  int64_t code_bytes = 0, spills = 0;
  int device = 0;
};
// How far the result of a fused group is from the reference evaluator's.
struct ReportError {
  std::string name, value, type;                 // the group's, its result's
  int call = -1;                                 // that makes it; -1: none of that name
  double max_rel = 0, max_ulp = 0, max_abs = 0;  // as Difference has them
};
// What a layer that rounds more than it must costs and gains.
struct ReportChoice {
  LayerAccuracy layer;
  int call = -1;  // that computes it; -1: none of that name
};
struct Report {
  std::string model, target;
  std::string sizes;  // of free dimensions that bytes are of
  uint64_t weight_bytes = 0, artifact_bytes = 0, naive_arena_bytes = 0;
  int64_t arena_bytes = 0;
  std::vector<ReportCall> calls;  // of the model for any sizes, without its fast paths
  std::vector<ReportBuffer> buffers;
  std::vector<ReportTime> times;          // of each call, or none
  std::string no_times;                   // why there are none
  std::vector<ReportEstimate> estimates;  // of each call, or none
  double clock = 0;  // cycles a second of the estimates' processor; 0: not said
  std::vector<std::string> estimated_alike;  // processors with the same model, in LLVM
  std::string peaks;                         // of this machine, as text
  double gflops = 0, dram_gbs = 0;
  std::vector<ReportError> errors;
  std::string errors_note;  // of which inputs, and what is missing; "": nobody asked
  std::vector<ReportChoice> choices;
  std::string choices_note;  // the error of all, the limit and the data; "": nobody asked
};

// Bytes are of the example's sizes. Without times.
Report make_report(const PlannedProgram& planned, const CompileReport& compiled,
                   const Target& target);
void add_errors(const NodeErrors& errors, const std::string& note, Report& report);
void add_accuracy(const AccuracyReport& accuracy, const std::string& note, Report& report);
Json to_json(const Report& report);
Json::Array estimates_json(const Report& report);  // with the calls' names

}  // namespace tw
