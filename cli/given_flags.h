// What commands are told of a model's inputs: --inputs and --const.
#pragma once
#include <string>
#include <vector>

#include "cli/file_roles.h"
#include "cli/flags.h"
#include "frontend/frontend.h"

namespace tw {

struct GivenFlags {
  std::string inputs;
  std::vector<std::string> values;  // "sr=16000", "--const" of each

  void define(Flags& flags);
  Expected<GivenInputs> read() const;
  std::string file() const;  // that is read; "": none
  void reads(FileRoles& files) const;
};

}  // namespace tw
