// The progress of a long command: on a terminal one live line with stage, seconds and memory; else
// (CI, a pipe) a plain line when a stage ends. It always goes to the error stream.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "cli/app.h"

namespace tw {

class Progress {
 public:
  // Silent with --json.
  explicit Progress(Console& console);
  Progress(const Progress&) = delete;
  ~Progress();  // ends the current stage

  void begin(const std::string& stage);  // ends the stage before
  void detail(const std::string& text);  // shown on the live line alone
  void end();
  // Prints a whole line (or several) without disturbing the live one.
  void print(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const;
  void tick();  // redraws until done_
  void erase_line();

  Console& console_;
  bool silent_;
  std::mutex mutex_;  // guards everything below and the stream
  std::condition_variable wake_;
  std::string stage_, detail_;
  Clock::time_point start_;
  bool done_ = false;
  std::thread ticker_;  // on a terminal only
};

std::string format_seconds(double seconds);  // "0.42 s", "1 min 05 s"
std::string format_bytes(uint64_t bytes);    // "512 B", "1.5 KB", "103 MB": powers of 1000
std::string format_count(double count);      // "4.1 G", "25.6 M", "940"

}  // namespace tw
