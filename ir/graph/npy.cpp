// NumPy's .npy files, versions 1 and 2 (3 differs only in the header's encoding). The header is
// untrusted: everything is checked against the file's size before memory is taken. bf16 has no npy
// type: it is written as 2-byte voids ('V2'); types for storage only are written as their bytes.
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "ir/graph/tensor.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

struct NpyType {
  const char* code;
  DType dtype;
};
constexpr NpyType kTypes[] = {
    {"<f4", DType::f32},     {"<f8", DType::f64}, {"<f2", DType::f16}, {"|V2", DType::bf16},
    {"|i1", DType::i8},      {"<i2", DType::i16}, {"<i4", DType::i32}, {"<i8", DType::i64},
    {"|u1", DType::u8},      {"<u2", DType::u16}, {"<u4", DType::u32}, {"<u8", DType::u64},
    {"|b1", DType::boolean},
};
static_assert(std::size(kTypes) == kArithmeticDTypeCount);
constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6, kMaxRank = 64;

Error bad(const std::string& name, const std::string& why) {
  return make_error(DiagCode::invalid_argument, "'{0}' is not a readable .npy file: {1}", name,
                    why);
}

// The value of 'key' in the header's Python dictionary, up to the comma or brace that ends it.
std::optional<llvm::StringRef> field(llvm::StringRef header, const char* key) {
  size_t at = header.find(std::string("'") + key + "'");
  if (at == llvm::StringRef::npos) return std::nullopt;
  llvm::StringRef rest = header.drop_front(at + std::strlen(key) + 2).ltrim();
  if (!rest.consume_front(":")) return std::nullopt;
  rest = rest.ltrim();
  if (!rest.starts_with("("))
    return rest.take_until([](char c) { return c == ',' || c == '}'; }).trim();
  size_t end = rest.find(')');
  if (end == llvm::StringRef::npos) return std::nullopt;
  return rest.take_front(end + 1);
}

std::optional<DType> dtype_of(llvm::StringRef descr) {
  if (!descr.consume_front("'") || !descr.consume_back("'")) return std::nullopt;
  for (const NpyType& type : kTypes) {
    llvm::StringRef code = type.code;
    bool any_order = dtype_bytes(type.dtype) == 1 || type.dtype == DType::bf16;
    bool order = any_order
                     ? descr.starts_with("|") || descr.starts_with("<") || descr.starts_with("=")
                     : descr.starts_with("<");
    if (order && descr.drop_front() == code.drop_front()) return type.dtype;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> shape_of(llvm::StringRef text) {
  if (!text.consume_front("(") || !text.consume_back(")")) return std::nullopt;
  std::vector<int64_t> shape;
  while (!(text = text.trim()).empty()) {
    auto [item, rest] = text.split(',');
    int64_t extent = 0;
    if (item.trim().getAsInteger(10, extent) || extent < 0 || shape.size() == kMaxRank)
      return std::nullopt;
    shape.push_back(extent);
    text = rest;
  }
  return shape;
}

// Bytes of the payload, or nullopt when they cannot be in `available`.
std::optional<size_t> payload_bytes(const std::vector<int64_t>& shape, DType dtype,
                                    size_t available) {
  uint64_t bytes = static_cast<uint64_t>(dtype_bytes(dtype));
  bool empty = false;
  for (int64_t extent : shape) empty |= extent == 0;
  if (empty) return 0;
  for (int64_t extent : shape) {
    if (static_cast<uint64_t>(extent) > available / bytes) return std::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes <= available ? std::optional<size_t>(bytes) : std::nullopt;
}

}  // namespace

Expected<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.consume_front(llvm::StringRef(kMagic, kMagicSize)))
    return bad(name, "the magic number is missing");
  if (text.size() < 2) return bad(name, "it ends in the header");
  int version = static_cast<unsigned char>(text[0]);
  if (version < 1 || version > 3) return bad(name, "format version " + std::to_string(version));
  text = text.drop_front(2);
  size_t length_bytes = version == 1 ? 2 : 4, length = 0;
  if (text.size() < length_bytes) return bad(name, "it ends in the header");
  for (size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  text = text.drop_front(length_bytes);
  if (text.size() < length) return bad(name, "it ends in the header");
  llvm::StringRef header = text.take_front(length), payload = text.drop_front(length);
  auto descr = field(header, "descr"), order = field(header, "fortran_order"),
       extents = field(header, "shape");
  if (!descr || !order || !extents)
    return bad(name, "the header has no descr, fortran_order or shape");
  std::optional<DType> dtype = dtype_of(*descr);
  if (!dtype)
    return bad(name,
               "element type " + descr->take_front(40).str() + ", expected little-endian numbers");
  if (*order != "False") return bad(name, "Fortran order, expected C order");
  std::optional<std::vector<int64_t>> shape = shape_of(*extents);
  if (!shape) return bad(name, "shape " + extents->take_front(80).str());
  std::optional<size_t> wanted = payload_bytes(*shape, *dtype, payload.size());
  if (!wanted || *wanted != payload.size())
    return bad(name, "shape " + extents->take_front(80).str() + " does not fit the file's size");
  Tensor t{*dtype, std::move(*shape), {}};
  std::span<const std::byte> data = bytes.last(*wanted);
  t.bytes.assign(data.begin(), data.end());
  return t;
}

Expected<Tensor> read_npy(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", path, buffer.getError().message());
  llvm::StringRef text = (*buffer)->getBuffer();
  return parse_npy({reinterpret_cast<const std::byte*>(text.data()), text.size()}, path);
}

std::string npy_header(const Tensor& tensor) {
  std::string header = std::string("{'descr': '") + kTypes[0].code +
                       "', 'fortran_order': False, 'shape': (";
  for (const NpyType& type : kTypes)
    if (type.dtype == (is_storage_only(tensor.dtype) ? DType::u8 : tensor.dtype))
      header = std::string("{'descr': '") + type.code + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : tensor.shape) header += std::to_string(extent) + ",";
  header += "), }";
  size_t prefix = kMagicSize + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');  // the payload starts at a multiple of 64
  header += "\n";
  const char start[] = {'\x01', '\x00', static_cast<char>(header.size() & 255),
                        static_cast<char>(header.size() >> 8)};
  return std::string(kMagic, kMagicSize) + std::string(start, sizeof start) + header;
}

Error write_npy(const std::string& path, const Tensor& tensor) {
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (code) return make_error(DiagCode::io, "cannot write '{0}': {1}", path, code.message());
  out << npy_header(tensor)
      << llvm::StringRef(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  out.close();
  if (!out.has_error()) return Error::success();
  std::string why = out.error().message();
  out.clear_error();
  (void)llvm::sys::fs::remove(path);
  return make_error(DiagCode::io, "cannot write '{0}': {1}", path, why);
}

}  // namespace tw
