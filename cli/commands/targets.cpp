// tilewright targets: lists the descriptions that -t finds by name.
#include <llvm/ADT/StringExtras.h>

#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

std::string summary(const Target& t) {
  if (!t.isa.empty()) return t.triple + ", code for each of " + llvm::join(t.isa, ", ");
  std::string devices;
  for (const Target& d : t.devices) devices += ", " + d.name + " by " + d.driver;
  return t.triple + ", " + (t.cpu.empty() ? "generic" : t.cpu) + ", " + std::to_string(t.cores) +
         (t.cores == 1 ? " core, " : " cores, ") + std::to_string(t.vector_bits) +
         "-bit vectors, L2 " + std::to_string(t.l2_bytes >> 10) + " KiB" + devices;
}

// A description that does not load is an error, after the others are listed.
Expected<int> targets(Console& console) {
  const std::vector<std::string> dirs = config_dirs();
  std::vector<Diag> errors;
  Json::Array list;
  std::string text;
  for (const std::string& name : list_targets(dirs)) {
    Expected<Target> target = load_target(name, dirs);
    if (!target) {
      for (Diag& d : take_diags(target.takeError())) errors.push_back(std::move(d));
      continue;
    }
    list.push_back(Json::Object{{"name", name},
                                {"triple", target->triple},
                                {"cpu", target->cpu},
                                {"cores", target->cores},
                                {"vector_bits", target->vector_bits},
                                {"summary", summary(*target)}});
    char column[40];
    std::snprintf(column, sizeof column, "%-20s ", name.c_str());
    text += column + summary(*target) + "\n";
  }
  if (!console.json) console.out << text;
  if (!errors.empty()) return make_error(std::move(errors));
  if (console.json) write_json(console, Json::Object{{"targets", list}});
  return kExitOk;
}

}  // namespace

CommandRun define_targets(Flags&) { return targets; }

}  // namespace tw
