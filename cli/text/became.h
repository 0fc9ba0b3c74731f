// The fate of a kernel's schedule, in the words that tune, compile and their JSON share.
#pragma once
#include <string>

#include "autotune/network.h"
#include "program/schedules.h"

namespace tw {

enum class Became : uint8_t {
  not_tried,     // nothing but the default schedule was ever measured
  default_kept,  // other schedules were measured and gain too little
  better_found,  // by this search
  from_log,      // by an earlier search
  from_like_it,  // the record of a kernel like it
  predicted,     // chosen by predictors without measuring
  failed,        // no schedule of it works
};
inline constexpr int kBecameCount = 7;

struct KernelStory {
  Became became = Became::not_tried;
  int trials = 0;  // default_kept: number of schedules that the default is the best of
};

const char* became_name(Became became);           // "default-kept", for programs
const char* became_text(Became became);           // "default kept", for counts
std::string to_string(const KernelStory& story);  // "default kept after 12 trials"

KernelStory story_of(const NetworkTuner::Row& row);
// since: the begin of the compile's own search, before all its records; 0: it made none
KernelStory story_of(const Pin& pin, int64_t since);

}  // namespace tw
