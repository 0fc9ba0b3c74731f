// What the importers of ai.onnx.ml share. Scores are f32, as the operators' outputs are.
#pragma once
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import::ml {

// In the order of TreeEnsemble's numbers
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };
PostTransform read_post_transform(NodeImport& n);  // attribute post_transform, a string
Val transformed(NodeImport& n, PostTransform transform, Val scores);  // scores: [rows, targets]

// [rows, features] of this type; a vector is one row
Val matrix(NodeImport& n, Val x, DType dtype);
// As many values as the shape has elements
Val constant(NodeImport& n, const std::vector<float>& values, const Shape& shape);
Val constant(NodeImport& n, const Ints& values, const Shape& shape);
Val row(NodeImport& n, const std::vector<float>& values);  // [1, values]

// What a classifier answers: the label of the largest score of each row, by the attribute of labels
// (i64, or strings of classlabels_strings); outputs 0 and 1.
void set_classes(NodeImport& n, Val labels, Val scores);
// The integers, or the numbers of the strings
Ints class_labels(NodeImport& n, const char* integers, const char* strings);

}  // namespace tw::onnx_import::ml
