// A model's inputs as the caller has them: bound to values, or of another form, with the ONNX nodes
// that bring them to what the model takes.
#pragma once
#include "frontend/frontend.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

// The input's value, as texts: "16000". Errors: not a tensor of known shape with so many elements,
// no numbers of its type.
Expected<OnnxTensor> input_value(const OnnxValueInfo& input, const std::vector<std::string>& texts);

struct GivenInput {
  OnnxValueInfo info;     // as the caller has it
  OnnxGraph preparation;  // from that input to one output; without nodes where nothing is done
};
// Errors: forms that do not suit the model's input.
Expected<GivenInput> given_input(const OnnxValueInfo& input, const InputForm& form);

// What names none of the inputs, or one twice.
Error check_given(const GivenInputs& given, const std::vector<OnnxValueInfo>& inputs);

}  // namespace tw::onnx_import
