#include "autotune/transfer.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ir/kernel/work.h"

namespace tw {
namespace {

constexpr std::string_view kDefault = " default";

// The types that the kernel reads or rounds to, without f32: "bf16", "i8,u8", "tf32"
std::string numbers_of(const Kernel& kernel) {
  std::set<std::string> types;
  for (const Buffer& b : kernel.buffers)
    if (b.role == BufferRole::input || b.role == BufferRole::constant)
      types.insert(dtype_name(b.dtype));
  visit(kernel.body, [&](const Stmt& s) {
    const auto* store = as<stmt::Store>(s);
    if (!store) return;
    visit(store->value, [&](const Expr& e) {
      if (is<expr::Cast>(e) && is_float(e.type())) types.insert(dtype_name(e.type()));
      if (as_unary(e, UnaryOp::tf32)) types.insert("tf32");
    });
  });
  types.erase(dtype_name(DType::f32));
  return llvm::join(types, ",");
}

}  // namespace

std::string family_of(const LoweredGroup& lowered) {
  const std::string numbers = numbers_of(lowered.kernel);
  return family_name(lowered.stages) + (numbers.empty() ? "" : ":" + numbers);
}

KernelShape shape_of(const LoweredGroup& lowered) {
  double bytes[4] = {0, 0, 0, 0};
  for (const Buffer& b : lowered.kernel.buffers) {
    double size = dtype_bytes(b.dtype);
    for (const Expr& extent : b.shape) size *= static_cast<double>(as_const(extent).value_or(1));
    bytes[static_cast<size_t>(b.role)] += size;
  }
  const int64_t flops = eval_int(count_work(lowered.kernel).flops,
                                 [](std::string_view) { return int64_t{1}; });
  KernelShape shape{family_of(lowered), {std::log2(static_cast<double>(flops) + 1)}};
  for (const BufferRole role : {BufferRole::input, BufferRole::output, BufferRole::constant})
    shape.sizes.push_back(std::log2(bytes[static_cast<size_t>(role)] + 1));
  return shape;
}

double distance(const KernelShape& a, const KernelShape& b) {
  if (a.family != b.family || a.sizes.size() != b.sizes.size())
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.sizes.size(); ++i) sum += std::abs(a.sizes[i] - b.sizes[i]);
  return sum;
}

std::string print(const RecordNote& note) {
  std::string text = note.shape.family;
  for (size_t i = 0; i < note.shape.sizes.size(); ++i)
    text += (i ? "," : " ") + llvm::formatv("{0:f2}", note.shape.sizes[i]).str();
  return text + (note.point.empty() ? "" : " " + note.point) +
         std::string(note.by_default ? kDefault : "");
}

std::optional<RecordNote> parse_note(std::string_view text) {
  const size_t first = text.find(' '),
               second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  RecordNote note{{std::string(text.substr(0, first)), {}}, "", text.ends_with(kDefault)};
  const std::string_view point = text.substr(second);
  note.point = point.substr(0, point.size() - (note.by_default ? kDefault.size() : 0));
  if (!note.point.empty()) note.point.erase(0, 1);
  for (const char *at = text.data() + first + 1, *end = text.data() + second; at < end; ++at) {
    double size = 0;
    const auto parsed = std::from_chars(at, end, size);
    if (parsed.ec != std::errc() || !std::isfinite(size) ||
        (parsed.ptr != end && *parsed.ptr != ','))
      return std::nullopt;
    note.shape.sizes.push_back(size);
    at = parsed.ptr;
  }
  return note;
}

Expected<std::vector<RecordNote>> notes_of(TuningLog& log, const std::string& target, int threads) {
  std::map<std::pair<std::string, std::string>, Record> defaults;  // by task and kernel
  TW_ASSIGN(std::vector<Record> records, log.best_of_kernels(target, threads, "% default"));
  for (Record& r : records) defaults.emplace(std::pair(r.key.task, r.kernel_hash), std::move(r));
  std::vector<RecordNote> notes;
  TW_ASSIGN(records, log.best_of_kernels(target, threads, "% %"));
  // A kernel with nothing but the default schedule measured has not been searched.
  TW_ASSIGN(const std::vector<Record> searched, log.best_of_kernels(target, threads, "% %", 2));
  std::set<std::pair<std::string, std::string>> looked;
  for (const Record& r : searched) looked.emplace(r.key.task, r.kernel_hash);
  for (const Record& r : records) {
    const auto known = defaults.find({r.key.task, r.kernel_hash});
    if (known != defaults.end() && !looked.contains(known->first)) continue;
    const bool gains = known == defaults.end() ||
                       is_gain(median_seconds(r), median_seconds(known->second));
    std::optional<RecordNote> note = parse_note(gains ? r.about : known->second.about);
    if (!note) continue;
    note->task = r.key.task;
    notes.push_back(std::move(*note));
  }
  return notes;
}

std::vector<RecordNote> nearest_notes(const std::vector<RecordNote>& notes,
                                      const KernelShape& shape, size_t most) {
  std::vector<std::pair<double, const RecordNote*>> near;
  for (const RecordNote& note : notes)
    if (const double d = distance(note.shape, shape); d <= kFarthest) near.push_back({d, &note});
  // Sorted by point too, so that equal logs give equal notes.
  std::ranges::sort(near, {},
                    [](const auto& entry) { return std::pair(entry.first, entry.second->point); });
  std::vector<RecordNote> out;
  for (const auto& [d, note] : near) {
    const auto same = [&](const RecordNote& other) {
      return other.point == note->point && other.by_default == note->by_default;
    };
    if (out.size() < most && std::ranges::none_of(out, same)) out.push_back(*note);
  }
  return out;
}

}  // namespace tw
