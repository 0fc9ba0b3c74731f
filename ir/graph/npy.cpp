// NumPy's .npy files, versions 1 and 2 (3 differs only in the header's encoding). The header is
// untrusted: everything is checked against the file's size before memory is allocated. bf16 has no
// npy type and is written as 2-byte voids ('V2'). Storage types are written as their bytes.
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "ir/graph/strings.h"
#include "ir/graph/tensor.h"
#include "ir/storage_types.h"
#include "support/regular_file.h"

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

// The value of 'key' in the header's Python dictionary, up to the comma or brace that ends it
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

// Bytes of the payload; nullopt: they exceed `available`.
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

// The characters of each string by "<U5": UTF-32, padded with zeros
std::optional<size_t> string_length(llvm::StringRef descr) {
  size_t length = 0;
  if (!descr.consume_front("'<U") || !descr.consume_back("'") || descr.getAsInteger(10, length) ||
      length > (size_t{1} << 24))
    return std::nullopt;
  return length;
}

void append_utf8(std::string& text, uint32_t c) {
  if (c < 0x80) return text.push_back(static_cast<char>(c));
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  text.push_back(static_cast<char>((0xF0 << (3 - more) & 0xFF) | c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i)
    text.push_back(static_cast<char>(0x80 | (c >> (6 * i) & 0x3F)));
}

Expected<Tensor> parse_strings(std::vector<int64_t> shape, size_t length, llvm::StringRef payload,
                               const std::string& name) {
  const std::optional<size_t> words = payload_bytes(shape, DType::u8, payload.size());
  if (!words || *words * length * 4 != payload.size() || *words > payload.size() + 1)
    return bad(name, "its shape does not fit the file's size");
  std::vector<std::string> texts(*words);
  for (size_t i = 0; i < *words * length; ++i) {
    uint32_t c = 0;
    std::memcpy(&c, payload.data() + 4 * i, 4);
    if (c > 0x10FFFF) return bad(name, "a character beyond Unicode");
    if (c) append_utf8(texts[i / length], c);
  }
  return string_tensor(std::move(shape), texts);
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
  if (const auto length = string_length(*descr)) {
    std::optional<std::vector<int64_t>> shape = shape_of(*extents);
    if (!shape || *order != "False") return bad(name, "shape " + extents->take_front(80).str());
    return parse_strings(std::move(*shape), *length, payload, name);
  }
  std::optional<DType> dtype = dtype_of(*descr);
  if (!dtype)
    return bad(name, "element type " + descr->take_front(40).str() +
                         ", expected little-endian numbers or strings (U)");
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
  TW_ASSIGN(const auto buffer, regular_file(path));
  llvm::StringRef text = buffer->getBuffer();
  return parse_npy({reinterpret_cast<const std::byte*>(text.data()), text.size()}, path);
}

// The text in UTF-32. A byte that is not UTF-8 becomes U+FFFD.
static std::u32string characters(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const int more = first < 0x80 ? 0 : first < 0xC2 ? -1 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    char32_t c = more <= 0 ? first : first & (0x3F >> more);
    bool good = more >= 0 && i + static_cast<size_t>(more) < text.size() && first < 0xF5;
    for (int k = 1; k <= more && good; ++k) {
      const auto next = static_cast<uint8_t>(text[i + static_cast<size_t>(k)]);
      good = (next & 0xC0) == 0x80;
      c = c << 6 | (next & 0x3F);
    }
    out.push_back(good ? c : U'\uFFFD');
    i += good ? static_cast<size_t>(more) + 1 : 1;
  }
  return out;
}

static size_t longest_string(const Tensor& tensor) {
  size_t longest = 1;
  for (int64_t i = 0; i < tensor.size(); ++i)
    longest = std::max(longest, characters(string_at(tensor, i)).size());
  return longest;
}

std::string npy_payload(const Tensor& tensor) {
  std::string payload(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  if (tensor.dtype != DType::string) return payload;
  const size_t longest = longest_string(tensor);
  payload.assign(static_cast<size_t>(tensor.size()) * longest * 4, '\0');
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const std::u32string text = characters(string_at(tensor, i));
    std::memcpy(payload.data() + static_cast<size_t>(i) * longest * 4, text.data(),
                text.size() * 4);
  }
  return payload;
}

std::string npy_header(const Tensor& tensor) {
  std::string header = std::string("{'descr': '") + kTypes[0].code +
                       "', 'fortran_order': False, 'shape': (";
  for (const NpyType& type : kTypes)
    if (type.dtype == (is_storage_only(tensor.dtype) ? DType::u8 : tensor.dtype))
      header = std::string("{'descr': '") + type.code + "', 'fortran_order': False, 'shape': (";
  if (tensor.dtype == DType::string)
    header = "{'descr': '<U" + std::to_string(longest_string(tensor)) +
             "', 'fortran_order': False, 'shape': (";
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
  out << npy_header(tensor) << npy_payload(tensor);
  out.close();
  if (!out.has_error()) return Error::success();
  std::string why = out.error().message();
  out.clear_error();
  (void)llvm::sys::fs::remove(path);
  return make_error(DiagCode::io, "cannot write '{0}': {1}", path, why);
}

}  // namespace tw
