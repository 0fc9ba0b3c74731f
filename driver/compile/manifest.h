// The manifest is the JSON in an artifact that says where the artifact came from and what is in it.
// It is the same on every build host.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "support/json.h"

namespace tw {

struct ManifestTensor {
  std::string name, dtype;
  std::vector<std::string> dims;  // "1", "batch", "batch*2"
};
struct ManifestKernel {
  std::string name, hash;                           // hash: kernel_hash of the scheduled kernel
  int64_t code_bytes = 0, spills = 0, reloads = 0;  // as in KernelReport
  int64_t registers = 0, stack_bytes = 0, shared_bytes = 0;  // on a device
  int64_t instructions = 0, cycles = 0;                      // predicted for a device's stream
  std::string schedule = "default", tuned = {};              // source_of; the date of tuning
  DType multiplies = DType::f32;                             // multiplied_type
};
// A loop whose iterations threads share (ir/kernel/shared_loop.h).
struct ManifestLoop {
  std::string iterations, most_parts, entries, operations;
};
struct ManifestCall {
  int kernel = 0;    // index into kernels; -1: a call of `function`
  std::string name;  // the nodes it computes
  // Expressions of the model's symbols (ir/kernel/work.h)
  std::string flops, weight_bytes, tensor_bytes;
  std::string loaded_bytes;  // ir/kernel/loads.h
  // As in KernelCall: 0 is the processor, else 1 + index into devices
  int device = 0, from = 0;
  std::string function = {};  // name in the runtime library
  // Operations of the whole call, and its parallel loops
  std::string operations = {};
  std::vector<ManifestLoop> loops = {};
};
struct Manifest {
  std::string compiler, name;  // version; C identifier
  std::string model_sha256, producer;
  std::map<std::string, std::string> metadata;  // the model's own properties
  int64_t opset = 0;
  uint64_t model_bytes = 0;
  std::string target_name, target_hash, target_yaml;
  std::map<std::string, int64_t> dims;  // bound by --dim
  GivenInputs given;                    // --inputs, --const
  QuantizedRounding rounding = QuantizedRounding::standard;
  std::vector<std::string> pipeline;  // graph passes; empty: the default ones
  AlgorithmOptions algorithms;
  std::vector<std::string> symbols;      // names in the model
  std::vector<std::string> identifiers;  // names in expressions, in the same order
  std::vector<ManifestTensor> inputs, outputs;
  uint64_t weight_bytes = 0, naive_arena_bytes = 0;
  std::string weights_file;                 // name of the file beside the library; "": inside it
  std::string arena_bytes;                  // a number, or an expression of symbols for any sizes
  std::map<std::string, int64_t> example;   // sizes for which naive_arena_bytes is computed
  std::optional<uint64_t> max_arena_bytes;  // for any symbols within their limits
  SymbolLimitsOf limits;                    // --dim seq=1..512
  std::vector<std::string> needs;           // demands on sizes, as in Program
  // Sizes with calls of their own. These calls come behind the others in `calls`.
  std::vector<std::map<std::string, int64_t>> fast_paths;
  std::optional<Verified> verified;
  bool grows = false;  // data decide about sizes, so runs may ask for memory
  std::vector<ManifestKernel> kernels;
  std::vector<std::string> devices;       // names, in the target's order
  std::vector<std::string> device_notes;  // notes of the devices' code generators
  std::vector<ManifestCall> calls;        // in the order of tw_api's profile
  // In a library for several processors, the other programs, each named by its target
  std::vector<Manifest> paths;
};

// symbol: the C identifier of the model.
Manifest make_manifest(const Model& model, const Program& program, const Target& target,
                       const std::string& symbol, const CompileOptions& options,
                       const CompileReport& report);
std::string print(const Manifest& manifest);  // JSON, one line
// Dims that are symbols have the model's names. Dims that follow from others are undefined.
std::vector<TensorSpec> input_specs(const Manifest& manifest);
// The manifest of the program that runs when tw_api.target is `target`
const Manifest& path_of(const Manifest& manifest, std::string_view target);
// The model's name of each symbol in expressions
SymbolNames symbol_names(const Manifest& manifest);
// Missing keys keep their defaults and unknown keys are ignored: other versions write others.
Expected<Manifest> parse_manifest(const std::string& text, const std::string& file);
Json to_json(const Manifest& manifest);
std::string to_string(const ManifestTensor& t);  // "image: f32[batch, 3, 224, 224]"

}  // namespace tw
