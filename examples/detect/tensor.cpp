// NumPy files of one kind: version 1.0, little-endian f32, C order.
#include "tensor.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "fail.h"

namespace detect {
namespace {

constexpr char kMagic[] = "\x93NUMPY\x01";  // the closing zero matches the minor version 0
constexpr size_t kMaxElements = size_t{1} << 28;

struct Close {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, Close>;

File open_file(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (!file) fail("cannot open %s: %s", path.c_str(), std::strerror(errno));
  return file;
}

// The extents in "... 'shape': (1, 2), ..."; empty for a scalar.
std::vector<int64_t> parse_shape(const std::string& header, const std::string& path) {
  std::vector<int64_t> dims;
  size_t at = header.find("'shape': (");
  if (at == std::string::npos) fail("%s: no shape in its header", path.c_str());
  const char* text = header.c_str() + at + std::strlen("'shape': (");
  while (*text != ')') {
    char* end = nullptr;
    dims.push_back(std::strtoll(text, &end, 10));
    if (end == text) fail("%s: a damaged shape in its header", path.c_str());
    text = end + std::strspn(end, ", ");
  }
  return dims;
}

}  // namespace

size_t element_count(const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && count > kMaxElements / static_cast<size_t>(dim)))
      fail("a tensor of an unusable shape");
    count *= static_cast<size_t>(dim);
  }
  return count;
}

Tensor read_npy(const std::string& path) {
  File file = open_file(path, "rb");
  unsigned char start[10];
  if (std::fread(start, 1, sizeof start, file.get()) != sizeof start ||
      std::memcmp(start, kMagic, sizeof kMagic) != 0)
    fail("%s is not a NumPy file of version 1.0", path.c_str());
  std::string header(start[8] + size_t{256} * start[9], ' ');
  if (std::fread(header.data(), 1, header.size(), file.get()) != header.size())
    fail("%s is cut off in its header", path.c_str());
  if (header.find("'<f4'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos)
    fail("%s does not hold f32 in C order", path.c_str());
  Tensor tensor;
  tensor.dims = parse_shape(header, path);
  tensor.values.resize(element_count(tensor.dims));
  if (std::fread(tensor.values.data(), sizeof(float), tensor.values.size(), file.get()) !=
      tensor.values.size())
    fail("%s is cut off", path.c_str());
  return tensor;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.dims) header += std::to_string(dim) + ", ";
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');  // the data begin at a multiple of 64
  header += '\n';
  File file = open_file(path, "wb");
  const unsigned char length[2] = {static_cast<unsigned char>(header.size() & 255),
                                   static_cast<unsigned char>(header.size() >> 8)};
  std::fwrite(kMagic, 1, sizeof kMagic, file.get());
  std::fwrite(length, 1, sizeof length, file.get());
  std::fwrite(header.data(), 1, header.size(), file.get());
  std::fwrite(tensor.values.data(), sizeof(float), tensor.values.size(), file.get());
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()))
    fail("cannot write %s", path.c_str());
}

}  // namespace detect
