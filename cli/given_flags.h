// The flags about a model's inputs: --inputs and --const.
#pragma once
#include <string>
#include <vector>

#include "cli/file_roles.h"
#include "cli/flags.h"
#include "frontend/frontend.h"

namespace tw {

struct GivenFlags {
  std::string inputs;
  std::vector<std::string> values;  // values of --const: "sr=16000"

  void define(Flags& flags);
  Expected<GivenInputs> read() const;
  std::string file() const;  // file that --inputs names; "": none
  void reads(FileRoles& files) const;
};

}  // namespace tw
