#include "backends/vdla/parameters.h"

#include <cmath>
#include <cstring>

#include "backends/vdla/requant.h"

namespace tw::vdla {
namespace {

template <class T>
T value_at(const std::vector<std::byte>& bytes, int64_t i) {
  T value{};
  if ((static_cast<size_t>(i) + 1) * sizeof(T) <= bytes.size())
    std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

// For each output channel the sum of its weights' magnitudes. Weights have the shape [channel
// blocks][...][lanes o][lanes i]. Zeros for kernels without weights.
Expected<std::vector<int64_t>> magnitudes(const Kernel& kernel, std::span<const Constant> constants,
                                          int64_t channels) {
  std::vector<int64_t> sums(static_cast<size_t>(channels));
  for (size_t b = 0; b < constants.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    if (buffer.role != BufferRole::constant || buffer.dtype != DType::i8 || buffer.shape.size() < 3)
      continue;
    TW_ASSIGN(const std::vector<std::byte> weights, contents(constants[b]));
    const int64_t o = *as_const(buffer.shape[buffer.shape.size() - 2]),
                  i = *as_const(buffer.shape.back()), blocks = *as_const(buffer.shape[0]);
    if (o * blocks < channels || weights.empty())
      return make_error(DiagCode::unsupported, "the weights are not those of {0} channels",
                        channels);
    const int64_t block = static_cast<int64_t>(weights.size()) / blocks;
    for (int64_t at = 0; at < static_cast<int64_t>(weights.size()); ++at)
      if (const int64_t channel = at / block * o + at % (o * i) / i; channel < channels)
        sums[static_cast<size_t>(channel)] += std::abs(value_at<int8_t>(weights, at));
  }
  return sums;
}

}  // namespace

Expected<std::vector<std::byte>> requant_table(const Kernel& kernel, const StreamParts& parts,
                                               std::span<const Constant> constants) {
  std::vector<std::byte> table(static_cast<size_t>(parts.channels) * 8);
  const RequantForm& form = *parts.requant;
  TW_ASSIGN(const std::vector<int64_t> weights, magnitudes(kernel, constants, parts.channels));
  std::vector<std::vector<std::byte>> biases;
  for (const Expr& bias : form.biases) {
    TW_ASSIGN(std::vector<std::byte> bytes,
              contents(constants[static_cast<size_t>(as<expr::Load>(bias)->buffer.index)]));
    biases.push_back(std::move(bytes));
  }
  std::vector<std::byte> scales;
  const auto* scale_load = as<expr::Load>(form.scale);
  if (scale_load) {
    TW_ASSIGN(scales, contents(constants[static_cast<size_t>(scale_load->buffer.index)]));
  }
  for (int64_t c = 0; c < parts.channels; ++c) {
    int64_t bias = 0;
    for (const auto& bytes : biases) bias += value_at<int32_t>(bytes, c);
    const float scale = scale_load ? value_at<float>(scales, c)
                                   : static_cast<float>(as<expr::Float>(form.scale)->value);
    const int64_t most = 128 * weights[static_cast<size_t>(c)] + std::abs(bias);  // bound of a sum
    if (most >= int64_t{1} << 31)
      return make_error(DiagCode::unsupported, "channel {0}: sums of up to {1} do not fit 32 bits",
                        c, most);
    std::optional<RequantParams> params = requant_params(scale, static_cast<int32_t>(bias));
    // Scale 0 is padding of the last block.
    if (scale == 0) params = RequantParams{static_cast<int32_t>(bias), 0, 1};
    if (!params)
      return make_error(DiagCode::unsupported,
                        "channel {0}: the scale {1} is none that the device multiplies by", c,
                        scale);
    if (scale != 0 && most >= int64_t{1} << 24 && std::ldexp(scale, 24) < 256)
      return make_error(
          DiagCode::unsupported,
          "channel {0}: sums of up to {1} with the scale {2} may round differently in floats", c,
          most, scale);
    const uint64_t lane = pack(*params);
    std::memcpy(table.data() + static_cast<size_t>(c) * 8, &lane, 8);
  }
  return table;
}

}  // namespace tw::vdla
