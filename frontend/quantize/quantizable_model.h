// An ONNX model that is to be quantized: what must be known of its values, and the quantized file.
// Calibration itself (running the model, choosing ranges) is not done here.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

// What a value spans; zero is made a part of it.
struct ValueRange {
  double least = 0, most = 0;
};
using ValueRanges = std::map<std::string, ValueRange>;
using ChannelValues = std::map<std::string, std::vector<double>>;  // by value and axis 1

// What a range makes of a number x: clamp(round(x / scale) + zero).
struct ScaleAndZero {
  float scale = 1;
  int zero = 0;
};
ScaleAndZero scale_of(ValueRange range, bool signed_values);

// A product: what is quantized or left in floats as a whole.
struct QuantLayer {
  std::string name, op;  // of the node
  int64_t weights = 0;   // elements; 0: a product of two computed values
  std::string input;     // value
};
using LayerSet = std::set<size_t>;  // indices of layers()

struct QdqForm {
  bool signed_activations = false;  // i8 in place of u8
  int weight_bits = 8;              // 7: sums of u8 x i8 pairs fit 16 bits
  LayerSet floats;                  // layers that stay in floats
  // By axis 1 of the layers' inputs, in floats and rounded as the ranges say. Not empty: from each
  // bias is taken what rounding the weights and the input adds to the mean of its channel (bias
  // correction, Nagel et al. 2019).
  ChannelValues means{}, rounded_means{};
};

// Weights in blocks of so many that share a scale and, asymmetric, a zero point.
struct BlockForm {
  int bits = 8, block = 32;
  bool asymmetric = false;
};
struct PackedWeights {
  int matrices = 0, tables = 0;  // nodes that read them
  // Left in floats: products in graphs of If, Loop and Scan; Gemms with factors or a transposed
  // left operand; tables of 2 bits or whose rows fill no bytes
  int inside = 0, other_gemms = 0, other_tables = 0;
};

class QuantizableModel {
 public:
  // Weights in other files are taken inside, batch normalizations folded, old opsets raised.
  // Errors: io, invalid_model, unsupported (an opset that cannot be raised).
  static Expected<QuantizableModel> open(const std::string& path);
  // Sizes of dimensions by the model's names, "x[3]" where it gives none, from here on.
  void bind(const std::map<std::string, int64_t>& dims);
  // f16 becomes f32, inputs and outputs of the model too; whether there was any.
  bool widen_halves();

  std::vector<QuantLayer> layers() const;
  Error fits_file() const;              // error: 2 GiB or more
  Expected<std::string> bytes() const;  // the model as it is; error: it does not fit
  // Values whose ranges quantized() needs, whatever layers stay in floats.
  std::vector<std::string> observed() const;
  // The ranges that quantized() uses: values that share a scale share a range.
  ValueRanges shared(const ValueRanges& ranges) const;
  // The model in floats with some values as outputs behind its own.
  std::string observing(const std::vector<std::string>& values) const;
  // The model with QuantizeLinear and DequantizeLinear. ranges: of all that observed() names.
  std::string quantized(const ValueRanges& ranges, const QdqForm& form) const;

  // Cross-layer equalization (Nagel et al. 2019): weights of neighbouring convolutions get channels
  // of equal ranges; what the model computes stays. Returns the number of pairs.
  int equalize();
  // Channel balancing: of values that depthwise convolutions read, channels get equal ranges by a
  // Mul, which the weights undo. `largest`: magnitudes, of what balanceable() names. Returns the
  // number of values that are changed.
  std::vector<std::string> balanceable() const;
  int balance(const ChannelValues& largest);
  // Constant weights of MatMul and Gemm as MatMulNBits, tables of Gather as GatherBlockQuantized,
  // both of com.microsoft.
  PackedWeights pack_weights(const BlockForm& form);

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace tw
