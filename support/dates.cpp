#include "support/dates.h"

#include <llvm/Support/FormatVariadic.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace tw {

std::string date_text(int64_t time) {
  constexpr int64_t kDay = 86400, kFarthest = 200000;  // in days; all years have four digits
  const int64_t days = std::clamp(time >= 0 ? time / kDay : -((-time + kDay - 1) / kDay),
                                  -kFarthest, kFarthest);
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  return llvm::formatv("{0,0+4}-{1,0+2}-{2,0+2}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()))
      .str();
}

std::optional<int64_t> date_from_text(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0;
  auto number = [&](size_t at, size_t length, auto& value) {
    const char* end = text.data() + at + length;
    return std::from_chars(text.data() + at, end, value).ptr == end;
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' || !number(0, 4, year) ||
      !number(5, 2, month) || !number(8, 2, day))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count() * int64_t{86400};
}

}  // namespace tw
