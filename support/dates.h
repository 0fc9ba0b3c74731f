// Days as people write them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw {

// Times are seconds since 1970.
std::string date_text(int64_t time);                           // "2026-11-22", UTC
std::optional<int64_t> date_from_text(std::string_view text);  // midnight, UTC

}  // namespace tw
