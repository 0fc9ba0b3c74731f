// The tensors that a model is fed and gives: read from files, made up from a seed, checked against
// what the model says.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/run/dims.h"
#include "frontend/input_form.h"
#include "ir/graph/graph.h"
#include "ir/program.h"
#include "runtime/tilewright.h"

namespace tw {

using Symbols = std::map<std::string, int64_t>;  // values of symbolic dims

struct InputSources {
  // --input NAME=FILE; FILE alone for the only input, or an .npz with a member per input
  std::vector<std::string> files;
  std::vector<std::string> dims;   // --dim
  std::optional<uint64_t> random;  // --random: fills what no file gives
  // --data DIR: input_0.pb, input_1.pb, ... (or .npy), as the ONNX tests store them
  std::string data;
  InputForms forms{};  // how pictures become inputs
};

struct Inputs {
  std::vector<Tensor> tensors;       // in the model's order
  Symbols symbols;                   // every symbol of the inputs' dims is bound
  std::vector<std::string> files{};  // that were read
};

// What a model says of its inputs: dims are constants, symbols, or expressions of them.
std::vector<TensorSpec> input_specs(const tw_api& api);

// --dim flags as values of the inputs' symbols, each named in any way that find_dim knows.
Expected<Symbols> bind_dims(const std::vector<std::string>& texts,
                            const std::vector<TensorSpec>& specs);

// Errors: an unknown or missing input, a wrong dtype, rank or extent, a symbol bound to two values
// or to none.
Expected<Inputs> load_inputs(const std::vector<TensorSpec>& specs, const InputSources& flags);
// Binds symbols by the tensors' shapes and checks them; tensors in the order of specs.
Error bind_shape(const TensorSpec& spec, const Tensor& tensor, const std::string& from,
                 Symbols& symbols);

// .npy, or an ONNX TensorProto in .pb, by the file's ending.
// Shapes that dims make: no more than 2^40 bytes.
Error check_countable(const std::string& what, DType dtype, std::span<const int64_t> shape);
Expected<Tensor> read_tensor(const std::string& path);
// DIR/<stem>_<index>.pb or .npy, the first that is there; "" when there is neither.
std::string stored_path(const std::string& dir, const std::string& stem, size_t index);
Expected<std::optional<Tensor>> read_stored(const std::string& dir, const std::string& stem,
                                            size_t index);
// DIR/NAME.npy with '/' as '_'
std::string output_path(const std::string& dir, const std::string& name);
// Writes it whole or not at all.
Error save_output(const std::string& path, const Tensor& tensor);

// Floats uniform in [-1, 1), integers 0 or 1 (so that they may be indices, masks and token types),
// from SplitMix64: the same on every machine for the same seed and stream.
Tensor random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, uint64_t stream);

std::string shape_text(std::span<const int64_t> shape);  // "[1, 3, 224, 224]"
std::string type_text(const TensorSpec& spec);           // "f32[batch, 3, 224, 224]"

}  // namespace tw
