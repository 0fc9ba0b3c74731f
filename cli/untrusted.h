// --untrusted: a command's work on a stranger's file, in a process that can do little.
#pragma once
#include <optional>

#include "cli/app.h"
#include "driver/run/temporary_folder.h"

namespace tw {

struct UntrustedFlags {
  static constexpr double kNotGiven = -1;
  bool on = false;
  double gigabytes = kNotGiven, seconds = kNotGiven;
  void define(Flags& flags);
  Error check() const;  // limits that are none, or that nothing is held to
};

struct Confined {
  std::optional<int> code;                // of the process that did the work, when this is not it
  std::optional<TemporaryFolder> folder;  // for the work's temporary files; to be kept meanwhile
};
// What the command reads and writes: files, or folders with all in them; "" is none. Says on the
// error stream what the work is held to. Without --untrusted: limits are refused. Called before any
// thread begins and any file is looked into.
Expected<Confined> confined(const UntrustedFlags& flags, std::vector<std::string> reads,
                            std::vector<std::string> writes, Console& console);
std::string folder_of(const std::string& file);  // "." for a mere name, "" for none

}  // namespace tw
