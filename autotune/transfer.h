// What records teach about kernels that have none: the point of a record, tried in the space of a kernel of the same family and a shape like it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/space.h"

namespace tw {

// What a kernel is like: log2 of its operations and of the bytes that it reads, writes and has constant (symbols as 1).
struct KernelShape {
  std::string family;
  std::vector<double> sizes;
};
KernelShape shape_of(const LoweredGroup& lowered);
double distance(const KernelShape& a, const KernelShape& b);   // sum of the differences; infinite: not of one family

// Record::about: "conv 27.85,19.61,19.61,17.17 direct.template{rows=14, ..}".
struct RecordNote {
  KernelShape shape;
  std::string point;                                           // Space::print
};
std::string print(const RecordNote& note);
std::optional<RecordNote> parse_note(std::string_view text);   // nothing: not of this form

// Of notes, the best one a kernel: points for a kernel like theirs, the nearest first, none farther than kFarthest.
constexpr double kFarthest = 3;
std::vector<std::string> nearest_points(const std::vector<RecordNote>& notes, const KernelShape& shape, size_t most);

}  // namespace tw
