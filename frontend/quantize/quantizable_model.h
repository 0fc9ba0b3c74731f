// An ONNX model to be quantized: facts about its values, and the quantized file. Calibration, which
// runs the model and chooses ranges, is elsewhere (driver/quantize/).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

// The range of a value; scale_of() extends it to include 0.
struct ValueRange {
  double least = 0, most = 0;
};
using ValueRanges = std::map<std::string, ValueRange>;
using ChannelValues = std::map<std::string, std::vector<double>>;  // by value and axis 1

// The integer of a number x in a range is clamp(round(x / scale) + zero).
struct ScaleAndZero {
  float scale = 1;
  int zero = 0;
};
ScaleAndZero scale_of(ValueRange range, bool signed_values);

// A product, which is quantized or left in floats as a whole.
struct QuantLayer {
  std::string name, op;  // name and operator of the node
  int64_t weights = 0;   // elements; 0: a product of two computed values
  std::string input;     // name of input 0
};
using LayerSet = std::set<size_t>;  // indices of layers()

struct QdqForm {
  bool signed_activations = false;  // i8 in place of u8
  int weight_bits = 8;              // 7: sums of u8 x i8 pairs fit 16 bits
  LayerSet floats;                  // layers that stay in floats
  // Means by axis 1 of the layers' inputs, in floats and rounded by the ranges. If they are not
  // empty, each bias loses what rounding the weights and the input adds to its channel's mean (bias
  // correction, Nagel et al. 2019).
  ChannelValues means{}, rounded_means{};
};

// Blocks of `block` weights that share a scale and, if asymmetric, a zero point.
struct BlockForm {
  int bits = 8, block = 32;
  bool asymmetric = false;
};
struct PackedWeights {
  int matrices = 0, tables = 0;  // nodes that read packed weights
  // Left in floats: products in graphs of If, Loop and Scan; Gemms with factors or a transposed
  // left operand; tables of 2 bits, or with rows that do not fill whole bytes
  int inside = 0, other_gemms = 0, other_tables = 0;
};

class QuantizableModel {
 public:
  // Takes in weights from other files, folds batch normalizations, raises old opsets. Errors: io,
  // invalid_model, unsupported (an opset that cannot be raised).
  static Expected<QuantizableModel> open(const std::string& path);
  // Binds dimensions from here on, by the model's names, or "x[3]" where it gives none.
  void bind(const std::map<std::string, int64_t>& dims);
  // Turns f16 into f32, in the model's inputs and outputs too. Returns true if there was any.
  bool widen_halves();

  std::vector<QuantLayer> layers() const;
  Error fits_file() const;              // error: 2 GiB or more
  Expected<std::string> bytes() const;  // the model as it is; error: it does not fit
  // The values whose ranges quantized() needs, whichever layers stay in floats.
  std::vector<std::string> observed() const;
  // The ranges that quantized() uses: values that share a scale share a range.
  ValueRanges shared(const ValueRanges& ranges) const;
  // The model in floats, with these values as further outputs.
  std::string observing(const std::vector<std::string>& values) const;
  // The model with QuantizeLinear and DequantizeLinear. `ranges` has all values of observed().
  std::string quantized(const ValueRanges& ranges, const QdqForm& form) const;

  // Cross-layer equalization (Nagel et al. 2019): gives channels of neighbouring convolutions
  // weights of equal range; the model's results stay. Returns the number of pairs.
  int equalize();
  // Channel balancing: values that only depthwise convolutions read get channels of equal range by
  // a Mul, which the weights undo. `largest` has the magnitudes of the values of balanceable().
  // Returns the number of changed values.
  std::vector<std::string> balanceable() const;
  int balance(const ChannelValues& largest);
  // Packs constant weights of MatMul and Gemm as MatMulNBits, and tables of Gather as
  // GatherBlockQuantized, both of com.microsoft.
  PackedWeights pack_weights(const BlockForm& form);

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace tw
