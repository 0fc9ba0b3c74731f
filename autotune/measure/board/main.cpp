// tilewright-worker DIR: measures candidates on a board, for a tuner that runs elsewhere. It
// contains no compiler and needs nothing but the kernel: jobs bring their code as shared libraries.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "autotune/measure/local.h"
#include "autotune/measure/spool.h"
#include "autotune/measure/worker.h"

namespace {

std::atomic<bool> stop_asked = false;

int usage() {
  std::fprintf(stderr,
               "tilewright-worker DIR [--threads N] [--idle SECONDS] [--self FILE]\n"
               "Serves the jobs that tilewright writes into DIR, on N threads (1), until it is\n"
               "interrupted, or nothing has come for so long. --self: what starts this program\n"
               "again, for the process that candidates run in; an emulator's script.\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (tw::is_measure_worker(argc, argv)) return tw::measure_worker(argv);
  tw::ServeOptions options;
  tw::LocalOptions local;
  for (int i = 1; i < argc; ++i) {
    const bool value = i + 1 < argc;
    if (std::strcmp(argv[i], "--threads") == 0 && value) options.threads = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--idle") == 0 && value) options.idle = std::atof(argv[++i]);
    else if (std::strcmp(argv[i], "--self") == 0 && value) local.program = argv[++i];
    else if (argv[i][0] != '-' && options.folder.empty()) options.folder = argv[i];
    else return usage();
  }
  if (options.folder.empty() || options.threads < 1) return usage();
  options.stop = &stop_asked;
  for (const int end : {SIGINT, SIGTERM}) std::signal(end, [](int) { stop_asked = true; });
  local.threads = options.threads;
  auto transport = tw::LocalTransport::create(local);
  if (!transport) {
    std::fprintf(stderr, "error: %s\n", tw::error_text(transport.takeError()).c_str());
    return 5;
  }
  auto served = tw::serve_spool(**transport, options);
  if (!served) {
    std::fprintf(stderr, "error: %s\n", tw::error_text(served.takeError()).c_str());
    return 5;
  }
  std::printf("%lld jobs\n", static_cast<long long>(*served));
  return 0;
}
