// The display of a running tune: a live table on a terminal, a line for each round elsewhere, JSON
// lines with --json.
#pragma once
#include <array>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "autotune/network.h"
#include "cli/app.h"
#include "cli/text/became.h"
#include "cli/text/text_width.h"
#include "driver/run/roofline.h"
#include "driver/tune/tune_budget.h"

namespace tw {

// Largest share of the network's time first. rows: at most so many; 0: all
std::string tune_table(const NetworkTuner& tuner, const Peaks& peaks, int columns = kPlainColumns,
                       size_t rows = 0);
struct StoryShare {
  size_t kernels = 0;
  double time = 0;  // share of the network's time, by the best times
};
// Shares of kernels, by what became of them: "better point found: 5 kernels, 61.2 % of the time;
// .."
std::array<StoryShare, kBecameCount> shares_of(const NetworkTuner& tuner);
std::string to_string(const std::array<StoryShare, kBecameCount>& shares);
// Seconds of a run whose kernels are as fast as arithmetic and memory allow, or as they are if they
// are faster; 0: the peaks are not known
double least_seconds(const NetworkTuner& tuner);
// Says whether more trials may bring a kernel nearer to its roof.
enum class Outlook : uint8_t {
  more_trials,  // trials still gain, or there were few
  idle,         // many trials in a row gained nothing
  exhausted,    // the space has no more
};
struct ToWin {
  size_t task = 0;
  double share = 0;  // share of the network's time
  int more = 0;      // trials that may win it; 0: see the outlook
  int idle = 0;      // trials since the last gain
  Outlook outlook = Outlook::more_trials;
};
// Kernels that leave the network at least 1 % to win, the largest first; none if no peak is known
std::vector<ToWin> to_win(const NetworkTuner& tuner);
Json to_win_json(const NetworkTuner& tuner);
// One line: what could be won in all, and where; "": not known
std::string to_win_text(const NetworkTuner& tuner);
// JSON of one task: {"task", "name", "calls", "seconds", "default_seconds", "share", "gflops",
// "peak", "trials", "known", "illegal", "became"}; "roof_seconds" and "left" if peaks are known,
// "gain" if it was measured in turns; with `curve` also the best so far by trial
Json tune_json(const NetworkTuner& tuner, size_t task, const Peaks& peaks, bool curve = false);

// The rest of a search for the live line: "18 s left"; "": not known. trials: the limit; 0: none.
// done: trials made in `searched` seconds
std::string rest_text(const TuneBudget& budget, int trials, int done, double searched);

class TuneView {
 public:
  // quiet: no JSON lines. trials: the limit, 0: none.
  TuneView(Console& console, const NetworkTuner& tuner, const Peaks& peaks,
           const TuneBudget& budget, int trials, bool quiet);
  TuneView(const TuneView&) = delete;
  ~TuneView() { finish(); }
  void begins(size_t task);
  void ends(size_t task);
  void finish();  // removes the live lines

 private:
  // The live line: time, rest, the kernel at work
  std::string status() const;
  void redraw(const std::string& table);
  void tick();
  Console& console_;
  const NetworkTuner& tuner_;
  const Peaks& peaks_;
  const TuneBudget& budget_;
  const int trials_;
  const bool quiet_;
  const double start_;  // begin of the search
  std::mutex mutex_;    // guards everything below and the stream
  std::condition_variable wake_;
  std::string at_work_;
  int measured_ = 0, drawn_ = 0;  // drawn: lines of the live table
  bool shown_ = false, done_ = false;
  std::thread ticker_;  // on a terminal only
};

}  // namespace tw
