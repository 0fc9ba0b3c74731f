// The JSON that an artifact carries: where it came from and what is in it. Everything in it is the
// same on every build host.
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
  int64_t code_bytes = 0, spills = 0, reloads = 0;  // as KernelReport has them
  int64_t registers = 0, stack_bytes = 0, shared_bytes = 0;  // on a device
  int64_t instructions = 0, cycles = 0;                      // of a stream
  std::string schedule = "default", tuned = {};              // or "tuned", and the date of that
  DType multiplies = DType::f32;                             // ir/kernel/work.h
};
// A loop whose iterations threads share (ir/kernel/shared_loop.h).
struct ManifestLoop {
  std::string iterations, most_parts, entries, operations;
};
struct ManifestCall {
  int kernel = 0;    // index into kernels; -1: a call of `function`
  std::string name;  // the nodes it computes
  // ir/kernel/work.h, in terms of the model's symbols
  std::string flops, weight_bytes, tensor_bytes;
  std::string loaded_bytes;  // ir/kernel/loads.h
  // As KernelCall's: 0 the processor, else 1 + index into devices
  int device = 0, from = 0;
  std::string function = {};  // of the runtime library
  // Of all of the call, and its parallel loops
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
  std::vector<std::string> symbols;      // by the model's names
  std::vector<std::string> identifiers;  // what expressions call them
  std::vector<ManifestTensor> inputs, outputs;
  uint64_t weight_bytes = 0, naive_arena_bytes = 0;
  std::string weights_file;                 // their name beside the library; "": inside
  std::string arena_bytes;                  // a number or an expression of symbols, for any sizes
  std::map<std::string, int64_t> example;   // sizes of the symbols, of which naive_arena_bytes is
  std::optional<uint64_t> max_arena_bytes;  // of symbols within limits
  SymbolLimitsOf limits;                    // --dim seq=1..512
  std::vector<std::string> needs;           // of sizes, as Program has them
  // Sizes with calls of their own, which come behind the others in `calls`
  std::vector<std::map<std::string, int64_t>> fast_paths;
  std::optional<Verified> verified;
  bool grows = false;  // runs may ask for memory: data decide about sizes
  std::vector<ManifestKernel> kernels;
  std::vector<std::string> devices;       // names, in the target's order
  std::vector<std::string> device_notes;  // of their code generators
  std::vector<ManifestCall> calls;        // in the order of tw_api's profile
  // Of a library for several processors: what else runs, each named by its target
  std::vector<Manifest> paths;
};

// symbol: the C identifier of the model.
Manifest make_manifest(const Model& model, const Program& program, const Target& target,
                       const std::string& symbol, const CompileOptions& options,
                       const CompileReport& report);
std::string print(const Manifest& manifest);  // JSON, one line
// Dims by name where they are symbols, undefined where they follow from others.
std::vector<TensorSpec> input_specs(const Manifest& manifest);
// The program that runs where tw_api.target is this.
const Manifest& path_of(const Manifest& manifest, std::string_view target);
// What expressions call the model's symbols, and their names.
SymbolNames symbol_names(const Manifest& manifest);
// Missing keys keep their default, unknown ones are ignored: other versions write others.
Expected<Manifest> parse_manifest(const std::string& text, const std::string& file);
Json to_json(const Manifest& manifest);
std::string to_string(const ManifestTensor& t);  // "image: f32[batch, 3, 224, 224]"

}  // namespace tw
