#include "cli/tune_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <ostream>

#include "cli/progress.h"

namespace tw {
namespace {

constexpr int kNumbersWidth = 58;   // of a line behind the name

struct Line { double share = 0, ms = 0, gflops = 0, peak = 0, gain = 0; };

Line line_of(const NetworkTuner& tuner, const NetworkTuner::Row& row, const Peaks& peaks) {
  Line line;
  if (!std::isfinite(row.best) || row.best <= 0) return line;
  const double network = tuner.network_seconds();
  line.share = network > 0 ? static_cast<double>(row.task->calls) * row.best / network : 0;
  line.ms = row.best * 1e3;
  line.gflops = row.task->flops / row.best * 1e-9;
  line.peak = peaks.gflops > 0 ? line.gflops / peaks.gflops : 0;
  line.gain = std::isfinite(row.first) ? row.first / row.best : 0;
  return line;
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, args...);
  return buffer;
}

std::string text_of(const NetworkTuner& tuner, size_t task, const Peaks& peaks, int width) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  std::string name = row.task->name.substr(0, static_cast<size_t>(width));
  const std::string trials = std::to_string(row.measured) + (row.known ? "+" + std::to_string(row.known) : "");
  if (l.ms <= 0) return format("%-*s %4lldx %s", width, name.c_str(), static_cast<long long>(row.task->calls),
                               row.error.empty() ? "-" : "failed") + (row.measured ? "  " + trials : "") + "\n";
  return format("%-*s %4lldx %5.1f %10.4f %6.2f %9.1f %6.1f %9s\n", width, name.c_str(), static_cast<long long>(row.task->calls),
                100 * l.share, l.ms, l.gain, l.gflops, 100 * l.peak, trials.c_str());
}

}  // namespace

std::string tune_table(const NetworkTuner& tuner, const Peaks& peaks, size_t rows, int width) {
  std::vector<size_t> order(tuner.task_count());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return line_of(tuner, tuner.row(a), peaks).share > line_of(tuner, tuner.row(b), peaks).share;
  });
  const size_t shown = rows > 0 ? std::min(rows, order.size()) : order.size();
  std::string text = format("%-*s calls     %% %10s %6s %9s %6s %9s\n", width, "kernel", "best ms", "x", "GFLOP/s", "peak%", "trials");
  for (size_t i = 0; i < shown; ++i) text += text_of(tuner, order[i], peaks, width);
  if (shown < order.size()) text += "... and " + std::to_string(order.size() - shown) + " more\n";
  const double now = tuner.network_seconds(), first = tuner.first_seconds();
  text += format("all kernels: %.4f ms", now * 1e3) + (first > 0 ? format(", by default %.4f ms", first * 1e3) : "") + ", " +
          std::to_string(tuner.measured()) + " trials\n";
  return text;
}

Json tune_json(const NetworkTuner& tuner, size_t task, const Peaks& peaks, bool curve) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  Json::Object out{{"task", row.task->key}, {"name", row.task->name}, {"calls", row.task->calls}, {"seconds", row.best}, {"default_seconds", row.first},
                   {"share", l.share}, {"gflops", l.gflops}, {"peak", l.peak}, {"trials", row.measured}, {"known", row.known}, {"illegal", row.illegal},
                   {"space", row.space}};
  if (curve) out.push_back({"curve", json_array(tuner.curve(task))});
  if (!row.error.empty()) out.push_back({"error", row.error});
  return out;
}

void TuneView::redraw(const std::string& text) {
  if (drawn_ > 0) console_.err << "\033[" << drawn_ << "A\033[J";
  console_.err << text;
  console_.err.flush();
  drawn_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

void TuneView::after_round(size_t task, double seconds) {
  if (console_.json && quiet_) return;
  if (console_.json) {
    console_.out << dump(Json::Object{{"round", tune_json(tuner_, task, peaks_)}, {"network_seconds", tuner_.network_seconds()},
                                      {"trials", tuner_.measured()}, {"elapsed", seconds}}, -1)
                 << "\n";
    console_.out.flush();
  } else if (console_.terminal) {
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 6;
    const int width = std::clamp((known ? size.ws_col : 80) - kNumbersWidth, 12, kNameWidth);
    redraw(tune_table(tuner_, peaks_, (known ? size.ws_row : 24u) - 5u, width) + format_seconds(seconds) + "\n");
  } else {
    console_.err << format("%8s  ", format_seconds(seconds).c_str()) << text_of(tuner_, task, peaks_, kNameWidth);
    console_.err.flush();
  }
}

void TuneView::finish() {
  if (console_.terminal && drawn_ > 0) redraw("");
}

}  // namespace tw
