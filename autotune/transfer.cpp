#include "autotune/transfer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/kernel/work.h"

namespace tw {

KernelShape shape_of(const LoweredGroup& lowered) {
  double bytes[4] = {0, 0, 0, 0};
  for (const Buffer& b : lowered.kernel.buffers) {
    double size = dtype_bytes(b.dtype);
    for (const Expr& extent : b.shape) size *= static_cast<double>(as_const(extent).value_or(1));
    bytes[static_cast<size_t>(b.role)] += size;
  }
  const int64_t flops = eval_int(count_work(lowered.kernel).flops, [](std::string_view) { return int64_t{1}; });
  KernelShape shape{family_name(lowered.family), {std::log2(static_cast<double>(flops) + 1)}};
  for (const BufferRole role : {BufferRole::input, BufferRole::output, BufferRole::constant}) shape.sizes.push_back(std::log2(bytes[static_cast<size_t>(role)] + 1));
  return shape;
}

double distance(const KernelShape& a, const KernelShape& b) {
  if (a.family != b.family || a.sizes.size() != b.sizes.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.sizes.size(); ++i) sum += std::abs(a.sizes[i] - b.sizes[i]);
  return sum;
}

std::string print(const RecordNote& note) {
  std::string text = note.shape.family;
  for (size_t i = 0; i < note.shape.sizes.size(); ++i) text += (i ? "," : " ") + llvm::formatv("{0:f2}", note.shape.sizes[i]).str();
  return text + " " + note.point;
}

std::optional<RecordNote> parse_note(std::string_view text) {
  const size_t first = text.find(' '), second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  RecordNote note{{std::string(text.substr(0, first)), {}}, std::string(text.substr(second + 1))};
  for (const char *at = text.data() + first + 1, *end = text.data() + second; at < end; ++at) {
    double size = 0;
    const auto parsed = std::from_chars(at, end, size);
    if (parsed.ec != std::errc() || !std::isfinite(size) || (parsed.ptr != end && *parsed.ptr != ',')) return std::nullopt;
    note.shape.sizes.push_back(size);
    at = parsed.ptr;
  }
  return note;
}

std::vector<std::string> nearest_points(const std::vector<RecordNote>& notes, const KernelShape& shape, size_t most) {
  std::vector<std::pair<double, const RecordNote*>> near;
  for (const RecordNote& note : notes)
    if (const double d = distance(note.shape, shape); d <= kFarthest) near.push_back({d, &note});
  std::ranges::sort(near, {}, [](const auto& entry) { return std::pair(entry.first, entry.second->point); });   // the same for equal logs
  std::vector<std::string> out;
  for (const auto& [d, note] : near)
    if (out.size() < most && std::ranges::find(out, note->point) == out.end()) out.push_back(note->point);
  return out;
}

}  // namespace tw
