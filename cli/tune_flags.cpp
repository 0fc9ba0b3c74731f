#include "cli/tune_flags.h"

#include <cmath>

#include "cli/default_log.h"

namespace tw {

Expected<std::string> tuning_log(const std::string& flag) {
  if (const std::string path = flag.empty() ? default_log() : flag; !path.empty()) return path;
  return make_error(DiagCode::invalid_argument,
                    "there is no home folder for the tuning log: --log FILE says where it is");
}

std::optional<int> one_shot_from_text(const std::string& text) {
  constexpr std::string_view kWord = "one-shot";
  if (text == kWord) return 0;
  if (!text.starts_with(std::string(kWord) + ":")) return std::nullopt;
  const std::string number = text.substr(kWord.size() + 1);
  if (number.empty() || number.size() > 5 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(number);
}

double seconds_from_text(const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {}
  const std::string unit = text.substr(end);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  return value > 0 && std::isfinite(value) ? value * factor : 0;
}

}  // namespace tw
