// The report of a compile for people to read: the calls after fusion, what each waits for, its
// schedule, and the memory between them. driver/report/page.h makes a page of it.
#pragma once
#include <string>
#include <vector>

#include "driver/accuracy/gate.h"
#include "driver/compare/per_node.h"
#include "driver/compile/compile.h"
#include "support/json.h"

namespace tw {

struct ReportBuffer {  // in the processor's arena
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;  // first and last call, inclusive
};
struct ReportArgument {
  std::string name, place;  // name in the kernel; "input", "arena", "weights", ...
  int64_t offset = 0, bytes = 0;
};
// Times of one call, if the library ran here
struct ReportTime {
  double ms = 0, roof_ms = 0;
  double flops = 0, bytes = 0;
  std::string bound;  // as Roof::bound
};
// An estimate of one call by LLVM's model of the target's processor
struct ReportEstimate {
  double cycles = 0;
  HotLoop hot;
  double flops = 0;
  double peak_flops = 0;  // operations a cycle on the kernel's operands, by the target's rates
  std::string problem;    // why there is no estimate

  // Percent of peak_flops in the hot loop; 0: it has no multiply-adds
  double hot_percent() const;
};
struct ReportCall {
  std::string name, kernel;
  std::vector<int> after;  // calls whose results this one reads
  std::vector<ReportArgument> arguments;
  std::string algorithm, source, schedule;  // as in Pin; "" for a runtime function
  std::string tuned;                        // date of tuning
  int64_t code_bytes = 0, spills = 0;
  int device = 0;
};
// The difference between a fused group's result and the reference evaluator's
struct ReportError {
  std::string name, value, type;                 // name of the group; its result
  int call = -1;                                 // call that makes it; -1: none of that name
  double max_rel = 0, max_ulp = 0, max_abs = 0;  // as in Difference
};
// The cost and gain of a layer that rounds more than it must
struct ReportChoice {
  LayerAccuracy layer;
  int call = -1;  // call that computes it; -1: none of that name
};
struct Report {
  std::string model, target;
  std::string sizes;  // free dimensions' sizes, for which bytes are counted
  uint64_t weight_bytes = 0, artifact_bytes = 0, naive_arena_bytes = 0;
  int64_t arena_bytes = 0;
  std::vector<ReportCall> calls;  // calls for any sizes, without fast paths
  std::vector<ReportBuffer> buffers;
  std::vector<ReportTime> times;          // one for each call, or empty
  std::string no_times;                   // why `times` is empty
  std::vector<ReportEstimate> estimates;  // one for each call, or empty
  double clock = 0;                       // cycles a second of the estimated processor; 0: unknown
  std::vector<std::string> estimated_alike;  // processors with the same model, in LLVM
  std::string peaks;                         // peak rates of this machine, as text
  double gflops = 0, dram_gbs = 0;
  std::vector<ReportError> errors;
  std::string errors_note;  // inputs of the errors, and results that are missing; "": not asked for
  std::vector<ReportChoice> choices;
  std::string choices_note;  // error of all choices, limit and data; "": not asked for
};

// Bytes are counted at the example's sizes. The report has no times.
Report make_report(const PlannedProgram& planned, const CompileReport& compiled,
                   const Target& target);
void add_errors(const NodeErrors& errors, const std::string& note, Report& report);
void add_accuracy(const AccuracyReport& accuracy, const std::string& note, Report& report);
Json to_json(const Report& report);
Json::Array estimates_json(const Report& report);  // with the calls' names

}  // namespace tw
