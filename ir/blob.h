// An immutable range of bytes. Its owner, such as a mapped model file or a folded constant, keeps
// them alive. The bytes may be unaligned.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace tw {

struct Blob {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

}  // namespace tw
