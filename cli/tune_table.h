// What tune shows while it works: a live table on a terminal, a line a round elsewhere, JSON lines with --json.
#pragma once
#include <string>

#include "autotune/network.h"
#include "cli/app.h"
#include "cli/roofline.h"

namespace tw {

// Largest share of the network's time first; rows: at most so many, 0: all.
inline constexpr int kNameWidth = 44;
std::string tune_table(const NetworkTuner& tuner, const Peaks& peaks, size_t rows = 0, int name_width = kNameWidth);
// Of one task: {"task", "name", "calls", "seconds", "default_seconds", "share", "gflops", "peak", "trials", "known", "illegal"}; with `curve` the best so far by trial too
Json tune_json(const NetworkTuner& tuner, size_t task, const Peaks& peaks, bool curve = false);

class TuneView {
 public:
  // quiet: no JSON lines.
  TuneView(Console& console, const NetworkTuner& tuner, const Peaks& peaks, bool quiet) : console_(console), tuner_(tuner), peaks_(peaks), quiet_(quiet) {}
  void after_round(size_t task, double seconds);   // seconds: since the beginning
  void finish();                                   // the table stays

 private:
  void redraw(const std::string& text);
  Console& console_;
  const NetworkTuner& tuner_;
  const Peaks& peaks_;
  bool quiet_;
  int drawn_ = 0;                                  // lines of the live table
};

}  // namespace tw
