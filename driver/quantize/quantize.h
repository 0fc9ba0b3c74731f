// Post-training quantization of an ONNX file into another one.
#pragma once
#include <functional>
#include <optional>

#include "driver/accuracy/error_limit.h"
#include "driver/compile/stage_clock.h"
#include "driver/quantize/calibrate.h"

namespace tw {

struct QuantizeRequest {
  std::string model;
  std::map<std::string, int64_t> dims;  // sizes that the written model has bound
  std::string data;                     // a folder; "": `random` samples
  int random = 0, samples = 0;          // samples: at most this many; 0: all
  InputForms inputs;                    // how pictures become inputs
  NetworkBuild build;
  CalibrationRule rule;
  QdqForm form;  // form.floats: found by max_error
  bool equalize = false, balance = true, correct_biases = true, by_layer = false;
  std::optional<ErrorLimit> max_error;
};

struct LayerReport {
  QuantLayer layer;
  std::optional<double> error;  // error of the outputs when this layer alone is quantized
  bool in_floats = false;
};
// Median milliseconds of a run on one thread of this machine.
struct QuantizedTimes {
  double floats = 0, integers = 0;
  double speed_up() const { return integers > 0 ? floats / integers : 0; }
};
struct QuantizeReport {
  std::string model;  // bytes of the quantized file
  QuantizedTimes times;
  std::vector<LayerReport> layers;
  size_t samples = 0;
  // The error of the quantized model's outputs against those in floats, in the measure of
  // max_error; without max_error, rms
  double error = 0;
  ErrorMeasure measure = ErrorMeasure::rms;
  int equalized = 0;     // pairs of layers
  int balanced = 0;      // values
  bool widened = false;  // f16 became f32, also in inputs and outputs
};
// Writes no file. Errors, besides those of files and models: no data, or a max_error that cannot be
// met (with the layers to blame).
Expected<QuantizeReport> quantize_model(const QuantizeRequest& request, const OnStage& stage);

// The bytes of a model whose weights alone are quantized, and counts of these weights
struct PackedModel {
  std::string model;
  PackedWeights packed;
};
Expected<PackedModel> quantize_weights(const std::string& model,
                                       const std::map<std::string, int64_t>& dims,
                                       const BlockForm& form);

}  // namespace tw
