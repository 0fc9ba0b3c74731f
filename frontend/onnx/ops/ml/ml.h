// Helpers of the importers of ai.onnx.ml. Scores are f32, as the operators' outputs are.
#pragma once
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import::ml {

// In the order of TreeEnsemble's numbers
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };
PostTransform read_post_transform(NodeImport& n);  // reads the string attribute post_transform
Val transformed(NodeImport& n, PostTransform transform, Val scores);  // scores: [rows, targets]

// x as [rows, features] of this type; a vector is one row
Val matrix(NodeImport& n, Val x, DType dtype);
// `values` has as many elements as the shape
Val constant(NodeImport& n, const std::vector<float>& values, const Shape& shape);
Val constant(NodeImport& n, const Ints& values, const Shape& shape);
Val row(NodeImport& n, const std::vector<float>& values);  // shape [1, values]

// Sets the outputs of a classifier: 0 are the labels of the largest score in each row, from the
// attribute of labels (i64, or strings of classlabels_strings), 1 are the scores.
void set_classes(NodeImport& n, Val labels, Val scores);
// The integers, or for strings their indices
Ints class_labels(NodeImport& n, const char* integers, const char* strings);

}  // namespace tw::onnx_import::ml
