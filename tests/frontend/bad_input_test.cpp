// Damaged and hostile files: each gives an error, none a crash, and nothing outside of the model's
// folder is read.
#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

std::string small_model() {
  return graph_bytes(R"(g (float[batch,1,6,6] x) => (float[batch,2] y)
    <float[2,1,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, float[2] b = {1, 2}, int64[2] s = {0, -1}, float[2,32] f =
     {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> {
      c = Conv(x, w, b)
      r = Relu(c)
      t = Reshape(r, s)
      g0 = Gemm<transB = 1>(t, f)
      y = Softmax(g0)
    })");
}

onnx::ModelProto parse(const std::string& bytes) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(bytes));
  return model;
}

// The import must return a model that verifies, or an error with a text.
void survives(const std::string& bytes) {
  Expected<Model> model = import_bytes(bytes);
  if (model) {
    if (Error error = verify(model->graph)) FAIL(error_text(std::move(error)));
  } else {
    CHECK_FALSE(error_text(model.takeError()).empty());
  }
}

TEST_CASE("the model of these tests is good") { CHECK(error_of(small_model()) == ""); }

TEST_CASE("missing, empty, and not a file") {
  const TempDir folder;
  Expected<Model> missing = import_onnx(folder.path("none.onnx"));
  REQUIRE_FALSE(missing);
  CHECK(error_text(missing.takeError()).find("cannot open") != std::string::npos);
  Expected<Model> directory = import_onnx(folder.path(""));
  REQUIRE_FALSE(directory);
  CHECK(error_text(directory.takeError()).find("not a regular file") != std::string::npos);
  CHECK(error_of("").find("the file is empty") != std::string::npos);
}

TEST_CASE("every truncation is an error or a smaller model") {
  const std::string bytes = small_model();
  for (size_t size = 0; size < bytes.size(); size += 7) survives(bytes.substr(0, size));
}

TEST_CASE("random bytes") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    survives(bytes);
  }
}

TEST_CASE("bit flips of a good file") {
  const std::string bytes = small_model();
  std::mt19937 random(2);
  for (int round = 0; round < 600; ++round) {
    std::string damaged = bytes;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    survives(damaged);
  }
}

TEST_CASE("deep nesting stops at a limit") {
  std::string inner;
  for (int depth = 0; depth < 300; ++depth) {  // model.graph.node.attribute.g.node...
    std::string outer;
    const int field = depth % 3 == 0 ? 1 : depth % 3 == 1 ? 6 : 5;
    outer += static_cast<char>(field << 3 | 2);
    for (size_t n = inner.size();; n >>= 7) {
      outer += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
      if (n <= 127) break;
    }
    inner = outer + inner;
  }
  survives(inner);
}

void expect_error(const onnx::ModelProto& model, const std::string& text) {
  const std::string error = error_of(model.SerializeAsString());
  CAPTURE(error);
  CHECK(error.find(text) != std::string::npos);
}

TEST_CASE("tensors whose sizes do not fit") {
  onnx::ModelProto model = parse(small_model());
  auto* w = model.mutable_graph()->mutable_initializer(0);
  w->set_dims(0, 3);
  expect_error(model, "w");
  w->set_dims(0, int64_t{1} << 40);
  w->set_dims(1, int64_t{1} << 40);
  expect_error(model, "w");
  w->set_dims(0, -2);
  expect_error(model, "w");
  onnx::ModelProto input = parse(small_model());
  auto* dims = input.mutable_graph()
                   ->mutable_input(0)
                   ->mutable_type()
                   ->mutable_tensor_type()
                   ->mutable_shape();
  for (int i = 0; i < 4; ++i) dims->mutable_dim(i)->set_dim_value(int64_t{1} << 39);
  expect_error(input, "2^40");
}

TEST_CASE("wrong ranks, types, attributes, cycles, names given twice") {
  const auto error = [](const std::string& graph) { return error_of(graph_bytes(graph)); };
  CHECK(error("g (float[2] x) => (float[2] y) <float[1,1,3] w = {1,2,3}> { y = Conv(x, w) }")
            .find("rank") != std::string::npos);
  CHECK(error("g (float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }") != "");
  CHECK(error("g (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }") != "");
  CHECK(error("g (float[2] x) => (float[2] y) { y = Softmax<axis = 7>(x) }")
            .find("axis 7 is out of range") != std::string::npos);
  CHECK(error("g (float[2] x) => (float[2] y) { y = Softmax<axis = 1.5>(x) }") != "");
  CHECK(error("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Add(x, a) y = Relu(b) }") != "");
  CHECK(error("g (float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }") != "");
  CHECK(error("g (float[2] x) => (float[2] z) { y = Relu(x) }") != "");
  CHECK(error("g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }").find("listed twice") !=
        std::string::npos);
  CHECK(error("g (float[2] x) => (float[2] y) { y = Relu(nothing) }") != "");
  CHECK(error("g (float[2,2] x) => (float[2] y) <int64[1] s = {5}> { y = Reshape(x, s) }") != "");
  CHECK(error("g (float[1,1,4] x) => (float[1,1,4] y) <float[1,1,3] w = {1,2,3}> { y = "
              "Conv<strides = [0]>(x, w) }")
            .find("strides") != std::string::npos);
  CHECK(error("g (float[1,1,4] x) => (float[1,1,4] y) <float[1,1,3] w = {1,2,3}> { y = Conv<pads = "
              "[9223372036854775807, 1]>(x, w) }") != "");
  CHECK(error("g (float[1,1,4] x) => (float[1,1,4] y) <float[1,1,3] w = {1,2,3}> { y = Conv<group "
              "= 0>(x, w) }") != "");
}

TEST_CASE("functions that call themselves or grow without bounds") {
  const std::string loop = onnx_bytes(
      R"(<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { y = f.a(x) }
    <opset_import: ["": 17, "f": 1], domain: "f"> a (x) => (y) { y = f.b(x) }
    <opset_import: ["": 17, "f": 1], domain: "f"> b (x) => (y) { y = f.a(x) })");
  CHECK(error_of(loop) != "");
  std::string bomb =
      R"(<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { y = f.n0(x) })";
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "Relu" : "f.n" + std::to_string(i + 1);
    bomb += "<opset_import: [\"\": 17, \"f\": 1], domain: \"f\"> n" + std::to_string(i) +
            " (x) => (y) { t = " + next + "(x) y = " + next + "(t) }";
  }
  CHECK(error_of(onnx_bytes(bomb)).find("with its functions expanded") != std::string::npos);
}

// A model whose weight `b` (two floats) lies in an external file
struct External {
  TempDir folder;
  onnx::ModelProto model = parse(small_model());
  onnx::TensorProto* b = model.mutable_graph()->mutable_initializer(1);

  External() {
    b->clear_float_data();
    b->clear_raw_data();
    b->set_data_location(onnx::TensorProto::EXTERNAL);
    std::filesystem::create_directory(folder.path("model"));
    write_file(folder.path("model/data.bin"), std::string(64, '\0'));
    write_file(folder.path("secret.bin"), std::string(64, '\0'));
  }
  void entry(const std::string& key, const std::string& value) {
    auto* e = b->add_external_data();
    e->set_key(key);
    e->set_value(value);
  }
  std::string error() {
    write_file(folder.path("model/m.onnx"), model.SerializeAsString());
    Expected<Model> result = import_onnx(folder.path("model/m.onnx"));
    return result ? "" : error_text(result.takeError());
  }
  std::string error_at(const std::string& location, const std::string& offset = "",
                       const std::string& length = "") {
    b->clear_external_data();
    entry("location", location);
    if (!offset.empty()) entry("offset", offset);
    if (!length.empty()) entry("length", length);
    return error();
  }
};

TEST_CASE("external data is mapped from below the model's folder only") {
  External e;
  CHECK(e.error_at("data.bin") == "");
  CHECK(e.error_at("./data.bin", "8", "8") == "");
  std::filesystem::create_directory(e.folder.path("model/sub"));
  write_file(e.folder.path("model/sub/more.bin"), std::string(8, '\0'));
  CHECK(e.error_at("sub/more.bin") == "");
  CHECK(e.error_at("../secret.bin").find("only files below the model's folder") !=
        std::string::npos);
  CHECK(e.error_at("sub/../../secret.bin").find("only files below") != std::string::npos);
  CHECK(e.error_at(e.folder.path("secret.bin")).find("only files below") != std::string::npos);
  CHECK(e.error_at("").find("only files below") != std::string::npos);
  CHECK(e.error_at("#1").find("cannot open") != std::string::npos);
  CHECK(e.error_at("none.bin").find("cannot open") != std::string::npos);
  CHECK(e.error_at("sub").find("not a regular file") != std::string::npos);
  std::filesystem::create_symlink(e.folder.path("secret.bin"), e.folder.path("model/link.bin"));
  CHECK(e.error_at("link.bin").find("links are not followed") != std::string::npos);
  std::filesystem::create_directory_symlink(e.folder.path(""), e.folder.path("model/up"));
  CHECK(e.error_at("up/secret.bin") != "");
  std::filesystem::create_hard_link(e.folder.path("secret.bin"), e.folder.path("model/hard.bin"));
  CHECK(e.error_at("hard.bin").find("hard links") != std::string::npos);
  REQUIRE(mkfifo(e.folder.path("model/pipe").c_str(), 0600) == 0);
  CHECK(e.error_at("pipe") != "");
}

TEST_CASE("links of a cache: data beside the model, in the folder that the model's own leads to") {
  namespace fs = std::filesystem;
  External e;
  const fs::path cache = e.folder.path("cache"), tree = cache / "snapshots/1/onnx";
  fs::create_directories(tree);
  fs::create_directories(cache / "blobs");
  fs::create_directories(e.folder.path("blobs"));
  e.entry("location", "m.data");
  write_file(cache / "blobs/a", e.model.SerializeAsString());
  write_file(cache / "blobs/b", std::string(8, '\0'));
  write_file(e.folder.path("blobs/b"), std::string(8, '\0'));
  write_file(cache / "b", std::string(8, '\0'));
  const auto error_to = [&](const std::string& data, const std::string& model) {
    fs::remove(tree / "m.data");
    fs::remove(tree / "m.onnx");
    fs::create_symlink(data, tree / "m.data");
    if (model.empty()) fs::copy_file(cache / "blobs/a", tree / "m.onnx");
    else fs::create_symlink(model, tree / "m.onnx");
    Expected<Model> result = import_onnx(tree / "m.onnx");
    return result ? "" : error_text(result.takeError());
  };
  const std::string up = "../../../", model = up + "blobs/a";
  CHECK(error_to(up + "blobs/b", model) == "");
  CHECK(cache_folder(tree / "m.onnx") == tree.string() + "/" + up + "blobs");
  const std::string absolute = (cache / "blobs/b").string();
  for (const std::string& other : {up + "../blobs/b", up + "b", up + "blobs/../b", absolute,
                                   up + "blobs/./b", std::string("blobs/b")})
    CHECK(error_to(other, model).find("links are not followed but") != std::string::npos);
  // The model is no link, or an absolute one.
  CHECK(error_to(up + "blobs/b", "").find("links are not followed but") != std::string::npos);
  CHECK(cache_folder(tree / "m.onnx").empty());
  CHECK(error_to(up + "blobs/b", (cache / "blobs/a").string()).find("links are not followed but") !=
        std::string::npos);
  // The file in the cache is a link again, or has a second name.
  fs::create_symlink("../b", cache / "blobs/c");
  CHECK(error_to(up + "blobs/c", model).find("links are not followed but") != std::string::npos);
  fs::create_hard_link(cache / "b", cache / "blobs/d");
  CHECK(error_to(up + "blobs/d", model).find("hard links") != std::string::npos);
}

TEST_CASE("external ranges stay inside the file and apart from each other") {
  External e;
  CHECK(e.error_at("data.bin", "60", "8").find("has only 64 bytes") != std::string::npos);
  CHECK(e.error_at("data.bin", "18446744073709551612", "8").find("has only 64 bytes") !=
        std::string::npos);
  CHECK(e.error_at("data.bin", "-8", "8").find("bad offset or length") != std::string::npos);
  CHECK(e.error_at("data.bin", "0x10", "8").find("bad offset or length") != std::string::npos);
  CHECK(e.error_at("data.bin", "0", "12").find("12 bytes of data but") != std::string::npos);
  CHECK(e.error_at("#model", "99999", "8").find("has only") != std::string::npos);
  e.error_at("data.bin", "0", "8");
  e.entry("offset", "8");
  CHECK(e.error().find("gives 'offset' twice") != std::string::npos);
  auto* w = e.model.mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->clear_dims();
  for (int64_t dim : {2, 1, 1, 1}) w->add_dims(dim);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* at = w->add_external_data();
  at->set_key("location");
  at->set_value("data.bin");
  at = w->add_external_data();
  at->set_key("offset");
  at->set_value("4");
  CHECK(e.error_at("data.bin", "0", "8").find("overlaps another tensor's") != std::string::npos);
}

TEST_CASE("large payloads are ranges of the mapped file, not copies") {
  onnx::ModelProto model = parse(
      graph_bytes("g (float[512] x) => (float[512] y) <float[1] w = {0}> { y = Add(x, w) }"));
  auto* w = model.mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->set_dims(0, 512);
  std::vector<float> values(512, 2.5f);
  w->set_raw_data(values.data(), 2048);
  CHECK(run_model(model.SerializeAsString(), {floats({512}, std::vector<float>(512, 1))}).front() ==
        std::vector<double>(512, 3.5));
  Expected<Model> imported = import_bytes(model.SerializeAsString());
  REQUIRE(imported);
  bool found = false;
  for (size_t i = 0; i < imported->graph.value_count(); ++i) {
    const Value& value = imported->graph.value(ValueId{static_cast<int32_t>(i)});
    found = found || (value.constant && value.name == "w" && value.constant->bytes.size() == 2048);
  }
  CHECK(found);
  // Some exporters set the default location explicitly.
  w->set_data_location(onnx::TensorProto::DEFAULT);
  CHECK(error_of(model.SerializeAsString()) == "");
  w->set_dims(0, 511);
  CHECK(error_of(model.SerializeAsString())
            .find("2048 bytes of data but its shape and type need 2044") != std::string::npos);
}

TEST_CASE("TensorProto files") {
  const TempDir folder;
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::FLOAT16);
  proto.add_dims(2);
  proto.add_int32_data(0x3c00);
  proto.add_int32_data(0xc000);
  write_file(folder.path("t.pb"), proto.SerializeAsString());
  Expected<Tensor> tensor = read_tensor_proto(folder.path("t.pb"));
  if (!tensor) FAIL(error_text(tensor.takeError()));
  CHECK(tensor->dtype == DType::f16);
  CHECK(tensor->at(0) == 1.0);
  CHECK(tensor->at(1) == -2.0);
  proto.set_data_type(onnx::TensorProto::STRING);
  write_file(folder.path("t.pb"), proto.SerializeAsString());
  Expected<Tensor> text = read_tensor_proto(folder.path("t.pb"));
  REQUIRE_FALSE(text);  // TensorProto files may not hold strings
  CHECK(error_text(text.takeError()).find("strings in it") != std::string::npos);
  write_file(folder.path("t.pb"), "\xff\xff\xff");
  Expected<Tensor> broken = read_tensor_proto(folder.path("t.pb"));
  REQUIRE_FALSE(broken);
  llvm::consumeError(broken.takeError());
}

}  // namespace
}  // namespace tw::test
