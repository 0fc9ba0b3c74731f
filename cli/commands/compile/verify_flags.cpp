#include "cli/commands/compile/verify_flags.h"

#include <algorithm>

#include "cli/text/formatted.h"

namespace tw {

void VerifyFlags::define(Flags& flags) {
  flags.flag("--verify", on,
             "Run the library before it is kept, and compare it with the model: exit status 4 and "
             "no file where they differ");
  flags.text("--data", data, "FILE|DIR",
             "Inputs for --verify: an .npz file, or a folder of .npz, .npy, .pb, .png or .jpg "
             "files, or with a folder a sample; default: seeded inputs");
  flags.number("--tolerance", tolerance, "T",
               "Largest error that passes --verify, relative to an output's range; default 1e-4, "
               "with --max-error that, and 0.05 with a --precision below fp32");
  flags.text("--on", place, "COMMAND",
             "Starts the program that --verify appends to it on the library's machine, such as "
             "'qemu-arm -cpu max'; default: this machine where it can, else QEMU's emulator");
}

Error VerifyFlags::check(const CompileOptions& options) const {
  if (!on && (!data.empty() || tolerance != 0 || !place.empty()))
    return make_error(DiagCode::invalid_argument,
                      "--data, --tolerance and --on say how --verify runs the library, and it is "
                      "not asked for: give --verify");
  if (!on) return Error::success();
  if (tolerance < 0)
    return make_error(DiagCode::invalid_argument, "--tolerance {0}: a share of the range, above 0",
                      tolerance);
  if (options.emit == Emit::so) return Error::success();
  return make_error(DiagCode::unsupported,
                    options.emit == Emit::object
                        ? "--verify runs a library, and --emit obj writes an object, which has no "
                          "program around it: --emit so takes --verify, for a target with an "
                          "operating system; of a program with the object compare the outputs "
                          "with those of 'tilewright run MODEL' (docs/guide/microcontrollers.md)"
                        : "--verify runs a library, and --emit of a text writes none");
}

std::string verified_text(const VerifiedLibrary& report, double seconds) {
  std::string text = formatted("verified %zu sample%s by %s in %.2f s\n", report.samples,
                               report.samples == 1 ? "" : "s", report.machine.c_str(), seconds);
  for (const VerifiedOutput& output : report.outputs)
    text += (output.same() ? "  ok   " : "  OFF  ") + output.name + ": " + to_string(output) + "\n";
  return text;
}

Json to_json(const VerifiedLibrary& report, double seconds) {
  Json::Array outputs;
  for (const VerifiedOutput& output : report.outputs) outputs.push_back(to_json(output));
  return Json::Object{{"ok", report.same()},
                      {"samples", static_cast<int64_t>(report.samples)},
                      {"machine", report.machine},
                      {"seconds", seconds},
                      {"outputs", outputs}};
}

}  // namespace tw
