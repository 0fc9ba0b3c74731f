// A dense row-major f32 tensor and its NumPy file (format 1.0, '<f4', C order).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace detect {

struct Tensor {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

// Number of elements that `dims` hold; fails on a negative extent.
size_t element_count(const std::vector<int64_t>& dims);

// Both fail with a message when the file cannot be read or written, or is of another kind.
Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace detect
