// Pieces of graphs that tests compile.
#pragma once
#include <doctest/doctest.h>

#include "ir/graph/graph.h"

namespace tw::test {

inline ValueId must(Expected<ValueId> v) {
  if (!v) FAIL(error_text(v.takeError()));
  return *v;
}

// Random values of f32 in [-scale, scale), equal for equal seeds.
inline Tensor seeded_tensor(std::vector<int64_t> shape, uint64_t seed, double scale = 1) {
  Tensor t = Tensor::zeros(DType::f32, std::move(shape));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    t.set(i, scale * (static_cast<double>(state >> 40 & 0xffff) / 0x8000 - 1));
  }
  return t;
}

// A convolution over two spatial axes without dilation.
inline op::Conv conv_attrs(int64_t pad, int64_t stride = 1, int64_t groups = 1) {
  op::Conv attrs;
  attrs.strides = {stride, stride};
  attrs.dilations = {1, 1};
  attrs.pads = {pad, pad, pad, pad};
  attrs.group = groups;
  return attrs;
}

}  // namespace tw::test
