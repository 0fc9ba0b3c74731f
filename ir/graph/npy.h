// The form of .npy files.
#pragma once
#include <string>

#include "ir/graph/tensor.h"

namespace tw {

// What stands before the tensor's bytes: version 1, as many bytes as a multiple of 64. Types that
// NumPy does not have are written as u8.
std::string npy_header(const Tensor& tensor);
std::string npy_payload(const Tensor& tensor);  // what follows the header

}  // namespace tw
