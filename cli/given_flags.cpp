#include "cli/given_flags.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

namespace tw {

void GivenFlags::define(Flags& flags) {
  flags.text(
      "--inputs", inputs, "FILE|YAML",
      "The inputs as the caller has them: {image: {layout: nhwc, dtype: u8, scale: 0.0039}}; "
      "the model gets nodes in front that bring them to what it takes");
  flags.repeated("--const", values, "NAME=V[,V...]",
                 "Bind an input to a value; it is no input any more: sr=16000");
}

Expected<GivenInputs> GivenFlags::read() const {
  GivenInputs given;
  TW_ASSIGN(given.forms, parse_input_forms(inputs));
  for (const std::string& text : values) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return make_error(DiagCode::invalid_argument,
                        "--const '{0}' is not NAME=V or NAME=V,V,..., for example --const sr=16000",
                        text);
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(text).drop_front(equals + 1).split(parts, ',');
    std::vector<std::string>& list = given.values[text.substr(0, equals)];
    if (!list.empty())
      return make_error(DiagCode::invalid_argument, "--const gives '{0}' twice",
                        text.substr(0, equals));
    for (const llvm::StringRef part : parts) list.push_back(part.trim().str());
  }
  return given;
}

std::string GivenFlags::file() const { return is_input_forms_file(inputs) ? inputs : ""; }

void GivenFlags::reads(FileRoles& files) const {
  if (!file().empty()) files.reads("the inputs' forms", file());
}

}  // namespace tw
