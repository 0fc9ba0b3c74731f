// The compiler as one function: model and target in, artifact out. Command-line flags are read in
// cli/ alone.
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
std::string emit_names();                                   // all names, for help texts and errors

// Adds the sizes of an entry of CompileOptions::specialize to the bindings.
std::map<std::string, int64_t> with_sizes(std::map<std::string, int64_t> dims,
                                          const std::map<std::string, int64_t>& sizes);

// Terms on which a library's outputs were held against its model
struct Verified {
  std::string data;      // SHA-256 of the data; "": seeded inputs
  double tolerance = 0;  // share of an output's range
};

struct CompileOptions {
  // Paths; output "" = <model stem>.so in the current directory
  std::string model, output;
  std::string header;   // "" = the output's name with .h
  std::string weights;  // a file of their own for the weights; "" = inside the library
  // C identifier of the model; "" = from the output's file name
  std::string name;
  std::string prefix;  // prefix of names in the header; "" = tw_ and the name
  Emit emit = Emit::so;
  std::map<std::string, int64_t> dims;
  SymbolLimitsOf limits;  // limits of dimensions that stay free
  GivenInputs given;      // forms and values of inputs
  int jobs = 0;           // 0: as many as there are processors
  std::string dump_dir;   // every stage as text files, numbered; "" = none
  QuantizedRounding rounding = QuantizedRounding::standard;
  std::vector<std::string> pipeline;  // graph passes by name; empty: the default pipeline
  AlgorithmOptions algorithms;        // budgets for the choice of algorithms
  // The source of schedules; null: default schedules
  std::shared_ptr<const ScheduleSource> schedules;
  bool strict = false;  // write nothing if the report has faults
  // For references: a kernel for each operator, direct algorithms, plain schedules
  bool plain = false;
  RunOptions passes;  // hooks of the pass runner
  int64_t chunk_ns = CodegenOptions().chunk_ns;
  ObjectStore* store = nullptr;  // the one that keeps kernels' objects, if any
  // Sizes of free dimensions that get fast paths: calls of their own
  std::vector<std::map<std::string, int64_t>> specialize;
  // Goes into the manifest. The caller keeps the library only if verification succeeds.
  std::optional<Verified> verified;
  bool rewritten = false;  // the graph has been through the passes: run none
  // Receives the model's own calls and their memory, before fast paths join them
  std::function<void(const PlannedProgram&)> on_planned;
};

std::string header_path(const CompileOptions& options);

// One program of a library with code for several processors
struct PathReport {
  std::string target;
  int64_t kernels = 0, calls = 0;
  // Bytes of all weights, and of those that earlier paths have too
  uint64_t weight_bytes = 0;
  uint64_t shared_weight_bytes = 0;
};

// A layer that rounds more than direct sums in the model's own types
struct LossyLayer {
  std::string name;                          // name of the value that the layer's product makes
  std::string group, op;                     // group_name, the name of its call; "conv"
  std::string choice;                        // "bf16", "winograd_f4", "bf16 winograd_f2"
  double weight_bytes = 0, exact_bytes = 0;  // packed weights, with the choice and without it
};

struct CompileReport {
  std::vector<StageReport> stages;
  int64_t nodes = 0, groups = 0, kernels = 0, calls = 0;
  uint64_t model_bytes = 0;     // size of the model's files
  uint64_t constant_bytes = 0;  // constants as they are imported
  uint64_t weight_bytes = 0, naive_arena_bytes = 0, artifact_bytes = 0, peak_memory_bytes = 0;
  std::map<std::string, int64_t> dims;  // bound dimensions, by the model's names
  SymbolLimitsOf limits;                // limits of symbols that stay free
  SymbolNames symbol_names;
  Expr arena_bytes = 0;               // without fast paths
  std::optional<ObjectSizes> object;  // --emit obj: memory that it takes in a program
  // Sizes of free dimensions, for which naive_arena_bytes and warm_share are computed
  Sizes example;
  // Share of tensor bytes that are written to places which the second cache level still holds
  double warm_share = 0;
  std::vector<KernelReport> kernel_reports;
  std::vector<int64_t> kernel_calls;
  // Layout blocks by value, if measured times or a lock chose them
  std::optional<std::map<std::string, int64_t>> layouts;
  // Algorithms of products with constant weights, by the value that the product makes
  std::map<std::string, Algorithm> algorithms;
  std::vector<LossyLayer> lossy;  // in the order of the graph
  std::set<std::string> exact;    // layers that had to round nothing, by the options or the lock
  // Each kernel's schedule and its origin; empty for plain compiles
  std::vector<Pin> schedules;
  bool schedules_in_use = false;             // ScheduleRemarks::in_use
  std::vector<std::string> warnings, notes;  // one line each
  std::vector<std::string> faults;           // compiler bugs that the compile worked around
  std::vector<PathReport> paths;             // one, unless the target has several processors
  std::vector<std::string> device_notes;     // notes of the devices' code generators
  std::vector<std::string> host_reasons;     // with devices: groups left to the processor, and why
  std::string output, header, text;          // text: result of --emit with a text stage
};

// Imports the model, with its rounding as the options say.
Expected<Model> import_model(const CompileOptions& options);
Expected<CompileReport> compile_model(const CompileOptions& options, const Target& target,
                                      const OnStage& progress = nullptr);
// Compiles a graph that is imported already; options.model only names it. special: the model with
// the sizes of each entry of options.specialize.
Expected<CompileReport> compile_graph(Model model, const CompileOptions& options,
                                      const Target& target, const OnStage& progress = nullptr,
                                      std::vector<Model> special = {});

uint64_t peak_memory();  // bytes of this process

}  // namespace tw
