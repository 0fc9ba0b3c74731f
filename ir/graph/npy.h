// The byte form of .npy files.
#pragma once
#include <string>

#include "ir/graph/tensor.h"

namespace tw {

// The bytes in front of the payload, in version 1. They are a multiple of 64 long. A type that
// NumPy lacks is written as u8.
std::string npy_header(const Tensor& tensor);
std::string npy_payload(const Tensor& tensor);

}  // namespace tw
