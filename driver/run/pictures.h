// Pictures as inputs, decoded, resized and normalized; and outputs as pictures.
#pragma once
#include <string>

#include "driver/run/tensors.h"
#include "frontend/input_form.h"

namespace tw {

bool is_picture(const std::string& path);  // by its ending: .png, .jpg, .jpeg
// spec: a tensor of 4 dimensions, f32 or u8, whose height, width and channels (1 or 3) are known.
Expected<Tensor> load_picture(const std::string& path, const TensorSpec& spec,
                              const InputForm& form);
// Writes a PNG or JPEG file, by the path's ending. tensor: one picture of 1 or 3 channels, [H, W],
// or with the channels first or last, f32, f16, bf16 or u8. A pixel is (value * scale - mean) /
// std, rounded.
Error save_picture(const std::string& path, const std::string& name, const Tensor& tensor,
                   const InputForm& form);

}  // namespace tw
