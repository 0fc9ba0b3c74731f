// For tests: AMX's instructions on a machine that lacks them. The handler of SIGILL decodes each
// one that the processor refuses, and runs it on tile registers of its own, a set for each thread
// (Intel's Architecture Instruction Set Extensions Programming Reference, chapter 3).
#pragma once
#include <csignal>
#include <cstdint>
#include <string>

namespace tw::test {

// Emulates in all threads as long as it lives. Only one may live at a time.
class AmxEmulator {
 public:
  AmxEmulator();
  ~AmxEmulator();
  AmxEmulator(const AmxEmulator&) = delete;
  AmxEmulator& operator=(const AmxEmulator&) = delete;

  // True if it can stand in for the feature (LLVM's name): an AMX feature, on x86-64 under Linux,
  // on a processor without AMX.
  static bool has(const std::string& feature);
  // Multiplying instructions that all threads have run here so far; 0 where the processor runs them
  // itself.
  static int64_t products();

 private:
  struct sigaction before_ = {};
};

}  // namespace tw::test
