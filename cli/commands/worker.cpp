// tilewright worker DIR: measures on this machine what another one asks for through a folder.
#include <memory>
#include <ostream>

#include "autotune/measure/local.h"
#include "autotune/measure/spool.h"
#include "cli/commands/commands.h"
#include "cli/interrupts.h"

namespace tw {
namespace {

struct WorkerArgs {
  std::string folder;
  int threads = 1;
  double idle = 0;
};

Expected<int> serve(const WorkerArgs& args, Console& console) {
  const Interrupts interrupts;
  TW_ASSIGN(const std::unique_ptr<LocalTransport> transport,
            LocalTransport::create({.threads = args.threads}));
  if (!console.json) console.err << transport->device() << " serves " << args.folder << "\n";
  TW_ASSIGN(const int64_t served,
            serve_spool(*transport, {args.folder, args.threads, args.idle, &interrupts.asked()}));
  if (console.json)
    write_json(
        console,
        Json::Object{{"folder", args.folder}, {"device", transport->device()}, {"jobs", served}});
  else console.out << args.folder << ": " << served << " jobs\n";
  return kExitOk;
}

}  // namespace

CommandRun define_worker(Flags& flags) {
  auto args = std::make_shared<WorkerArgs>();
  flags.argument("DIR", args->folder, "The folder that tune --worker and dataset --worker name");
  flags.integer("--threads", args->threads, "Candidates may run on so many threads; default 1", 1);
  flags.number("--idle", args->idle, "SECONDS",
               "End when nothing has come for so long; default: when it is interrupted");
  return [args](Console& console) { return serve(*args, console); };
}

}  // namespace tw
