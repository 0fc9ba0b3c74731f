#include "cli/text/became.h"

#include <cmath>

namespace tw {

const char* became_name(Became became) {
  switch (became) {
    case Became::not_tried: return "not-tried";
    case Became::default_kept: return "default-kept";
    case Became::better_found: return "better-found";
    case Became::from_log: return "from-log";
    case Became::from_like_it: return "from-like-it";
    case Became::predicted: return "predicted";
    case Became::failed: return "failed";
  }
  TW_UNREACHABLE("bad story");
}

const char* became_text(Became became) {
  switch (became) {
    case Became::not_tried: return "not tried";
    case Became::default_kept: return "default kept";
    case Became::better_found: return "better point found";
    case Became::from_log: return "taken from the log";
    case Became::from_like_it: return "taken from a kernel like it";
    case Became::predicted: return "predicted";
    case Became::failed: return "failed";
  }
  TW_UNREACHABLE("bad story");
}

std::string to_string(const KernelStory& story) {
  std::string text = became_text(story.became);
  if (story.became == Became::default_kept)
    text += " after " + std::to_string(story.trials) + (story.trials == 1 ? " trial" : " trials");
  return text;
}

KernelStory story_of(const NetworkTuner::Row& row) {
  const int tried = row.measured + row.known;
  if (!row.error.empty()) return {Became::failed, tried};
  if (!std::isfinite(row.best) || tried <= 1) return {Became::not_tried, tried};
  if (!is_gain(row.best, row.first)) return {Became::default_kept, tried};
  return {row.from_log ? Became::from_log : Became::better_found, tried};
}

KernelStory story_of(const Pin& pin, int64_t since) {
  if (pin.transferred) return {Became::from_like_it, 0};
  if (pin.predicted) return {Became::predicted, 0};
  if (pin.tuned)
    return {since > 0 && pin.time >= since ? Became::better_found : Became::from_log, 0};
  return {pin.trials > 0 ? Became::default_kept : Became::not_tried, pin.trials};
}

}  // namespace tw
