// For tests: AMX's instructions on a machine that lacks them. Where the processor refuses one, it
// is decoded and done on tile registers of its own, a set for each thread (Intel's Architecture
// Instruction Set Extensions Programming Reference, chapter 3).
#pragma once
#include <csignal>
#include <cstdint>
#include <string>

namespace tw::test {

// As long as it lives, in all threads. One at a time.
class AmxEmulator {
 public:
  AmxEmulator();
  ~AmxEmulator();
  AmxEmulator(const AmxEmulator&) = delete;
  AmxEmulator& operator=(const AmxEmulator&) = delete;

  // It can stand in for a feature (LLVM's name): on x86-64 under Linux, those of AMX alone, on a
  // processor that has none of them.
  static bool has(const std::string& feature);
  // Instructions done here by all threads so far, those that multiply; 0 where the processor did
  // them itself.
  static int64_t products();

 private:
  struct sigaction before_ = {};
};

}  // namespace tw::test
