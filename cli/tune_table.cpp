#include "cli/tune_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>

#include "cli/progress.h"
#include "cli/text/formatted.h"

namespace tw {
namespace {

// Columns of a line behind the name: all, and without the gain
constexpr int kWideNumbers = 80, kNarrowNumbers = 60, kLeastName = 12;
constexpr int kWide = kWideNumbers + kLeastName;
constexpr size_t kNamedToWin = 3;  // kernels that the line of what could be won names
constexpr std::chrono::milliseconds kTableRedraw{200};
constexpr double kLeastToWin = 0.01;  // a smaller share of the network's time is not worth a word
constexpr int kIdleTrials = 64;       // after as many without a gain, more of them promise little

struct Line {
  double share = 0, ms = 0, gflops = 0, peak = 0, gain = 0;
  double left = -1;  // share of its time that is above the roof; below 0: not known
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
  if (row.roof > 0) line.left = std::max(0.0, 1 - row.roof / row.best);
  return line;
}

// "   1.20 (1.15..1.26)", 20 columns; without the interval where it was not measured in turns
std::string gain_text(const NetworkTuner::Row& row, const Line& line) {
  if (!row.gain || !std::isfinite(row.gain->interval.high))
    return column(formatted(" %6.2f", line.gain), 20);
  return column(formatted(" %6.2f (%.2f..%.2f)", row.gain->ratio, row.gain->interval.low,
                          row.gain->interval.high),
                20);
}

std::string text_of(const NetworkTuner& tuner, size_t task, const Peaks& peaks, int columns,
                    int width) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  const bool wide = columns >= kWide;
  const std::string calls = formatted(" %4lldx", static_cast<long long>(row.task->calls)),
                    story = "  " + to_string(story_of(row)) + "\n";
  const std::string name = column(row.task->name, width) + calls;
  if (l.ms <= 0) return name + std::string(wide ? 44 : 24, ' ') + story;
  return name + formatted(" %5.1f %10.4f", 100 * l.share, l.ms) + (wide ? gain_text(row, l) : "") +
         (l.left < 0 ? std::string(7, ' ') : formatted(" %6.1f", 100 * l.left)) + story;
}

std::string kernels_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " kernel" : " kernels");
}

// A summary of the whole network, as far as it is known
std::string totals(const NetworkTuner& tuner) {
  const size_t count = tuner.task_count(), reached = tuner.reached();
  const double now = tuner.network_seconds(), first = tuner.first_seconds();
  return (reached == count ? "all " + kernels_text(count)
                           : std::to_string(reached) + " of " + kernels_text(count)) +
         ": " + formatted("%.4f ms", now * 1e3) +
         (first > 0 ? formatted(", by default %.4f ms", first * 1e3) : "") + ", " +
         std::to_string(tuner.measured()) + " trials\n" + to_string(shares_of(tuner)) + "\n";
}

std::string why_text(const ToWin& one) {
  switch (one.outlook) {
    case Outlook::more_trials: return std::to_string(one.more) + " more trials may find it";
    case Outlook::idle: return "none of its last " + std::to_string(one.idle) + " trials gained";
    case Outlook::exhausted: return "all of its space was tried";
  }
  TW_UNREACHABLE("an outlook");
}

const char* outlook_name(Outlook outlook) {
  switch (outlook) {
    case Outlook::more_trials: return "more-trials";
    case Outlook::idle: return "idle";
    case Outlook::exhausted: return "exhausted";
  }
  TW_UNREACHABLE("an outlook");
}

int widest(const NetworkTuner& tuner) {
  size_t most = 0;
  for (size_t i = 0; i < tuner.task_count(); ++i)
    most = std::max(most, tuner.row(i).task->name.size());
  return static_cast<int>(most);
}

}  // namespace

std::array<StoryShare, kBecameCount> shares_of(const NetworkTuner& tuner) {
  std::array<StoryShare, kBecameCount> shares;
  const double network = tuner.network_seconds();
  for (size_t i = 0; i < tuner.task_count(); ++i) {
    const NetworkTuner::Row row = tuner.row(i);
    StoryShare& share = shares[static_cast<size_t>(story_of(row).became)];
    ++share.kernels;
    if (std::isfinite(row.best) && network > 0)
      share.time += static_cast<double>(row.task->calls) * row.best / network;
  }
  return shares;
}

std::string to_string(const std::array<StoryShare, kBecameCount>& shares) {
  std::string text;
  for (size_t i = 0; i < shares.size(); ++i)
    if (shares[i].kernels > 0)
      text += (text.empty() ? "" : "; ") + std::string(became_text(static_cast<Became>(i))) + ": " +
              kernels_text(shares[i].kernels) +
              formatted(", %.1f %% of the time", 100 * shares[i].time);
  return text;
}

double least_seconds(const NetworkTuner& tuner) {
  double sum = 0;
  for (size_t i = 0; i < tuner.task_count(); ++i) {
    const NetworkTuner::Row row = tuner.row(i);
    if (!std::isfinite(row.best)) continue;
    if (row.roof <= 0) return 0;
    sum += static_cast<double>(row.task->calls) * std::min(row.roof, row.best);
  }
  return sum;
}

std::vector<ToWin> to_win(const NetworkTuner& tuner) {
  const double network = tuner.network_seconds();
  std::vector<ToWin> out;
  for (size_t i = 0; i < tuner.task_count(); ++i) {
    const NetworkTuner::Row row = tuner.row(i);
    if (row.roof <= 0 || !std::isfinite(row.best) || network <= 0) continue;
    const double seconds = static_cast<double>(row.task->calls) * (row.best - row.roof);
    if (seconds < kLeastToWin * network) continue;
    ToWin one{i, seconds / network, 0, row.idle, Outlook::more_trials};
    if (row.exhausted) one.outlook = Outlook::exhausted;
    else if (row.idle >= kIdleTrials) one.outlook = Outlook::idle;
    else one.more = kIdleTrials - row.idle;
    out.push_back(one);
  }
  std::ranges::stable_sort(out, std::greater(), &ToWin::share);
  return out;
}

std::string to_win_text(const NetworkTuner& tuner) {
  const double now = tuner.network_seconds(), least = least_seconds(tuner);
  if (least <= 0 || now <= 0) return "";
  std::string text = formatted(
      "at most %.0f %% could still be won: at this machine's peaks of arithmetic and memory the "
      "same sums take %.4f ms",
      100 * (1 - least / now), least * 1e3);
  const std::vector<ToWin> all = to_win(tuner);
  for (size_t i = 0; i < std::min(all.size(), kNamedToWin); ++i)
    text += (i == 0 ? "; most in " : ", ") + tuner.row(all[i].task).task->name +
            formatted(" %.0f %% (", 100 * all[i].share) + why_text(all[i]) + ")";
  return text;
}

std::string tune_table(const NetworkTuner& tuner, const Peaks& peaks, int columns, size_t rows) {
  std::vector<size_t> order(tuner.task_count());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return line_of(tuner, tuner.row(a), peaks).share > line_of(tuner, tuner.row(b), peaks).share;
  });
  const size_t shown = rows > 0 ? std::min(rows, order.size()) : order.size();
  const bool wide = columns >= kWide;
  const int width = std::max(
      kLeastName, std::min(columns - (wide ? kWideNumbers : kNarrowNumbers), widest(tuner)));
  std::string text = column("kernel", width) + " calls     %" + formatted(" %10s", "best ms") +
                     (wide ? formatted(" %6s %-12s", "x", "(interval)") : "") +
                     "  left%  schedule\n";
  for (size_t i = 0; i < shown; ++i) text += text_of(tuner, order[i], peaks, columns, width);
  if (shown < order.size()) text += "... and " + std::to_string(order.size() - shown) + " more\n";
  return text + totals(tuner);
}

Json tune_json(const NetworkTuner& tuner, size_t task, const Peaks& peaks, bool curve) {
  const NetworkTuner::Row row = tuner.row(task);
  const Line l = line_of(tuner, row, peaks);
  Json::Object out{{"task", row.task->key},
                   {"name", row.task->name},
                   {"calls", row.task->calls},
                   {"seconds", row.best},
                   {"default_seconds", row.first},
                   {"share", l.share},
                   {"gflops", l.gflops},
                   {"peak", l.peak},
                   {"trials", row.measured},
                   {"known", row.known},
                   {"illegal", row.illegal},
                   {"space", row.space},
                   {"became", became_name(story_of(row).became)}};
  if (row.roof > 0) out.push_back({"roof_seconds", row.roof}), out.push_back({"left", l.left});
  if (row.gain)
    out.push_back({"gain", Json::Object{{"ratio", row.gain->ratio},
                                        {"low", row.gain->interval.low},
                                        {"high", row.gain->interval.high}}});
  if (curve) out.push_back({"curve", json_array(tuner.curve(task))});
  if (!row.error.empty()) out.push_back({"error", row.error});
  return out;
}

Json to_win_json(const NetworkTuner& tuner) {
  Json::Array list;
  for (const ToWin& one : to_win(tuner))
    list.push_back(Json::Object{{"task", tuner.row(one.task).task->key},
                                {"share", one.share},
                                {"outlook", outlook_name(one.outlook)},
                                {"more_trials", one.more},
                                {"idle", one.idle}});
  return list;
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
                 << text_of(tuner_, task, peaks_, kNarrowNumbers,
                            kPlainColumns - kNarrowNumbers - static_cast<int>(elapsed.size()));
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
