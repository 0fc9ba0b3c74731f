#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "support/end_signals.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

// Runs the body in a child. Returns the signal that ended it, or -1 after an ordinary end.
template <class Body>
int signal_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    clean_up_on_end_signals();
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

}  // namespace

TEST_CASE("a signal that ends the process removes what is registered, and nothing else") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TestFolder folder;
    folder.write("kept", "");
    const int how = signal_of_child([&] {
      { const RemovedOnEndSignal over(folder / "kept"); }
      const RemovedOnEndSignal file(folder.write("gone", "x")), dir(folder / "dir"),
          missing(folder / "missing");
      std::filesystem::create_directory(folder / "dir");
      for (int i = 0; i < 300; ++i)
        folder.write("dir/" + std::string(20, 'n') + std::to_string(i), "");
      ::raise(signal);
    });
    CHECK(how == signal);
    CHECK(folder.files() == std::vector<std::string>{"kept"});
  }
}

TEST_CASE("signals wait for a step that must not be torn apart, in any thread") {
  for (const bool elsewhere : {false, true}) {
    const TestFolder folder;
    const int how = signal_of_child([&] {
      std::atomic<bool> inside{false};
      const auto step = [&] {
        const EndSignalsWait wait;
        inside = true;
        if (!elsewhere) ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        folder.write("whole", "");
      };
      if (!elsewhere) return step();
      std::thread thread(step);
      while (!inside) {}
      ::raise(SIGTERM);
      thread.join();
    });
    CHECK(how == SIGTERM);
    CHECK(folder.files() == std::vector<std::string>{"whole"});
  }
}

TEST_CASE("a signal that the program ignores stays ignored") {
  CHECK(signal_of_child([] {
          std::signal(SIGHUP, SIG_IGN);
          clean_up_on_end_signals();
          ::raise(SIGHUP);
        }) == -1);
}
