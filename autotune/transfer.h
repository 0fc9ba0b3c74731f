// What records teach about kernels that have none: the point of a record, tried in the space of a
// kernel of the same family and a shape like it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/log.h"
#include "autotune/space.h"

namespace tw {

// Kernels that may learn from each other: of one family, and of the same numbers. "conv",
// "conv:bf16", "matmul:i32,i8,u8", "matmul:tf32".
std::string family_of(const LoweredGroup& lowered);

// What a kernel is like: log2 of its operations and of the bytes that it reads, writes and has
// constant (symbols as 1).
struct KernelShape {
  std::string family;
  std::vector<double> sizes;
};
KernelShape shape_of(const LoweredGroup& lowered);
// Sum of the differences; infinite: not of one family
double distance(const KernelShape& a, const KernelShape& b);

// Record::about: "conv 27.85,19.61,19.61,17.17 direct.template{rows=14, ..} default".
struct RecordNote {
  KernelShape shape;
  // Space::print; "": none of the space
  std::string point;
  // It is the kernel's default schedule
  bool by_default = false;
  // The record's, which is not in the text
  std::string task = {};
};
std::string print(const RecordNote& note);
std::optional<RecordNote> parse_note(std::string_view text);  // nothing: not of this form

// Of every kernel measured on the target with so many threads what is best for it: its default
// schedule, unless another one gains. None of a kernel of which the default is all that was
// measured.
Expected<std::vector<RecordNote>> notes_of(TuningLog& log, const std::string& target, int threads);

// Those for a kernel like theirs, of each point one: the nearest first, none farther than
// kFarthest.
constexpr double kFarthest = 3;
std::vector<RecordNote> nearest_notes(const std::vector<RecordNote>& notes,
                                      const KernelShape& shape, size_t most);

}  // namespace tw
