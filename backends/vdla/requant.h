// Rounds int32 accumulators to int8 with integers only. The result equals onnxruntime's
// rint(float(acc + bias) * scale) (docs/internals/vdla.md, "tie window").
#pragma once
#include <cstdint>
#include <optional>

namespace tw::vdla {

// scale = multiplier * 2^-shift. The multiplier is the 24-bit mantissa of a float.
struct RequantParams {
  int32_t bias = 0;
  uint32_t multiplier = 0;  // below 2^24
  // 1..55 for every scale that requant_params accepts; only the low 6 bits count
  uint8_t shift = 1;
};
// nullopt: the scale is not positive or needs a shift outside 1..55.
std::optional<RequantParams> requant_params(float scale, int32_t bias);

// Exact while |acc + bias| < 2^24, or where larger sums saturate. acc + bias wraps.
int8_t requantize(int32_t acc, RequantParams params, int8_t zero_point, int8_t low, int8_t high);
int8_t saturate(int32_t acc, int8_t zero_point, int8_t low, int8_t high);

// A lane of a prm element: bias, multiplier, shift, from the low bits up
uint64_t pack(RequantParams params);
RequantParams unpack(uint64_t lane);

}  // namespace tw::vdla
