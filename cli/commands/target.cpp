// tilewright target: one description as canonical YAML; "host" describes this machine.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/targets.h"
#include "frontend/frontend.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct TargetArgs {
  std::string name = "host", output;
};

// The description, and in comments the instructions that its features give.
std::string described(const Target& t) {
  std::string out = print(t);
  bool any = false;
  for (const Intrinsic& intrinsic : t.intrinsics) {
    if (!intrinsic.shipped) continue;
    out += any ? "" : "# instructions for tensorize, by the features:\n";
    any = true;
    out += "#   " + intrinsic.name + "\n";
  }
  return out;
}

Expected<int> target(const TargetArgs& args, Console& console) {
  FileRoles files;
  files.reads_target(args.name);
  files.writes("the description", args.output);
  TW_TRY(files.check());
  TW_ASSIGN(const Target t, load_target(args.name, config_dirs()));
  if (!args.output.empty()) {
    TW_TRY(write_file(args.output, described(t)));
    if (console.json) write_json(console, Json::Object{{"output", args.output}});
    return kExitOk;
  }
  if (!console.json) {
    console.out << described(t);
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
                                   {"codegen_hash", codegen_hash(t)},
                                   {"yaml", print(t)}});
  return kExitOk;
}

}  // namespace

CommandRun define_target(Flags& flags) {
  auto args = std::make_shared<TargetArgs>();
  flags.argument("NAME", args->name,
                 "host (the default), a name from 'tilewright targets', or a YAML file", false);
  flags.text("-o,--output", args->output, "FILE", "Write it there");
  return [args](Console& console) { return target(*args, console); };
}

}  // namespace tw
