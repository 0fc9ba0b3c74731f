// Pictures as inputs: decoded, resized, normalized.
#pragma once
#include <string>

#include "driver/run/tensors.h"
#include "frontend/input_form.h"

namespace tw {

bool is_picture(const std::string& path);  // by its ending: .png, .jpg, .jpeg
// spec: a tensor of 4 dimensions, f32 or u8, whose height, width and channels (1 or 3) are known.
Expected<Tensor> load_picture(const std::string& path, const TensorSpec& spec,
                              const InputForm& form);

}  // namespace tw
