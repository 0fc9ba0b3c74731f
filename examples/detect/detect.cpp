// Lists the faces or objects in a picture, found by a compiled detector; one line each: label,
// score, box in pixels.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "compiled_model.h"
#include "decode.h"
#include "fail.h"
#include "picture.h"

namespace detect {
namespace {

constexpr char kUsage[] =
    "usage: detect face|yolox MODEL.so PICTURE.jpg [--name NAME] [--dump-input FILE.npy]\n"
    "       detect face|yolox PICTURE.jpg --dump-input FILE.npy\n"
    "       detect face|yolox PICTURE.jpg --outputs FILE.npy[,FILE.npy]\n"
    "  --name NAME     the name that the library was compiled with, when its file has another now\n"
    "  --dump-input    also writes the tensor that the model is given\n"
    "  --outputs       takes the model's outputs (face: scores,boxes) from files instead of "
    "running it\n"
    "Prints `label score left top right bottom`, tabs between, best first.\n";

struct Arguments {
  bool face = false;
  std::string model, picture, name, dump_input, outputs;
};

[[noreturn]] void usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments result;
  std::vector<std::string> plain;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    std::string* option = word == "--name"         ? &result.name
                          : word == "--dump-input" ? &result.dump_input
                          : word == "--outputs"    ? &result.outputs
                                                   : nullptr;
    if (!option && word.rfind("--", 0) == 0) usage();
    if (!option) {
      plain.push_back(word);
    } else if (++i < argc) {
      *option = argv[i];
    } else {
      usage();
    }
  }
  if (plain.size() < 2 || plain.size() > 3 || (plain[0] != "face" && plain[0] != "yolox")) usage();
  result.face = plain[0] == "face";
  result.picture = plain.back();
  if (plain.size() == 3) result.model = plain[1];
  if (result.model.empty() ? result.outputs.empty() && result.dump_input.empty()
                           : !result.outputs.empty())
    usage();
  return result;
}

std::vector<Tensor> read_outputs(const std::string& paths) {
  std::vector<Tensor> result;
  for (size_t start = 0; start <= paths.size();) {
    size_t end = std::min(paths.find(',', start), paths.size());
    result.push_back(read_npy(paths.substr(start, end - start)));
    start = end + 1;
  }
  return result;
}

int run(const Arguments& arguments) {
  Picture picture = read_jpeg(arguments.picture);
  Tensor input = arguments.face ? face_input(picture) : yolox_input(picture);
  if (!arguments.dump_input.empty()) write_npy(arguments.dump_input, input);
  std::vector<Tensor> outputs;
  if (!arguments.outputs.empty()) {
    outputs = read_outputs(arguments.outputs);
  } else if (!arguments.model.empty()) {
    outputs = CompiledModel(arguments.model, arguments.name).run(input);
  } else {
    return 0;
  }
  size_t expected = arguments.face ? 2 : 1;
  if (outputs.size() != expected) fail("%zu outputs, expected %zu", outputs.size(), expected);
  std::vector<Detection> found = arguments.face
                                     ? decode_face(outputs[0], outputs[1], picture.width,
                                                   picture.height)
                                     : decode_yolox(outputs[0], picture.width, picture.height);
  for (const Detection& d : found)
    std::printf("%s\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\n", d.label, d.score, d.left, d.top, d.right,
                d.bottom);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace detect

int main(int argc, char** argv) { return detect::run(detect::parse(argc, argv)); }
