// Typed indices into vectors: NodeId and ValueId cannot be mixed up, and cost an int.
#pragma once
#include <cstdint>
#include <functional>

namespace tw {
template <class Tag>
struct Id {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const Id&) const = default;
};
}  // namespace tw

template <class Tag>
struct std::hash<tw::Id<Tag>> {
  size_t operator()(tw::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.index); }
};
