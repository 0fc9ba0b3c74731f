// --untrusted: does a command's work on a stranger's file in a process that can do little.
#pragma once
#include <optional>

#include "cli/app.h"
#include "support/temporary_folder.h"

namespace tw {

struct UntrustedFlags {
  static constexpr double kNotGiven = -1;
  bool on = false;
  double gigabytes = kNotGiven, seconds = kNotGiven;
  void define(Flags& flags);
  Error check() const;  // Errors: a limit out of range, or without --untrusted
};

struct Confined {
  std::optional<int> code;                // exit code of the child that did the work; nullopt: none
  std::optional<TemporaryFolder> folder;  // holds temporary files of the work: keep it meanwhile
};
// Confines the command to the files that it reads and writes, and to whole folders; "" is no file.
// Tells the limits on the error stream. Without --untrusted, limits are refused. Must be called
// before any thread begins and any file is looked into.
Expected<Confined> confined(const UntrustedFlags& flags, std::vector<std::string> reads,
                            std::vector<std::string> writes, Console& console);
std::string folder_of(const std::string& file);  // "." for a mere name, "" for none

}  // namespace tw
