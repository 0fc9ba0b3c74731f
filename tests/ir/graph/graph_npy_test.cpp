// .npy files: round trips, and hostile headers.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>

#include "ir/storage_types.h"
#include "tests/ir/graph_testing.h"

namespace tw {
namespace {
using namespace tw::test;

std::string temporary_path() {
  llvm::SmallString<128> path;
  REQUIRE(!llvm::sys::fs::createTemporaryFile("tw", "npy", path));
  return path.str().str();
}
std::string parse_text(const std::string& header, size_t payload) {
  std::string file = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 255) +
                     static_cast<char>(header.size() >> 8) + header;
  file.append(payload, '\x01');
  Expected<Tensor> t = parse_npy({reinterpret_cast<const std::byte*>(file.data()), file.size()},
                                 "f.npy");
  if (!t) return error_text(t.takeError());
  return to_string(type_of(*t));
}

}  // namespace

TEST_CASE("npy files round-trip in every type") {
  std::string path = temporary_path();
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 1, 2}, {0, 4}}) {
      Tensor t = Tensor::zeros(static_cast<DType>(i), shape);
      for (int64_t k = 0; k < t.size(); ++k) t.set(k, static_cast<double>(k % 2));
      REQUIRE(error_of(write_npy(path, t)) == "no error");
      Tensor back = must(read_npy(path));
      CHECK(back.dtype == (is_storage_only(t.dtype) ? DType::u8 : t.dtype));
      CHECK(back.shape == t.shape);
      CHECK(back.bytes == t.bytes);
    }
  }
  llvm::sys::fs::remove(path);
  CHECK(error_of(read_npy(path)).find("cannot read '" + path) == 0);
  CHECK(error_of(write_npy("/no/such/folder/x.npy", Tensor::zeros(DType::f32, {1})))
            .find("cannot write") == 0);
}

TEST_CASE("npy headers are not trusted") {
  CHECK(parse_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24) ==
        "f32[2, 3]");
  CHECK(parse_text("{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 4) == "f32[]");
  CHECK(parse_text("{'shape': (3,), 'fortran_order': False, 'descr': '|u1'}", 3) == "u8[3]");
  auto fails = [](const std::string& header, size_t payload, const char* why) {
    std::string text = parse_text(header, payload);
    CAPTURE(text);
    CHECK(text.find("'f.npy' is not a readable .npy file: ") == 0);
    CHECK(text.find(why) != std::string::npos);
  };
  fails("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, "element type '>f4'");
  fails("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "element type");
  fails("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 4, "Fortran order");
  fails("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4, "does not fit");
  fails("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 16,
        "does not fit");
  fails("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "shape (-1,)");
  fails("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4, "shape");
  fails("{'descr': '<f4', 'fortran_order': False, 'shape': (1", 4,
        "no descr, fortran_order or shape");
  fails("{}", 0, "no descr");
  std::string good;
  {
    std::string path = temporary_path();
    REQUIRE(error_of(write_npy(path, tensor(DType::f32, {2}, {1, 2}))) == "no error");
    auto buffer = llvm::MemoryBuffer::getFile(path);
    good = (*buffer)->getBuffer().str();
    llvm::sys::fs::remove(path);
  }
  for (size_t size = 0; size < good.size(); ++size) {
    std::string exact = good.substr(0, size);
    Expected<Tensor> t = parse_npy({reinterpret_cast<const std::byte*>(exact.data()), exact.size()},
                                   "cut");
    CHECK_FALSE(static_cast<bool>(t));
    llvm::consumeError(t.takeError());
  }
}

}  // namespace tw
