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
  // By axis 1 of the layers' inputs. Not empty: from each bias is taken what rounding the weights
  // adds to the mean of its channel (bias correction, Nagel et al. 2019).
  ChannelValues means{};
};

class QuantizableModel {
 public:
  // Batch normalizations are folded, old opsets raised. Errors: io, invalid_model, unsupported
  // (weights in other files, an opset that cannot be raised).
  static Expected<QuantizableModel> open(const std::string& path);

  std::vector<QuantLayer> layers() const;
  std::string bytes() const;  // the model in floats
  // Values whose ranges quantized() needs, whatever layers stay in floats.
  std::vector<std::string> observed() const;
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
  // Constant weights of MatMul as MatMulNBits of com.microsoft.
  // Returns the number of them.
  int pack_weights(int bits, int block);

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace tw
