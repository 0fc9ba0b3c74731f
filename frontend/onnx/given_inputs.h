// Inputs of a model as the caller has them: bound to values, or in another form. ONNX nodes convert
// them to what the model takes.
#pragma once
#include "frontend/frontend.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

// The input's value from texts such as "16000". Errors: the input is not a tensor of known shape
// with this number of elements, or a text is no number of its type.
Expected<OnnxTensor> input_value(const OnnxValueInfo& input, const std::vector<std::string>& texts);

struct GivenInput {
  OnnxValueInfo info;     // the caller's form of the input
  OnnxGraph preparation;  // converts that input to one output; no nodes: nothing to do
};
// Errors: a form that does not suit the model's input.
Expected<GivenInput> given_input(const OnnxValueInfo& input, const InputForm& form);

// Errors: a name that no input has, or a name given twice.
Error check_given(const GivenInputs& given, const std::vector<OnnxValueInfo>& inputs);

}  // namespace tw::onnx_import
