// The code of a device with the driver "cuda": a table of images, from which
// runtime/device/cuda_open.c chooses. Little-endian:
//   "TWCU"  u32 count
//   a record for each image: u32 kind, u32 chip, u32 first launch, u32 launches,
//     u64 offset from the table's start, u64 bytes
//   the images
#pragma once
#include <string>
#include <vector>

namespace tw::cuda {

enum class CudaImageKind : uint32_t {
  cubin = 1,        // for chips of the same major number and an equal or larger minor one
  cubin_exact = 2,  // for this chip only: sm_90a
  ptx = 3,          // for this chip and later ones; text that ends with a NUL
};
struct CudaImage {
  CudaImageKind kind = CudaImageKind::ptx;
  uint32_t chip = 0;  // compute capability: 90 is 9.0
  // The launches whose functions it has. Two images share either all launches or none.
  uint32_t first = 0, launches = 0;
  std::string bytes;
};

std::string cuda_images(const std::vector<CudaImage>& images);

}  // namespace tw::cuda
