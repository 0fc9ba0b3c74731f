// Layers as lowering gives them to a device, with random constants and inputs, their expected
// outputs, and their compiled streams on a board.
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

// A layer with its data. The input and output are in the kernel's form: blocks of 16 channels, or
// rows of channels for a product.
struct LayerCase {
  LoweredGroup group;  // as lowered, without the device's form
  std::vector<int8_t> input, expected;
  // true for elements of the output, false for lanes beyond the last channel
  std::vector<bool> real;
  std::vector<std::vector<std::byte>> constants;  // `group.arguments` points into these
};
LayerCase conv_case(const Layer& layer, unsigned seed);
LayerCase product_case(int rows, int depth, int columns, int zero_in, unsigned seed);
LayerCase pool_case(const Layer& layer, unsigned seed);  // a pool of maxima

const Target& device_target(int virtual_threads);  // configs/vdla-16x16.yaml's device
// Returns the kernel for the back end: in the device's form, with the default schedule.
Kernel scheduled(LoweredGroup& group, const Target& target);

struct LayerRun {
  KernelStream stream;
  std::vector<uint8_t> dram;
  Launch launch;
  uint64_t output = 0;  // offset in dram
};
// Returns the stream, constants and input in one memory, ready for a launch.
LayerRun placed(const LayerCase& layer, LoweredGroup& formed, const Kernel& kernel,
                const Target& target);
// Returns "" if the outputs are equal.
std::string first_difference(const LayerCase& layer, const LayerRun& run);

}  // namespace tw::vdla
