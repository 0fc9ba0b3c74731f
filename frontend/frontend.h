// The interface of the frontend: ONNX files become Graphs, YAML files become Targets. Only this
// room knows protobuf, ONNX and yaml-cpp.
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

// One reason why a model cannot be compiled, with every place where it occurs.
struct Gap {
  // invalid_model: ONNX does not allow it; unsupported, limit: Tilewright cannot do it
  DiagCode code;
  std::string op;  // "Loop", "com.acme.Foo"
  // "operator not supported", "attribute mode=cubic", "dtype string", "needs a static dim"
  std::string problem;
  std::string advice;              // for the user
  std::vector<std::string> nodes;  // names of the nodes
};

// The user's description of a model's inputs.
struct GivenInputs {
  InputForms forms;                                        // --inputs
  std::map<std::string, std::vector<std::string>> values;  // --const sr=16000: no inputs then
};

struct ImportOptions {
  std::map<std::string, int64_t> dims;  // --dim batch=1, by any name that find_dim knows
  SymbolLimitsOf limits{};              // --dim seq=1..512
  GivenInputs given{};
};

struct Model {
  Graph graph;
  std::string name;    // stem of the file name as a C identifier
  std::string sha256;  // hash of the model file
  uint64_t file_bytes = 0;
  std::string producer;
  std::map<std::string, std::string> metadata;  // properties in the file, at most 64 KiB of them
  int64_t opset = 0;
  std::map<std::string, int> op_counts;  // ONNX nodes by operator, "Conv" -> 53
  SymbolNames symbol_names;              // names of the inputs' free dimensions
  std::map<std::string, int64_t> dims;   // bound dimensions, by the model's names
  // Contents of the file that the graph does not have, and branches that no run can take; a line
  // each
  std::vector<std::string> warnings;
};

// The signature and the operators that a file declares. The file need not be one that can be
// compiled.
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

// Maps the file, checks and converts the model, infers shapes and imports it. Weights are never
// copied. If parts are not supported, the error has one Diag for each Gap; gap_report returns the
// gaps as data.
Expected<Model> import_onnx(const std::string& path, const ImportOptions& options = {});
int newest_opset();  // newest opset of ai.onnx that import_onnx reads
Expected<std::vector<Gap>> gap_report(const std::string& path, const ImportOptions& options = {});
std::string print_gaps(const std::vector<Gap>& gaps);

// The files beside an ONNX file that hold its tensors. Empty if the model does not parse:
// import_onnx reports the reason.
std::vector<std::string> external_files(const std::string& path);

// The folder with the model's file and its tensors' files, if the path is a link of Hugging Face's
// cache; else "".
std::string cache_folder(const std::string& model_path);

// Reads an ONNX TensorProto file (.pb), in which the node tests store inputs and outputs.
Expected<Tensor> read_tensor_proto(const std::string& path);

// Parts of an ONNX model as smaller models, to find the part that fails.
class CutModel {
 public:
  // `dims` are bound by name before the model is cut. Errors: io, invalid_model, a name that no
  // input has.
  static Expected<CutModel> open(const std::string& path,
                                 const std::map<std::string, int64_t>& dims = {});
  size_t node_count() const;
  // The bytes of a model with only these nodes, in their order. Values from other nodes become
  // inputs, values that nobody reads become outputs. nullopt if the type of one of them is unknown.
  std::optional<std::string> cut(const std::vector<size_t>& nodes) const;
  std::string operators(const std::vector<size_t>& nodes) const;  // "Conv Relu"

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

inline constexpr const char* kHostTarget = "host";
inline constexpr size_t kMaxDescription = 64 << 10;  // limit of a description file in bytes
// `name_or_path` is a file, or the name of one in config_dirs (name.yaml); "host" describes this
// machine. Unknown keys are errors with line and column. The target has all rates of its core.
Expected<Target> load_target(const std::string& name_or_path,
                             const std::vector<std::string>& config_dirs);
// The file that load_target reads; "" for "host" and for names that it does not know.
std::string target_file(const std::string& name_or_path,
                        const std::vector<std::string>& config_dirs);
// The target has only the rates in the text.
Expected<Target> parse_target(const std::string& yaml, const std::string& file);
Target host_target();  // without rates
// Adds missing rates: from the description in config_dirs for its cpu, else by rule.
Target with_all_rates(Target target, const std::vector<std::string>& config_dirs);
std::vector<std::string> list_targets(const std::vector<std::string>& config_dirs);

}  // namespace tw
