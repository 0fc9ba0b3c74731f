// The code of a device with the driver "cuda": a table of images, which runtime/device/cuda_open.c
// chooses from. Little-endian:
//   "TWCU"  u32 count  then a record an image: u32 kind, u32 chip, u32 first launch, u32 launches,
//   u64 offset from the table's start, u64 bytes then the images.
#pragma once
#include <string>
#include <vector>

namespace tw::cuda {

enum class CudaImageKind : uint32_t {
  cubin = 1,        // for chips of the same major number and no smaller minor one
  cubin_exact = 2,  // for this chip alone: sm_90a
  ptx = 3,          // for this chip and later ones; ends with a NUL
};
struct CudaImage {
  CudaImageKind kind = CudaImageKind::ptx;
  uint32_t chip = 0;  // 90: compute capability 9.0
  // Whose functions it holds; images that share one have all in common
  uint32_t first = 0, launches = 0;
  std::string bytes;
};

std::string cuda_images(const std::vector<CudaImage>& images);

}  // namespace tw::cuda
