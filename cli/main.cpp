// A failed TW_CHECK aborts after its message: the handler turns that into the documented exit code.
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "cli/app.h"

namespace {
void internal_error(int) { std::_Exit(tw::kExitInternal); }
}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, internal_error);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not leave files half done
  return tw::run_cli(argc, argv, std::cout, std::cerr);
}
