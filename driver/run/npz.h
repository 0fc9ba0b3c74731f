// Reads numpy .npz archives: zip files whose members are stored or deflated .npy files.
#pragma once
#include <map>
#include <span>
#include <string>

#include "ir/graph/tensor.h"

namespace tw {

// Tensors by member name, without the .npy ending. The bytes may be hostile. Errors: no zip file, a
// damaged or encrypted member, two of one name or with the same bytes, an unknown compression, an
// archive beyond 4 GiB.
Expected<std::map<std::string, Tensor>> parse_npz(std::span<const std::byte> bytes,
                                                  const std::string& file);

}  // namespace tw
