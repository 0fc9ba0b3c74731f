// Post-training quantization of an ONNX file into another one.
#pragma once
#include <functional>
#include <optional>

#include "driver/accuracy/error_limit.h"
#include "driver/compile/stage_clock.h"
#include "driver/quantize/calibrate.h"

namespace tw {

struct QuantizeRequest {
  std::string model, output;
  std::string data;             // a folder; "": `random` samples
  int random = 0, samples = 0;  // samples: no more than so many; 0: all
  InputForms inputs;            // how pictures become inputs
  NetworkBuild build;
  CalibrationRule rule;
  QdqForm form;  // form.floats: found by max_error
  bool equalize = false, balance = true, correct_biases = true, by_layer = false;
  std::optional<ErrorLimit> max_error;
};

struct LayerReport {
  QuantLayer layer;
  std::optional<double> error;  // of the outputs when it alone is quantized
  bool in_floats = false;
};
struct QuantizeReport {
  std::vector<LayerReport> layers;
  size_t samples = 0;
  // Of the written model's outputs against those in floats, in the measure of max_error (rms)
  double error = 0;
  ErrorMeasure measure = ErrorMeasure::rms;
  int equalized = 0;     // pairs of layers
  int balanced = 0;      // values
  bool widened = false;  // from f16, inputs and outputs too
};
// Errors, besides those of files and models: no data, a max_error that cannot be met (with the
// layers to blame). Nothing is written then.
Expected<QuantizeReport> quantize_model(const QuantizeRequest& request, const OnStage& stage);

// Weights alone; what became of them.
Expected<PackedWeights> quantize_weights(const std::string& model, const std::string& output,
                                         const BlockForm& form);

}  // namespace tw
