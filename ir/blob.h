// An immutable range of bytes that somebody (a mapped model file, a folded constant) keeps alive.
// Maybe unaligned.
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
