#include "backends/cuda/image.h"

#include <llvm/Support/Endian.h>

namespace tw::cuda {
namespace {

constexpr size_t kHead = 8, kRecord = 32, kAlign = 16;

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  llvm::support::endian::write(bytes, value, llvm::endianness::little);
  out.append(bytes, sizeof bytes);
}

size_t padded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

std::string cuda_images(const std::vector<CudaImage>& images) {
  std::string out = "TWCU";
  put(out, static_cast<uint32_t>(images.size()));
  size_t at = padded(kHead + kRecord * images.size());
  for (const CudaImage& image : images) {
    put(out, static_cast<uint32_t>(image.kind));
    put(out, image.chip);
    put(out, image.first);
    put(out, image.launches);
    put(out, static_cast<uint64_t>(at));
    put(out, static_cast<uint64_t>(image.bytes.size()));
    at = padded(at + image.bytes.size());
  }
  for (const CudaImage& image : images) {
    out.resize(padded(out.size()), '\0');
    out += image.bytes;
  }
  return out;
}

}  // namespace tw::cuda
