#include "cli/progress.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <ostream>

#include "cli/text/formatted.h"
#include "cli/text/text_width.h"
#include "driver/compile/compile.h"

namespace tw {
namespace {
constexpr std::chrono::milliseconds kRedraw{100};

// 1234567 -> "1.23" and unit index 2
std::string scaled(double value, const std::array<const char*, 5>& units) {
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return formatted("%.*f%s", decimals, value, units[unit]);
}
}  // namespace

Progress::Progress(Console& console) : console_(console), silent_(console.json) {
  if (!silent_ && console.terminal) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() {
  end();
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
}

void Progress::begin(const std::string& stage) {
  end();
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  detail_.clear();
  start_ = Clock::now();
}

void Progress::detail(const std::string& text) {
  const std::lock_guard lock(mutex_);
  detail_ = text;
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  if (stage_.empty()) return;
  if (!silent_) {
    erase_line();
    console_.err << line() << "\n";
    console_.err.flush();
  }
  stage_.clear();
}

void Progress::print(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!silent_) erase_line();
  console_.err << text;
  console_.err.flush();
}

std::string Progress::line() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return formatted("%-10s %8s  %s", stage_.c_str(), format_seconds(seconds).c_str(),
                   format_bytes(peak_memory()).c_str());
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kRedraw, [this] { return done_; })) {
    if (stage_.empty()) continue;
    erase_line();
    const int columns = terminal_columns(STDERR_FILENO);
    console_.err << fit(line() + (detail_.empty() ? "" : "  " + detail_),
                        (columns > 0 ? columns : 80) - 1);
    console_.err.flush();
  }
}

void Progress::erase_line() {
  if (console_.terminal) console_.screen << "\r\033[K";
}

std::string format_seconds(double seconds) {
  if (seconds < 60) return formatted(seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  return formatted("%d min %02d s", static_cast<int>(seconds / 60),
                   static_cast<int>(std::fmod(seconds, 60)));
}

std::string format_bytes(uint64_t bytes) {
  return scaled(static_cast<double>(bytes), {" B", " KB", " MB", " GB", " TB"});
}

std::string format_count(double count) { return scaled(count, {"", " K", " M", " G", " T"}); }

}  // namespace tw
