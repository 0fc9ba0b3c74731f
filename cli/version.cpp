#include "cli/version.h"

#include <llvm/Config/llvm-config.h>

#include "cli/targets.h"
#include "frontend/frontend.h"
#include "runtime/tilewright.h"

namespace tw {

std::string version_text() {
  std::string text = std::string("tilewright ") + TW_VERSION + " (ABI " +
                     std::to_string(TW_ABI_VERSION) + ")\nLLVM " + LLVM_VERSION_STRING +
                     "\nONNX opsets up to " + std::to_string(newest_opset()) + "\ntargets";
  for (const std::string& name : list_targets(config_dirs())) text += " " + name;
  return text;
}

Json version_json() {
  return Json::Object{{"tilewright", TW_VERSION},
                      {"abi", static_cast<int>(TW_ABI_VERSION)},
                      {"llvm", LLVM_VERSION_STRING},
                      {"onnx_opset", newest_opset()},
                      {"targets", json_array(list_targets(config_dirs()))}};
}

}  // namespace tw
