// The compiler as one function: model and target in, artifact out. Flags are read in the
// sub-commands' files only.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "driver/compile/example_sizes.h"
#include "driver/compile/stage_clock.h"
#include "frontend/frontend.h"
#include "packager/object_file.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/pass.h"
#include "passes/quantized_rounding.h"
#include "program/plan_program.h"
#include "program/schedules.h"

namespace tw {

enum class Emit : uint8_t {
  so,
  object,
  graph,
  groups,
  kernels,
  schedules,
  scheduled,
  llvm,
  assembly
};
std::optional<Emit> emit_from_name(std::string_view name);  // "so", "obj", "graph", …, "asm"
std::string emit_names();                                   // of all, for help texts and errors

// Bindings with those of an entry of CompileOptions::specialize.
std::map<std::string, int64_t> with_sizes(std::map<std::string, int64_t> dims,
                                          const std::map<std::string, int64_t>& sizes);

// How a library's outputs were held against its model before it was written.
struct Verified {
  std::string data;      // SHA-256 of the data; "": seeded inputs
  double tolerance = 0;  // of an output's range
};

struct CompileOptions {
  // Files; output "" = <model stem>.so beside the current directory
  std::string model, output;
  std::string header;   // "" = the output's name with .h
  std::string weights;  // a file of their own for the weights; "" = inside the library
  // C identifier of the model; "" = from the output's file name
  std::string name;
  std::string prefix;  // of the header's names; "" = tw_ and the name
  Emit emit = Emit::so;
  std::map<std::string, int64_t> dims;
  SymbolLimitsOf limits;  // of dimensions that stay free
  GivenInputs given;      // of the inputs
  int jobs = 0;           // 0: as many as there are processors
  std::string dump_dir;   // every stage as text files, numbered; "" = none
  QuantizedRounding rounding = QuantizedRounding::standard;
  std::vector<std::string> pipeline;  // graph passes by name; empty: the default pipeline
  AlgorithmOptions algorithms;        // budgets of the choice
  // Where schedules come from; null: the default ones
  std::shared_ptr<const ScheduleSource> schedules;
  bool strict = false;  // nothing is written where the report has faults
  // a kernel an operator, direct, with the plain schedule: for references
  bool plain = false;
  RunOptions passes;  // hooks of the pass runner
  int64_t chunk_ns = CodegenOptions().chunk_ns;
  // Sizes of free dimensions that get calls of their own
  std::vector<std::map<std::string, int64_t>> specialize;
  // Goes into the manifest: the caller keeps the library only if it holds
  std::optional<Verified> verified;
  bool rewritten = false;  // the graph is as its passes left it: none are run
  // Is shown the model's own calls and their memory, before fast paths join them
  std::function<void(const PlannedProgram&)> on_planned;
};

std::string header_path(const CompileOptions& options);  // of the C header

// Of a library with code for several processors.
struct PathReport {
  std::string target;
  int64_t kernels = 0, calls = 0;
  uint64_t weight_bytes = 0;  // in all, and those of them that the paths before have, too
  uint64_t shared_weight_bytes = 0;
};

// A layer that rounds more than direct sums in the model's own numbers would.
struct LossyLayer {
  std::string name;                          // of the value that its product makes
  std::string group, op;                     // group_name, as its call is named; "conv"
  std::string choice;                        // "bf16", "winograd_f4", "bf16 winograd_f2"
  double weight_bytes = 0, exact_bytes = 0;  // packed, and what they would be without
};

struct CompileReport {
  std::vector<StageReport> stages;
  int64_t nodes = 0, groups = 0, kernels = 0, calls = 0;
  uint64_t model_bytes = 0;     // of its files
  uint64_t constant_bytes = 0;  // of its constants, as they are imported
  uint64_t weight_bytes = 0, naive_arena_bytes = 0, artifact_bytes = 0, peak_memory_bytes = 0;
  std::map<std::string, int64_t> dims;  // bound, by the model's names
  SymbolLimitsOf limits;                // of the symbols that stay free
  SymbolNames symbol_names;
  Expr arena_bytes = 0;               // without fast paths
  std::optional<ObjectSizes> object;  // of --emit obj: what it takes of a program's memory
  // Of the free dimensions: naive_arena_bytes and warm_share are of these
  Sizes example;
  // Of the bytes that tensors are made in: used so lately that the second cache level still has
  // them
  double warm_share = 0;
  std::vector<KernelReport> kernel_reports;
  std::vector<int64_t> kernel_calls;  // of each kernel
  // Blocks of values, where measured times or a lock chose them
  std::optional<std::map<std::string, int64_t>> layouts;
  // Of products with constant weights, by the value that they make
  std::map<std::string, Algorithm> algorithms;
  std::vector<LossyLayer> lossy;  // in the order of the graph
  std::set<std::string> exact;    // layers that had to round nothing, by the options or the lock
  // Of each kernel: which, and where it comes from; empty when plain
  std::vector<Pin> schedules;
  bool schedules_in_use = false;             // ScheduleRemarks::in_use
  std::vector<std::string> warnings, notes;  // about schedules, a line each
  std::vector<std::string> faults;           // bugs of the compiler that it got around
  std::vector<PathReport> paths;             // one, unless the target has several
  std::vector<std::string> device_notes;     // of the devices' code generators
  std::vector<std::string> host_reasons;     // with devices: what stays on the processor, and why
  std::string output, header, text;          // text: what --emit of a text stage asked for
};

// The model, which rounds as the options say.
Expected<Model> import_model(const CompileOptions& options);
Expected<CompileReport> compile_model(const CompileOptions& options, const Target& target,
                                      const OnStage& progress = nullptr);
// The same for a graph that is already here; options.model is not read. special: the model with the
// sizes of each entry of options.specialize.
Expected<CompileReport> compile_graph(Model model, const CompileOptions& options,
                                      const Target& target, const OnStage& progress = nullptr,
                                      std::vector<Model> special = {});

uint64_t peak_memory();  // of this process, bytes

}  // namespace tw
