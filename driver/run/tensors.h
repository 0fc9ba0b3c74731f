// Tensors that a model takes and gives: read from files, made up from a seed, checked against the
// model's types.
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
  std::optional<uint64_t> random;  // --random: fills inputs that no file gives
  // --data DIR: input_0.pb, input_1.pb, ... (or .npy), as the ONNX tests store them
  std::string data;
  InputForms forms{};  // how pictures become inputs
};

struct Inputs {
  std::vector<Tensor> tensors;       // in the model's order
  Symbols symbols;                   // every symbol of the inputs' dims is bound
  std::vector<std::string> files{};  // files that were read
};

// Types of a model's inputs. Dims are constants or symbols; computed dims are undefined.
std::vector<TensorSpec> input_specs(const tw_api& api);

// --dim flags as values of the inputs' symbols, each named in any way that find_dim knows.
Expected<Symbols> bind_dims(const std::vector<std::string>& texts,
                            const std::vector<TensorSpec>& specs);

// Errors: an unknown or missing input, a wrong dtype, rank or extent, a symbol bound to two values
// or to none.
Expected<Inputs> load_inputs(const std::vector<TensorSpec>& specs, const InputSources& flags);
// Binds the symbols of spec by the tensor's shape, and checks the shape. from: the source, for
// errors
Error bind_shape(const TensorSpec& spec, const Tensor& tensor, const std::string& from,
                 Symbols& symbols);

// Errors: a shape of more than 2^40 bytes, or a negative extent.
Error check_countable(const std::string& what, DType dtype, std::span<const int64_t> shape);
// Reads .npy, or an ONNX TensorProto in .pb, by the path's ending.
Expected<Tensor> read_tensor(const std::string& path);
// DIR/<stem>_<index>.pb or .npy, the first that exists; "": neither does
std::string stored_path(const std::string& dir, const std::string& stem, size_t index);
Expected<std::optional<Tensor>> read_stored(const std::string& dir, const std::string& stem,
                                            size_t index);
// DIR/NAME.npy with '/' as '_'
std::string output_path(const std::string& dir, const std::string& name);
// Writes the file whole or not at all.
Error save_output(const std::string& path, const Tensor& tensor);

// Floats are uniform in [-1, 1). Integers are 0 or 1, so that they may be indices, masks and token
// types. SplitMix64 makes them: the same on every machine for the same seed and stream.
Tensor random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, uint64_t stream);

std::string shape_text(std::span<const int64_t> shape);  // "[1, 3, 224, 224]"
std::string type_text(const TensorSpec& spec);           // "f32[batch, 3, 224, 224]"

}  // namespace tw
