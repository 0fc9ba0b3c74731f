// ONNX files to Graphs, YAML files to Targets. The only room that knows protobuf, ONNX and
// yaml-cpp.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/input_form.h"
#include "ir/dim_names.h"
#include "ir/graph/graph.h"
#include "ir/target.h"

namespace tw {

// One kind of thing in a model that cannot be compiled, with every place where it occurs.
struct Gap {
  // invalid_model: not what ONNX allows; unsupported, limit: not what Tilewright can do
  DiagCode code;
  std::string op;  // "Loop", "com.acme.Foo"
  // "operator not supported", "attribute mode=cubic", "dtype string", "needs a static dim"
  std::string problem;
  std::string advice;              // what to do
  std::vector<std::string> nodes;  // names
};

// What is said of a model's inputs.
struct GivenInputs {
  InputForms forms;                                        // --inputs
  std::map<std::string, std::vector<std::string>> values;  // --const sr=16000: no inputs any more
};

struct ImportOptions {
  std::map<std::string, int64_t> dims;  // --dim batch=1, by any name that find_dim knows
  SymbolLimitsOf limits{};              // --dim seq=1..512
  GivenInputs given{};
};

struct Model {
  Graph graph;
  std::string name;    // file stem as a C identifier
  std::string sha256;  // of the model file
  uint64_t file_bytes = 0;
  std::string producer;
  std::map<std::string, std::string> metadata;  // its own properties, 64 KiB of them at most
  int64_t opset = 0;
  std::map<std::string, int> op_counts;  // of the ONNX nodes, "Conv" -> 53
  SymbolNames symbol_names;              // of the inputs' free dimensions
  std::map<std::string, int64_t> dims;   // those that were bound, by the model's names
  // What the file says and its graph does not give, branches that no run can take; a line each
  std::vector<std::string> warnings;
};

// The signature and operators that a file declares, whether it can be compiled or not.
struct ModelOutline {
  struct Tensor {
    std::string name, type;  // "f32[N, 3]", "sequence of i64", "f32 of any shape"
  };
  std::string name, sha256, producer;
  uint64_t file_bytes = 0;
  int64_t opset = 0;
  std::map<std::string, int> op_counts;
  std::vector<Tensor> inputs, outputs;
  std::vector<TensorSpec> shaped;  // inputs with free dimensions, by the model's names
};
Expected<ModelOutline> outline(const std::string& path);

// Loads (mapping the file; weights are never copied), checks, converts, infers shapes and imports.
// When parts are not supported the error is one Diag a Gap (all at once); gap_report gives the same
// as data.
Expected<Model> import_onnx(const std::string& path, const ImportOptions& options = {});
int newest_opset();  // of ai.onnx, that import_onnx reads
Expected<std::vector<Gap>> gap_report(const std::string& path, const ImportOptions& options = {});
std::string print_gaps(const std::vector<Gap>& gaps);

// The files beside an ONNX file that hold its tensors. None where it does not parse: import_onnx
// says why.
std::vector<std::string> external_files(const std::string& path);

// The folder that holds the model's file and those with its tensors where the path is a link of
// Hugging Face's cache; "" where it is none.
std::string cache_folder(const std::string& model_path);

// An ONNX TensorProto file (.pb), as the node tests store inputs and outputs.
Expected<Tensor> read_tensor_proto(const std::string& path);

// Smaller models out of an ONNX file, for finding the part of it that fails.
class CutModel {
 public:
  // dims: by name, bound in the model before it is cut. Errors: io, invalid_model, a name that no
  // input has.
  static Expected<CutModel> open(const std::string& path,
                                 const std::map<std::string, int64_t>& dims = {});
  size_t node_count() const;
  // The bytes of a model of only these nodes (in their order): values that others made are its
  // inputs, what nobody reads its outputs. nullopt: the type of one of them is not known.
  std::optional<std::string> cut(const std::vector<size_t>& nodes) const;
  std::string operators(const std::vector<size_t>& nodes) const;  // "Conv Relu"

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

inline constexpr const char* kHostTarget = "host";
inline constexpr size_t kMaxDescription = 64 << 10;  // bytes of a file
// `name_or_path`: a file, or a name in config_dirs (name.yaml); "host" describes this machine.
// Unknown keys are errors with line and column. It has all rates of its core.
Expected<Target> load_target(const std::string& name_or_path,
                             const std::vector<std::string>& config_dirs);
// The file that load_target reads; "" for "host" and for names that it does not know.
std::string target_file(const std::string& name_or_path,
                        const std::vector<std::string>& config_dirs);
// With the rates that it says.
Expected<Target> parse_target(const std::string& yaml, const std::string& file);
Target host_target();  // with no rates
// Rates that it lacks: of the description in config_dirs for its cpu, else by rule.
Target with_all_rates(Target target, const std::vector<std::string>& config_dirs);
std::vector<std::string> list_targets(const std::vector<std::string>& config_dirs);

}  // namespace tw
