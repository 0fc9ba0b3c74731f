// Layers as lowering hands them to a device, with random constants and inputs, what they compute,
// and their compiled streams on a board.
#pragma once
#include "backends/vdla/parameters.h"
#include "backends/vdla/stream.h"
#include "kernels/lower.h"
#include "tests/vdla/vdla_testing.h"

namespace tw::vdla {

struct Layer {
  int channels = 16, outputs = 16;  // rounded up to blocks of 16 in memory
  std::vector<int> in = {8, 8}, kernel = {3, 3}, strides = {1, 1}, before = {1, 1}, after = {1, 1};
  int zero_in = 0, zero_out = 0;  // zero points
  int low = -128;                 // a fused activation's clamp
  int batch = 1;
  bool bias = true;
  std::vector<int> out() const;
};

// A layer with its data: input and output as the kernel has them, blocks of 16 channels (a product:
// rows of channels).
struct LayerCase {
  LoweredGroup group;  // as lowered, without the device's form
  std::vector<int8_t> input, expected;
  // Of the output's elements; others are lanes beyond the last channel
  std::vector<bool> real;
  std::vector<std::vector<std::byte>> constants;  // what `group.arguments` point into
};
LayerCase conv_case(const Layer& layer, unsigned seed);
LayerCase product_case(int rows, int depth, int columns, int zero_in, unsigned seed);
LayerCase pool_case(const Layer& layer, unsigned seed);  // maxima

const Target& device_target(int virtual_threads);  // configs/vdla-16x16.yaml's device
// The kernel that the back end gets: in the device's form, with the default schedule.
Kernel scheduled(LoweredGroup& group, const Target& target);

struct LayerRun {
  KernelStream stream;
  std::vector<uint8_t> dram;
  Launch launch;
  uint64_t output = 0;  // where in dram
};
// The stream, constants and input in one memory, ready to be launched.
LayerRun placed(const LayerCase& layer, LoweredGroup& formed, const Kernel& kernel,
                const Target& target);
// "" when the outputs are equal
std::string first_difference(const LayerCase& layer, const LayerRun& run);

}  // namespace tw::vdla
