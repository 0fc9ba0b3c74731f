// Transfers knowledge from records to kernels without records: the point of a record is tried in
// the space of a kernel of the same family and a similar shape.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/log.h"
#include "autotune/space.h"

namespace tw {

// The family of kernels that may learn from each other: one kernel family with the same number
// types. "conv", "conv:bf16", "matmul:i32,i8,u8", "matmul:tf32".
std::string family_of(const LoweredGroup& lowered);

// The similarity of kernels: log2 of the operations, and of the bytes that are read, written and
// constant (symbols as 1)
struct KernelShape {
  std::string family;
  std::vector<double> sizes;
};
KernelShape shape_of(const LoweredGroup& lowered);
// The sum of the differences; infinite for different families
double distance(const KernelShape& a, const KernelShape& b);

// Record::about as values: "conv 27.85,19.61,19.61,17.17 direct.template{rows=14, ..} default"
struct RecordNote {
  KernelShape shape;
  // Space::print; "": not a point of the space
  std::string point;
  bool by_default = false;
  // The record's task, which is not in the text
  std::string task = {};
};
std::string print(const RecordNote& note);
std::optional<RecordNote> parse_note(std::string_view text);  // empty: the text has another form

// For every kernel measured on the target with this many threads, a note of its best schedule: the
// default one, unless another one gains. Kernels with only the default measured have no note.
Expected<std::vector<RecordNote>> notes_of(TuningLog& log, const std::string& target, int threads);

// The notes for the most similar kernels, the nearest first, one for each point, none farther than
// kFarthest
constexpr double kFarthest = 3;
std::vector<RecordNote> nearest_notes(const std::vector<RecordNote>& notes,
                                      const KernelShape& shape, size_t most);

}  // namespace tw
