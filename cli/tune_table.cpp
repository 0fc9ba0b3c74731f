#include "cli/tune_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <ostream>

#include "cli/progress.h"
#include "cli/text/formatted.h"

namespace tw {
namespace {

constexpr int kNumbersWidth = 58, kLeastName = 12;  // of a line behind the name
constexpr std::chrono::milliseconds kTableRedraw{200};

struct Line {
  double share = 0, ms = 0, gflops = 0, peak = 0, gain = 0;
};

Line line_of(const NetworkTuner& tuner, const NetworkTuner::Row& row, const Peaks& peaks) {
  Line line;
  if (!std::isfinite(row.best) || row.best <= 0) return line;
  const double network = tuner.network_seconds();
  line.share = network > 0 ? static_cast<double>(row.task->calls) * row.best / network : 0;
  line.ms = row.best * 1e3;
  line.gflops = row.task->flops / row.best * 1e-9;
  const double most = peaks.gflops_of(row.multiplies);
  line.peak = most > 0 ? line.gflops / most : 0;
  line.gain = std::isfinite(row.first) ? row.first / row.best : 0;
  return line;
}

std::string text_of(const NetworkTuner& tuner, size_t task, const Peaks& peaks, int width) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  const std::string name = column(row.task->name, width);
  const std::string trials = std::to_string(row.measured) +
                             (row.known ? "+" + std::to_string(row.known) : "");
  if (l.ms <= 0)
    return name +
           formatted(" %4lldx %s", static_cast<long long>(row.task->calls),
                     row.error.empty() ? "-" : "failed") +
           (row.measured ? "  " + trials : "") + "\n";
  return name + formatted(" %4lldx %5.1f %10.4f %6.2f %9.1f %6.1f %9s\n",
                          static_cast<long long>(row.task->calls), 100 * l.share, l.ms, l.gain,
                          l.gflops, 100 * l.peak, trials.c_str());
}

// Of kernels that have nothing but their default schedule, and why.
std::string default_alone(size_t count, const char* reason) {
  if (count == 0) return "";
  return std::to_string(count) +
         (count == 1 ? " kernel has its default schedule"
                     : " kernels have their default schedules") +
         " alone: " + reason + "\n";
}

// Of the whole network, as far as it is known.
std::string totals(const NetworkTuner& tuner) {
  const size_t count = tuner.task_count(), reached = tuner.reached();
  const double now = tuner.network_seconds(), first = tuner.first_seconds();
  const size_t failed = tuner.failures().size(), left = count - reached - failed;
  std::string text = reached == count
                         ? "all " + std::to_string(count) + " kernels"
                         : std::to_string(reached) + " of " + std::to_string(count) + " kernels";
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  if (left > 0) text += ", " + std::to_string(left) + " were not reached";
  text += ": ";
  text += formatted("%.4f ms", now * 1e3) +
          (first > 0 ? formatted(", by default %.4f ms", first * 1e3) : "") + ", " +
          std::to_string(tuner.measured()) + " trials";
  size_t untried = 0, fixed = 0;  // nothing but the default schedule
  for (size_t i = 0; i < count; ++i) {
    const NetworkTuner::Row row = tuner.row(i);
    if (row.space <= 1) ++fixed;
    else if (std::isfinite(row.best) && row.measured + row.known <= 1) ++untried;
  }
  return text + "\n" + default_alone(untried, "others cost more") +
         default_alone(fixed, "rules fix them");
}

int widest(const NetworkTuner& tuner) {
  size_t most = 0;
  for (size_t i = 0; i < tuner.task_count(); ++i)
    most = std::max(most, tuner.row(i).task->name.size());
  return static_cast<int>(most);
}

}  // namespace

std::string tune_table(const NetworkTuner& tuner, const Peaks& peaks, int columns, size_t rows) {
  std::vector<size_t> order(tuner.task_count());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return line_of(tuner, tuner.row(a), peaks).share > line_of(tuner, tuner.row(b), peaks).share;
  });
  const size_t shown = rows > 0 ? std::min(rows, order.size()) : order.size();
  const int width = std::max(kLeastName, std::min(columns - kNumbersWidth, widest(tuner)));
  std::string text = column("kernel", width) + formatted(" calls     %% %10s %6s %9s %6s %9s\n",
                                                         "best ms", "x", "GFLOP/s", "peak%",
                                                         "trials");
  for (size_t i = 0; i < shown; ++i) text += text_of(tuner, order[i], peaks, width);
  if (shown < order.size()) text += "... and " + std::to_string(order.size() - shown) + " more\n";
  return text + totals(tuner);
}

Json tune_json(const NetworkTuner& tuner, size_t task, const Peaks& peaks, bool curve) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  Json::Object out{{"task", row.task->key},        {"name", row.task->name},
                   {"calls", row.task->calls},     {"seconds", row.best},
                   {"default_seconds", row.first}, {"share", l.share},
                   {"gflops", l.gflops},           {"peak", l.peak},
                   {"trials", row.measured},       {"known", row.known},
                   {"illegal", row.illegal},       {"space", row.space}};
  if (curve) out.push_back({"curve", json_array(tuner.curve(task))});
  if (!row.error.empty()) out.push_back({"error", row.error});
  return out;
}

std::string rest_text(const TuneBudget& budget, int trials, int done, double searched) {
  double rest = budget.left();
  if (trials > 0 && done > 0 && searched > 0)
    rest = std::min(rest, std::max(0, trials - done) * searched / done);
  return std::isfinite(rest) ? format_seconds(std::max(0.0, rest)) + " left" : "";
}

TuneView::TuneView(Console& console, const NetworkTuner& tuner, const Peaks& peaks,
                   const TuneBudget& budget, int trials, bool quiet)
    : console_(console),
      tuner_(tuner),
      peaks_(peaks),
      budget_(budget),
      trials_(trials),
      quiet_(quiet),
      start_(budget.now()) {
  if (console.terminal && !console.json) ticker_ = std::thread([this] { tick(); });
}

std::string TuneView::status() const {
  const double searched = budget_.now() - start_;
  std::string text = format_seconds(budget_.now());
  if (budget_.limited()) text += " of " + format_seconds(budget_.limit());
  if (const std::string rest = rest_text(budget_, trials_, measured_, searched); !rest.empty())
    text += ", " + rest;
  if (measured_ > 0)
    text += formatted(", %d trials, %.1f a second", measured_,
                      measured_ / std::max(searched, 1e-9));
  return text + (at_work_.empty() ? "" : "  " + at_work_);
}

void TuneView::redraw(const std::string& table) {
  const int columns = terminal_columns(STDERR_FILENO);
  console_.screen << "\r\033[K";
  if (!table.empty() || done_) {
    if (drawn_ > 0) console_.screen << "\033[" << drawn_ << "A\033[J";
    console_.err << table;
    drawn_ = static_cast<int>(std::ranges::count(table, '\n'));
  }
  if (!done_) console_.err << fit(status(), (columns > 0 ? columns : 80) - 1);
  console_.err.flush();
  shown_ = true;
}

void TuneView::tick() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kTableRedraw, [this] { return done_; })) redraw("");
}

void TuneView::begins(size_t task) {
  const std::lock_guard lock(mutex_);
  at_work_ = tuner_.row(task).task->name;
}

void TuneView::ends(size_t task) {
  if (console_.json && quiet_) return;
  const std::lock_guard lock(mutex_);
  measured_ = tuner_.measured();
  if (console_.json) {
    write_json_line(console_, Json::Object{{"round", tune_json(tuner_, task, peaks_)},
                                           {"network_seconds", tuner_.network_seconds()},
                                           {"trials", tuner_.measured()},
                                           {"elapsed", budget_.now()},
                                           {"searched", budget_.now() - start_},
                                           {"measuring", tuner_.measuring_seconds()}});
    console_.out.flush();
  } else if (console_.terminal) {
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 8;
    redraw(tune_table(tuner_, peaks_, known ? size.ws_col : 80, (known ? size.ws_row : 24u) - 6u));
  } else {
    const std::string elapsed = formatted("%8s  ", format_seconds(budget_.now()).c_str());
    console_.err << elapsed
                 << text_of(tuner_, task, peaks_,
                            kPlainColumns - kNumbersWidth - static_cast<int>(elapsed.size()));
    console_.err.flush();
  }
}

void TuneView::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    if (shown_) redraw("");
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
}

}  // namespace tw
