#include "cli/runner_file.h"

#include <filesystem>

namespace tw {

void RunnerFile::define(Flags& flags) {
  flags.flag("--with-runner", wanted,
             "Beside the library NAME.so also NAME.run, a static program for the target's machine: "
             "it runs, times and verifies the library, and needs nothing else there");
}

std::string RunnerFile::path(const std::string& library) const {
  return wanted ? std::filesystem::path(library).replace_extension(".run").string() : "";
}

std::string RunnerFile::line(const std::string& library) const {
  return wanted ? path(library) + ": run, bench and verify on the target's machine\n" : "";
}

Error RunnerFile::check(const CompileOptions& options, const Target& target) const {
  if (!wanted) return Error::success();
  if (options.emit != Emit::so)
    return make_error(DiagCode::invalid_argument,
                      "--with-runner: the runner loads a library, which --emit so makes");
  if (!options.output.ends_with(".so"))
    return make_error(DiagCode::invalid_argument,
                      "--with-runner: NAME.run loads NAME.so; the library here is '{0}'",
                      options.output);
  if (!target.devices.empty())
    return make_error(DiagCode::unsupported,
                      "--with-runner: the runner is a static program, which cannot load the driver "
                      "of device '{0}'",
                      target.main_device().name);
  return Error::success();
}

}  // namespace tw
