#include "driver/run/tensors.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <limits>

#include "cli_test_util.h"
#include "driver/compare/compare.h"
#include "driver/run/npz.h"

using namespace tw;

namespace {

std::string npy(const std::vector<float>& values, const std::string& shape) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

void put(std::string& text, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

std::string deflated(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(bytes.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Member {
  std::string name, bytes;
  bool deflate = false;
};

std::string zip(const std::vector<Member>& members) {
  std::string file, directory;
  for (const Member& m : members) {
    const std::string packed = m.deflate ? deflated(m.bytes) : m.bytes;
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(m.bytes.data()), m.bytes.size()));
    const auto fields = [&](std::string& to) {
      put(to, 20, 2);
      put(to, 0, 2);
      put(to, m.deflate ? 8 : 0, 2);
      put(to, 0, 4);
      put(to, crc, 4);
      put(to, static_cast<uint32_t>(packed.size()), 4);
      put(to, static_cast<uint32_t>(m.bytes.size()), 4);
      put(to, static_cast<uint32_t>(m.name.size()), 2);
    };
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    fields(directory);
    for (int i = 0; i < 6; ++i) put(directory, 0, 2);
    put(directory, static_cast<uint32_t>(file.size()), 4);
    directory += m.name;
    put(file, 0x04034b50, 4);
    fields(file);
    put(file, 4, 2);
    // Only the local header has an extra field, as in files of numpy.
    file += m.name + std::string(4, 'e') + packed;
  }
  const size_t start = file.size();
  file += directory;
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, static_cast<uint32_t>(members.size()), 2);
  put(file, static_cast<uint32_t>(members.size()), 2);
  put(file, static_cast<uint32_t>(directory.size()), 4);
  put(file, static_cast<uint32_t>(start), 4);
  put(file, 0, 2);
  return file;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::vector<TensorSpec> two_inputs() {
  return {{"image", DType::f32, {var("batch"), Expr(2)}}, {"in/2=x", DType::f32, {var("batch")}}};
}

std::string load_error(const std::vector<TensorSpec>& specs, const InputSources& flags) {
  Expected<Inputs> inputs = load_inputs(specs, flags);
  return inputs ? "" : error_text(inputs.takeError());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("npz: stored and deflated members") {
  const std::string file = zip({{"a.npy", npy({1, 2, 3}, "3,"), false},
                                {"b.npy", npy(std::vector<float>(256, 2.5f), "16, 16"), true}});
  Expected<std::map<std::string, Tensor>> members = parse_npz(bytes_of(file), "x.npz");
  REQUIRE(bool(members));
  CHECK(members->at("a").shape == std::vector<int64_t>{3});
  CHECK(members->at("a").at(2) == 3);
  CHECK(members->at("b").shape == std::vector<int64_t>{16, 16});
  CHECK(members->at("b").at(255) == 2.5);
}

TEST_CASE("npz: members that share bytes or a name are no archive of numpy's") {
  const std::string file = zip(
      {{"a.npy", npy({1, 2, 3}, "3,"), false}, {"b.npy", npy({4, 5, 6}, "3,"), false}});
  std::string shared = file;  // the second entry of the directory leads to the first member
  const size_t entry = shared.rfind("PK\1\2");
  shared.replace(entry + 42, 4, std::string(4, '\0'));
  Expected<std::map<std::string, Tensor>> members = parse_npz(bytes_of(shared), "x.npz");
  REQUIRE(!members);
  CHECK(has(error_text(members.takeError()), "members 'a.npy' and 'b.npy' share bytes"));
  for (const char* second : {"a.npy", "a"}) {
    const std::string twice = zip(
        {{"a.npy", npy({1, 2, 3}, "3,"), true}, {second, npy({4, 5, 6}, "3,"), true}});
    Expected<std::map<std::string, Tensor>> read = parse_npz(bytes_of(twice), "x.npz");
    REQUIRE(!read);
    CHECK(has(error_text(read.takeError()), "two members 'a'"));
  }
}

TEST_CASE("npz: any damage is an error, never a wrong tensor") {
  const std::string file = zip({{"a.npy", npy({1, 2, 3}, "3,"), false},
                                {"b.npy", npy(std::vector<float>(64, 1.5f), "64,"), true}});
  for (size_t size = 0; size < file.size(); ++size) {
    Expected<std::map<std::string, Tensor>> members = parse_npz(bytes_of(file.substr(0, size)),
                                                                "x.npz");
    CHECK(!members);
    llvm::consumeError(members.takeError());
  }
  for (size_t at = 0; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    Expected<std::map<std::string, Tensor>> members = parse_npz(bytes_of(damaged), "x.npz");
    if (members) {  // the byte belongs to a field that is not read
      for (const auto& [name, tensor] : *members) CHECK((tensor.at(0) == 1 || tensor.at(0) == 1.5));
    } else {
      llvm::consumeError(members.takeError());
    }
  }
}

TEST_CASE("inputs from files bind the model's symbols") {
  const TestFolder folder;
  const std::string image = folder.write("image.npy", npy({1, 2, 3, 4, 5, 6}, "3, 2")),
                    other = folder.write("o.npy", npy({7, 8, 9}, "3,"));
  InputSources flags;
  flags.files = {"image=" + image, "in/2=x=" + other};
  Expected<Inputs> inputs = load_inputs(two_inputs(), flags);
  REQUIRE(bool(inputs));
  CHECK(inputs->symbols.at("batch") == 3);
  CHECK(inputs->tensors[0].at(5) == 6);
  CHECK(inputs->tensors[1].at(0) == 7);

  flags.files = {folder.write("both.npz", zip({{"in/2=x.npy", npy({7, 8}, "2,"), true},
                                               {"image.npy", npy({1, 2, 3, 4}, "2, 2"), true}}))};
  inputs = load_inputs(two_inputs(), flags);
  REQUIRE(bool(inputs));
  CHECK(inputs->symbols.at("batch") == 2);
  CHECK(inputs->tensors[1].at(1) == 8);
}

TEST_CASE("a file of bytes alone has the shape that --dim and other inputs give") {
  const TestFolder folder;
  const std::string bytes(24, '\0'), raw = folder.write("image.raw", bytes),
                                     other = folder.write("o.npy", npy({7, 8, 9}, "3,"));
  for (const InputSources& flags : {InputSources{{"image=" + raw, "in/2=x=" + other}, {}, {}, ""},
                                    InputSources{{"image=" + raw}, {"batch=3"}, 1, ""}}) {
    Expected<Inputs> inputs = load_inputs(two_inputs(), flags);
    REQUIRE(bool(inputs));
    CHECK(inputs->tensors[0].shape == std::vector<int64_t>{3, 2});
    CHECK(inputs->tensors[0].at(5) == 0);
  }
  CHECK(has(load_error(two_inputs(), {{"image=" + raw}, {}, 1, ""}),
            "the dimension 'batch' is free"));
  CHECK(has(load_error(two_inputs(), {{"image=" + raw}, {"batch=2"}, 1, ""}),
            "image.raw' has 24 bytes, and input 'image', f32[2, 2], takes 16"));
  CHECK(has(load_error(two_inputs(), {{"image=" + raw, "image=" + raw}, {"batch=3"}, 1, ""}),
            "given twice"));
  CHECK(has(load_error({{"words", DType::string, {Expr(3)}}}, {{raw}, {}, {}, ""}),
            "input 'words' is of strings"));
}

TEST_CASE("wrong inputs are told apart") {
  const TestFolder folder;
  const std::string image = folder.write("image.npy", npy({1, 2, 3, 4, 5, 6}, "3, 2")),
                    other = folder.write("o.npy", npy({7, 8}, "2,"));
  CHECK(has(load_error(two_inputs(), {{"image=" + image}, {}, {}, ""}),
            "no data for input 'in/2=x', f32[batch]"));
  CHECK(has(load_error(two_inputs(), {{"image=" + image, "in/2=x=" + other}, {}, {}, ""}),
            "batch is 3 already"));
  CHECK(has(load_error(two_inputs(), {{"image=" + image, "image=" + image}, {}, 1, ""}),
            "given twice"));
  CHECK(has(load_error(two_inputs(), {{"picture=" + image}, {}, 1, ""}),
            "no input 'picture'; its inputs are image, in/2=x"));
  CHECK(has(load_error(two_inputs(), {{image}, {}, 1, ""}), "does not say which input"));
  CHECK(has(load_error(two_inputs(), {{"image=" + other}, {}, 1, ""}), "the shape is [2]"));
  CHECK(has(load_error(two_inputs(), {{"image=" + image}, {"batch=2"}, 1, ""}),
            "batch is 2 already"));
  CHECK(has(load_error(two_inputs(), {{}, {}, 1, ""}), "the dimension 'batch' is free"));
  CHECK(has(load_error(two_inputs(), {{}, {"batch=1", "sequence=2"}, 1, ""}),
            "no free dimension 'sequence'"));
  CHECK(has(load_error({{"ids", DType::i64, {Expr(3), Expr(2)}}}, {{image}, {}, {}, ""}),
            "the file holds f32, not i64"));
  CHECK(has(load_error(two_inputs(), {{"image=" + (folder / "none.npy")}, {}, 1, ""}), "none.npy"));
  CHECK(has(load_error(two_inputs(), {{"image=" + folder.write("i.txt", "1 2")}, {}, 1, ""}),
            ".npy, .npz and .pb"));
}

TEST_CASE("random tensors depend on seed and stream only, and stay in their range") {
  const Tensor a = random_tensor(DType::f32, {1000}, 1, 0),
               b = random_tensor(DType::f32, {1000}, 1, 0);
  CHECK(a.bytes == b.bytes);
  CHECK(a.bytes != random_tensor(DType::f32, {1000}, 2, 0).bytes);
  CHECK(a.bytes != random_tensor(DType::f32, {1000}, 1, 1).bytes);
  const Summary s = summarize(a);
  CHECK(s.min >= -1);
  CHECK(s.max < 1);
  CHECK(std::abs(s.mean) < 0.1);
  const Summary ints = summarize(random_tensor(DType::i64, {1000}, 1, 0));
  CHECK(ints.min == 0);
  CHECK(ints.max == 1);
}

TEST_CASE("outputs are written whole, under their name without slashes") {
  const TestFolder folder;
  const Tensor t = random_tensor(DType::f32, {2, 3}, 1, 0);
  const std::string path = output_path(folder / "a/b", "net/out");
  CHECK(path == folder / "a/b/net_out.npy");
  REQUIRE(!save_output(path, t));
  Expected<Tensor> back = read_npy(path);
  REQUIRE(bool(back));
  CHECK(back->bytes == t.bytes);
  CHECK(has(error_text(save_output(output_path(folder.write("file", ""), "out"), t)),
            "cannot create the folder"));
}

TEST_CASE("differences") {
  Tensor want = Tensor::zeros(DType::f32, {3}), got = want;
  want.set(0, -1);
  want.set(1, 3);
  got.set(0, -1);
  got.set(1, std::nextafterf(3, 4));
  Difference d = compare(got, want, 1e-6);
  CHECK(d.same);
  CHECK(d.max_ulp == 1);
  CHECK(d.max_rel == doctest::Approx(d.max_abs / 4));
  got.set(2, std::numeric_limits<double>::quiet_NaN());
  d = compare(got, want, 1e-6);
  CHECK(!d.same);
  CHECK(d.worst == 2);
  want.set(2, std::numeric_limits<double>::quiet_NaN());
  CHECK(compare(got, want, 1e-6).same);
  got.set(2, std::numeric_limits<double>::infinity());
  CHECK(!compare(got, want, 1e-6).same);
  want.set(2, std::numeric_limits<double>::infinity());
  CHECK(compare(got, want, 1e-6).same);

  const Tensor none = [] {
    Tensor t = Tensor::zeros(DType::f32, {2});
    for (int64_t i = 0; i < 2; ++i) t.set(i, std::numeric_limits<double>::quiet_NaN());
    return t;
  }();
  d = compare(none, none, 1);
  CHECK(!d.same);
  CHECK(to_string(d) == "all 2 elements are NaN in both: nothing was compared");
  CHECK(compare(Tensor::zeros(DType::f32, {0}), Tensor::zeros(DType::f32, {0}), 1).same);
  CHECK(to_string(summarize(none)) == "min nan  max nan  mean nan  argmax -1  NaN 2");
  CHECK(to_string(summarize(want)) == "min -1  max inf  mean inf  argmax 2  infinite 1");

  Tensor a = Tensor::zeros(DType::i64, {1}), b = a;
  a.set_int(0, (int64_t{1} << 60) + 1);
  b.set_int(0, int64_t{1} << 60);
  CHECK(!compare(a, b, 1).same);
  CHECK(compare(a, Tensor::zeros(DType::i64, {2}), 1).problem == "has shape [1], expected [2]");
  CHECK(compare(a, want, 1).problem == "is i64, expected f32");
}
