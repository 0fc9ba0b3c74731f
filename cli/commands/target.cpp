// tilewright target: prints one description as canonical YAML; "host" describes this machine.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "driver/rates/measure_rates.h"
#include "frontend/frontend.h"
#include "packager/output_file.h"

namespace tw {
namespace {

constexpr const char* kHowMeasured =
    "# The rates are measured on this machine: the best of several rounds of kernels of this "
    "compiler, on\n"
    "# one core, in cycles that a chain of dependent additions counts; fork_join on all cores. Not "
    "measured\n"
    "# are multiply-adds of bf16, f16, i8 and i16, which follow from f32's, and sums.\n";

struct TargetArgs {
  std::string name = kHostTarget, output;
  bool measure = false;
};

Expected<Target> measured(Target t, Console& console) {
  Progress progress(console);
  progress.begin("measure");
  const double sums = t.core.sums;
  TW_ASSIGN(t.core, measure_core_rates(t, [&](const std::string& what) { progress.detail(what); }));
  t.core.sums = sums;
  t.core = core_rates(t);
  return t;
}

Json to_json(const CoreRates& rates) {
  Json::Object all;
  for (const CoreRateKey& key : kCoreRateKeys)
    if (rates.*key.rate > 0)
      all.push_back({(*key.group ? std::string(key.group) + "." : "") + key.name, rates.*key.rate});
  return all;
}

// YAML comments with the instructions that the features give
std::string shipped_instructions(const Target& t) {
  std::string names;
  for (const Intrinsic& intrinsic : t.intrinsics)
    if (intrinsic.shipped) names += "#   " + intrinsic.name + "\n";
  if (names.empty()) return "";
  const std::string whose = t.driver.empty() ? "" : "of device '" + t.name + "', ";
  return "# instructions for tensorize, " + whose + "by the features:\n" + names;
}

std::string described(const Target& t) {
  std::string out = print(t) + shipped_instructions(t);
  for (const Target& device : t.devices) out += shipped_instructions(device);
  return out;
}

Expected<int> target(const TargetArgs& args, Console& console) {
  FileRoles files;
  files.reads_target(args.name);
  files.writes("the description", args.output);
  TW_TRY(files.check());
  if (args.measure && args.name != kHostTarget)
    return make_error(DiagCode::invalid_argument,
                      "--measure is for 'host', this machine, and not for '{0}'", args.name);
  TW_ASSIGN(Target t, load_target(args.name, config_dirs()));
  if (args.measure) { TW_ASSIGN(t, measured(std::move(t), console)); }
  const std::string yaml = (args.measure ? kHowMeasured : "") + described(t);
  if (!args.output.empty()) {
    TW_TRY(write_file(args.output, yaml));
    if (console.json) write_json(console, Json::Object{{"output", args.output}});
    return kExitOk;
  }
  if (!console.json) {
    console.out << yaml;
    return kExitOk;
  }
  write_json(console, Json::Object{{"name", t.name},
                                   {"triple", t.triple},
                                   {"cpu", t.cpu},
                                   {"features", json_array(t.features)},
                                   {"cores", t.cores},
                                   {"l1_bytes", t.l1_bytes},
                                   {"l2_bytes", t.l2_bytes},
                                   {"l3_bytes", t.l3_bytes},
                                   {"vector_bits", t.vector_bits},
                                   {"vector_registers", t.vector_registers},
                                   {"fast_math", t.fast_math},
                                   {"accuracy", t.accuracy},
                                   {"rates", to_json(t.core)},
                                   {"codegen_hash", codegen_hash(t)},
                                   {"yaml", yaml}});
  return kExitOk;
}

}  // namespace

CommandRun define_target(Flags& flags) {
  auto args = std::make_shared<TargetArgs>();
  flags.argument("NAME", args->name,
                 "host (the default), a name from 'tilewright targets', or a YAML file", false);
  flags.flag("--measure", args->measure, "Measure the rates of this machine's cores, some seconds");
  flags.text("-o,--output", args->output, "FILE", "Write it there");
  return [args](Console& console) { return target(*args, console); };
}

}  // namespace tw
