// Flags of `compile --verify`.
#pragma once
#include <string>

#include "cli/app.h"
#include "cli/flags.h"
#include "driver/accuracy/verified_library.h"

namespace tw {

struct VerifyFlags {
  bool on = false;
  std::string data, place;
  double tolerance = 0;  // 0: not given
  int threads = 0;

  void define(Flags& flags);
  // Errors: flags of --verify without it, an object, a text.
  Error check(const CompileOptions& options) const;
};

// "verified 4 samples by this machine in 0.30 s", and a line for each output
std::string verified_text(const VerifiedLibrary& report, double seconds);
Json to_json(const VerifiedLibrary& report, double seconds);

}  // namespace tw
