// tilewright verify: checks a compiled model against stored outputs, or against the reference
// evaluation of its ONNX file.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/untrusted.h"
#include "driver/bundle/bundle.h"
#include "driver/compare/verify.h"
#include "driver/run/device_report.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

struct VerifyArgs {
  std::string library, model, device, reference = "f64", on;
  InputSources inputs;
  double tolerance = 1e-4;
  int threads = 0;
  bool per_node = false, no_check = false;
  UntrustedFlags untrusted;
};

Error check_args(const VerifyArgs& args) {
  std::error_code none;
  if (!args.inputs.data.empty() && !std::filesystem::is_directory(args.inputs.data, none))
    return make_error(DiagCode::io, "--data '{0}' is not a folder", args.inputs.data);
  if (args.model.empty() && args.inputs.data.empty())
    return make_error(
        DiagCode::invalid_argument,
        "nothing to compare with: give the ONNX model, or --data with stored outputs");
  if (args.model.empty() && args.per_node)
    return make_error(DiagCode::invalid_argument, "--per-node needs the ONNX model");
  if (!reference_from_name(args.reference))
    return wrong_word("--reference", args.reference, "f64, unoptimized, operators");
  return Error::success();
}

// library_passed: the library's own outputs are those of the reference.
void print_report(Console& console, const PerNodeReport& report, bool library_passed) {
  std::ostream& out = console.out;
  const bool passes_off = std::any_of(report.passes.begin(), report.passes.end(),
                                      [](const Difference& d) { return !d.same; });
  if (passes_off)
    out << "the graph passes change what the model computes: see --pass-limit of compile\n";
  if (!report.first) {
    out << "each of " << report.compared
        << " fused groups gives the reference's result when all of them are kept"
        << (passes_off || library_passed ? "\n"
                                         : ", and the library does not: suspect the sharing of "
                                           "memory, which that build goes without\n");
    return;
  }
  out << "the first result that is off: " << report.first->value << ": " << report.first->type
      << "\n";
  for (const std::string& node : report.first->nodes) out << "  by " << node << "\n";
  out << "  " << to_string(report.first->difference) << "\n";
}

Json to_json(const PerNodeReport& report) {
  Json::Array passes;
  for (const Difference& d : report.passes) passes.push_back(to_json(d));
  Json first;
  if (report.first)
    first = Json::Object{{"value", report.first->value},
                         {"type", report.first->type},
                         {"nodes", json_array(report.first->nodes)},
                         {"difference", to_json(report.first->difference)}};
  return Json::Object{{"compared", report.compared}, {"first", first}, {"passes", passes}};
}

std::vector<std::string> files_of(const VerifyArgs& args) {
  std::vector<std::string> files{folder_of(args.library), folder_of(args.model),
                                 cache_folder(args.model), args.inputs.data};
  for (const std::string& input : args.inputs.files)
    files.push_back(input.substr(input.find('=') + 1));
  return files;
}

Expected<int> verify(const VerifyArgs& args, Console& console) {
  TW_ASSIGN(const Confined work, confined(args.untrusted, files_of(args), {}, console));
  if (work.code) return *work.code;
  TW_ASSIGN(const bool bundle, is_bundle(args.library));
  if (bundle)
    return make_error(DiagCode::invalid_argument,
                      "'{0}' is a bundle: 'tilewright unbundle' checks it, and takes out the "
                      "library that verify is for",
                      args.library);
  TW_TRY(check_args(args));
  if (args.untrusted.on && !args.on.empty())
    return make_error(DiagCode::unsupported, "--untrusted starts no programs: not with --on");
  use_device(args.device);
  FileRoles files;
  if (!args.model.empty()) files.reads_model(args.model);
  const VerifyRequest request{args.library,   args.model,
                              args.inputs,    *reference_from_name(args.reference),
                              args.tolerance, {args.on, args.threads},
                              !args.no_check, args.per_node};
  Expected<VerifyReport> verified = [&] {
    Progress progress(console);
    return verify_model(
        request, [&](const std::string& stage) { progress.begin(stage); },
        [&](const std::string& warning) { progress.print("warning: " + warning + "\n"); });
  }();
  if (!verified) return verified.takeError();
  TW_TRY(files.models_are_unchanged());
  bool same = verified->same();
  Json::Array list;
  for (const VerifiedOutput& output : verified->outputs) {
    list.push_back(to_json(output));
    if (!console.json)
      console.out << (output.same() ? "ok   " : "OFF  ") << output.name << ": " << to_string(output)
                  << "\n";
  }
  Json::Object result{{"ok", same},
                      {"against", verified->stored ? "stored" : args.reference},
                      {"tolerance", args.tolerance},
                      {"machine", verified->machine},
                      {"outputs", list}};
  if (args.per_node) {
    TW_ASSIGN(const PerNodeReport report, verify_nodes(request, *verified));
    TW_TRY(files.models_are_unchanged());
    if (!console.json) print_report(console, report, same);
    same &= !report.first;
    result.front().value = same;
    result.push_back({"per_node", to_json(report)});
  }
  if (console.json) write_json(console, result);
  return same ? int{kExitOk} : int{kExitMismatch};
}

}  // namespace

CommandRun define_verify(Flags& flags) {
  auto args = std::make_shared<VerifyArgs>();
  flags.argument("LIBRARY", args->library, "The compiled model");
  flags.argument("MODEL", args->model,
                 "The ONNX file it was compiled from: what it computes is compared with", false);
  declare(flags, args->inputs);
  flags.text("--data", args->inputs.data, "DIR",
             "A folder with input_0.pb, ... and, to compare with, output_0.pb, ... (or .npy)");
  flags.text("--reference", args->reference, "NAME",
             "What the ONNX file's outputs are computed by: f64 (default), the whole model in "
             "doubles, compiled as plain loops; unoptimized, the same in the model's own types; or "
             "operators, one "
             "evaluator an operator, each rounded to its type: minutes for a large model");
  flags.text("--device", args->device, "ADDRESS",
             "Where a device of the model is: iss: or rtl: (docs/internals/vdla.md); default: what "
             "TILEWRIGHT_DEVICE or the target says");
  flags.text("--on", args->on, "COMMAND",
             "Starts a program of the library's machine that is appended to it: 'qemu-arm -cpu "
             "max', or a script that runs it on a board; default: this machine where it can, else "
             "QEMU's emulator");
  flags.number("--tolerance", args->tolerance, "T",
               "Largest error that passes, relative to an output's range; default 1e-4. Beyond it "
               "passes what the model's own types are off by, too, without any optimization");
  flags.flag("--per-node", args->per_node,
             "Compile again with every fused group's result kept, and name the first that is off");
  flags.integer("--threads", args->threads,
                "Run on so many threads; 0: as many as this process may use");
  args->untrusted.define(flags);
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return verify(*args, console); };
}

}  // namespace tw
