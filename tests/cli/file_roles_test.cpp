// Every command refuses outputs that are inputs, or each other, before any work and however their
// paths are spelled.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "cli/file_roles.h"
#include "cli_test_util.h"
#include "ir/graph/npy.h"

using namespace tw;

namespace {

namespace fs = std::filesystem;
const std::string kDigits = TW_SOURCE_DIR "/examples/digits/digits.onnx";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A field of a protobuf message: text, a message, or a small number.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) {
  return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string two_floats(const std::string& name) {  // a ValueInfoProto
  return field(1, name) + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 2)))));
}

// y = x + w; w lies in the file w.bin.
std::string model_with_external_data() {
  const std::string node = field(1, std::string("x")) + field(1, std::string("w")) +
                           field(2, std::string("y")) + field(4, std::string("Add"));
  const std::string location = field(1, std::string("location")) + field(2, std::string("w.bin"));
  const std::string weight = field(1, 2) + field(2, 1) + field(8, std::string("w")) +
                             field(13, location) + field(14, 1);
  const std::string graph = field(1, node) + field(2, std::string("g")) + field(5, weight) +
                            field(11, two_floats("x")) + field(12, two_floats("y"));
  return field(1, 8) + field(7, graph) + field(8, field(1, std::string()) + field(2, 13));
}

// Runs a command that must be refused with this message. It must change no file of the folder.
void refused(const TestFolder& folder, const std::vector<std::string>& words,
             const std::string& message) {
  std::map<std::string, std::string> before, after;
  for (const std::string& name : folder.files()) before[name] = slurp(folder / name);
  const CliResult r = cli(words);
  std::string line;
  for (const std::string& word : words) line += word + " ";
  CAPTURE(line);
  CHECK(r.code == kExitUser);
  CHECK_MESSAGE(has(r.err, message), r.err);
  CHECK(r.out.empty());
  for (const std::string& name : folder.files()) after[name] = slurp(folder / name);
  CHECK(after == before);
}

}  // namespace

TEST_CASE("compile writes over nothing that it reads, and no output over another") {
  const TestFolder folder;
  const std::string model = folder.write("digits.onnx", slurp(kDigits)), out = folder / "digits.so";
  REQUIRE(cli({"target", "x86-64-v3", "-o", folder / "mine.yaml"}).code == kExitOk);
  const std::string target = folder / "mine.yaml", over = "would be written over the model";
  refused(folder, {"compile", model, "-o", model}, over);
  refused(folder, {"compile", model, "-o", folder / "./digits.onnx"}, over);
  fs::create_symlink("digits.onnx", folder / "link");
  fs::create_hard_link(model, folder / "hard");
  fs::create_directory_symlink(folder.path(), folder / "here");
  refused(folder, {"compile", model, "-o", folder / "link"}, over);
  refused(folder, {"compile", model, "-o", folder / "hard"}, over);
  refused(folder, {"compile", folder / "link", "-o", model}, over);
  refused(folder, {"compile", model, "-o", folder / "here/digits.onnx"}, over);
  refused(folder, {"compile", model, "-o", out, "--header", model},
          "the header would be written over the model");
  refused(folder, {"compile", model, "--emit", "graph", "-o", model},
          "the text would be written over the model");
  refused(folder, {"compile", model, "-o", out, "--header", out},
          "the header would be written over the library");
  refused(folder, {"compile", model, "-o", out, "--header", folder / "here/digits.so"},
          "which is written too");
  refused(folder, {"compile", model, "-o", folder / "digits.h"},
          "the header would be written over the library");
  refused(folder, {"compile", model, "-t", target, "-o", target},
          "written over the target's description");
  folder.write("tilewright.lock", "");
  refused(folder, {"compile", model, "-o", folder / "tilewright.lock"},
          "written over the lock beside the model");
  folder.write("log.db", "");
  refused(folder, {"compile", model, "--log", folder / "log.db", "-o", folder / "log.db"},
          "written over the tuning log");
  refused(folder, {"compile", model, "--tune", "1s", "--log", model, "-o", out},
          "the tuning log would be written over the model");
  refused(folder,
          {"compile", model, "--tune", "1s", "--log", folder / "new.so", "-o", folder / "new.so"},
          "over the tuning log");
  refused(folder, {"compile", model, "--dump-dir", folder.path(), "-o", folder / "03-program.txt"},
          "a stage's text would be written over the library");
  fs::remove(folder / "tilewright.lock");
  CHECK(cli({"compile", model, "-o", out}).code == kExitOk);
  // The command may overwrite its own earlier output.
  CHECK(cli({"compile", model, "-o", out}).code == kExitOk);
}

TEST_CASE(
    "the default output may be the model, and a file without an ending has a header beside it") {
  const TestFolder folder;
  folder.write("digits.so", slurp(kDigits));
  fs::create_directory(folder / "v1.2");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  refused(folder, {"compile", "digits.so"}, "the library would be written over the model");
  const CliResult r = cli({"compile", kDigits, "-o", "./v1.2/net", "--json"});
  fs::current_path(before);
  CHECK(r.code == kExitOk);
  CHECK(fs::exists(folder / "v1.2/net.h"));
}

TEST_CASE("files with a model's tensors are inputs too") {
  const TestFolder folder;
  const std::string model = folder.write("m.onnx", model_with_external_data());
  const std::string weights = folder.write("w.bin", std::string(8, '\0'));
  CHECK_MESSAGE(cli({"compile", model, "-o", folder / "m.so"}).code == kExitOk,
                cli({"compile", model, "-o", folder / "m.so"}).err);
  refused(folder, {"compile", model, "-o", weights},
          "written over a file with the model's tensors");
  refused(folder,
          {"compile", model, "--emit", "graph", "-o",
           folder / "../" + fs::path(folder.path()).filename().string() + "/w.bin"},
          "the model's tensors");
  refused(folder, {"tune", model, "--log", weights}, "the tuning log would be written over");
}

TEST_CASE("the other commands that write do not write over what they read") {
  const TestFolder folder;
  const std::string model = folder.write("tilewright.lock", slurp(kDigits));
  refused(folder, {"lock", model}, "the lock would be written over the model");
  refused(folder, {"tune", model, "--log", model},
          "the tuning log would be written over the model");
  refused(folder, {"reduce", model, "-o", model},
          "the small model would be written over the model");
  REQUIRE(cli({"target", "x86-64-v3", "-o", folder / "t.yaml"}).code == kExitOk);
  refused(folder, {"target", folder / "t.yaml", "-o", folder / "t.yaml"},
          "written over the target's description");
  const std::string log = folder.write("log.db", "");
  refused(folder, {"log", "export", log, "--log", log},
          "what is exported would be written over the log");
  refused(folder, {"log", "import", log, "--log", log},
          "the log would be written over what is taken in");
  refused(folder, {"log", "merge", log, "--log", log},
          "the log would be written over what is taken in");
}

TEST_CASE("run writes no output over an input") {
  const TestFolder folder;
  const std::string library = folder / "model.so", input = folder / "logits.npy";
  REQUIRE(cli({"compile", kDigits, "-o", library}).code == kExitOk);
  const Tensor image = Tensor::zeros(DType::f32, {1, 1, 8, 8});
  folder.write("logits.npy", npy_header(image) + std::string(image.bytes.size(), '\0'));
  refused(folder, {"run", library, "--input", input, "-d", folder.path()},
          "output 'logits' would be written over an input");
  CHECK(cli({"run", library, "--input", input, "-d", folder / "out"}).code == kExitOk);
}
