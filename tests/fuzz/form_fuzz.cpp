// libFuzzer over the text and byte forms that the program reads: any bytes give an error, or a value
// whose form reads as the same form again. TW_FORM is the function of one form.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "autotune/lock.h"
#include "autotune/measure/message.h"
#include "autotune/record.h"
#include "autotune/task_text.h"
#include "driver/bundle/bundle.h"
#include "driver/compile/manifest.h"
#include "driver/run/npz.h"
#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"
#include "ir/target.h"

namespace tw {
namespace {

// The value, or nothing where it was an error.
template <class T>
std::optional<T> value_of(Expected<T> read) {
  if (read) return std::move(*read);
  llvm::consumeError(read.takeError());
  return std::nullopt;
}

template <class T, class Read, class Print>
void round_trip(const std::optional<T>& value, const Read& read, const Print& print_one) {
  if (!value) return;
  const auto first = print_one(*value);
  Expected<T> again = read(first);
  const std::string problem = again ? "" : error_text(again.takeError());
  TW_CHECK(problem.empty(), "what was printed is not read: {0}", problem);
  TW_CHECK(print_one(*again) == first, "read again, it prints as something else");
}

bool holds(Error error) {
  if (!error) return true;
  llvm::consumeError(std::move(error));
  return false;
}

[[maybe_unused]] void graph(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_graph(t, "fuzz"); };
  const std::optional<Graph> g = value_of(read(text));
  if (g && holds(verify(*g))) round_trip(g, read, [](const Graph& x) { return print(x); });
}

// A kernel, and behind it a schedule as in tests/golden/schedule: whatever step is legal leaves a
// kernel that verifies.
[[maybe_unused]] void schedule(std::string_view text) {
  constexpr std::string_view kSchedule = "// --- schedule\n", kExpect = "// --- expect\n";
  text = text.substr(0, text.find(kExpect));
  const size_t at = text.find(kSchedule);
  const auto read = [](std::string_view t) { return parse_kernel(t, "fuzz"); };
  const std::optional<Kernel> kernel = value_of(read(text.substr(0, at)));
  if (!kernel || !holds(verify(*kernel))) return;
  round_trip(kernel, read, [](const Kernel& x) { return print(x); });
  if (at == std::string_view::npos) return;
  const auto steps = [](std::string_view t) { return parse_schedule(t, "fuzz"); };
  const std::optional<Schedule> s = value_of(steps(text.substr(at + kSchedule.size())));
  round_trip(s, steps, [](const Schedule& x) { return print(x); });
  if (!s) return;
  if (const std::optional<Kernel> made = value_of(apply(*kernel, *s))) {
    const std::string problem = error_text(verify(*made));
    TW_CHECK(problem.empty(), "a schedule left a kernel that does not verify: {0}", problem);
  }
}

[[maybe_unused]] void task(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_task(t, "fuzz"); };
  if (const std::optional<ParsedTask> parsed = value_of(read(text)))
    if (const auto again = value_of(print_task(parsed->graph, parsed->group)))
      value_of(read(*again));
}

// What is good is what the writer makes of the members.
[[maybe_unused]] void bundle(std::string_view bytes) {
  std::vector<TarMember> members;
  if (!check_bundle(bytes, "fuzz", &members).good()) return;
  TW_CHECK(tar_bytes(members) == bytes.size(), "a good bundle of another size");
  for (const TarMember& member : members)
    TW_CHECK(bad_member_name(member.name).empty(), "a good bundle with a bad name");
}

[[maybe_unused]] void manifest(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_manifest(std::string(t), "fuzz"); };
  round_trip(value_of(read(text)), read, [](const Manifest& x) { return print(x); });
}

[[maybe_unused]] void record(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_record(t, "fuzz"); };
  const std::optional<Record> r = value_of(read(text));
  if (r && holds(check(*r))) round_trip(r, read, [](const Record& x) { return print(x); });
}

[[maybe_unused]] void lock(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_lock(t, "fuzz"); };
  round_trip(value_of(read(text)), read, [](const Lock& x) { return print(x); });
}

[[maybe_unused]] void job(std::string_view bytes) {
  const auto write = [](const auto& x) { return to_bytes(x); };
  round_trip(value_of(job_from_bytes(bytes)), job_from_bytes, write);
  round_trip(value_of(result_from_bytes(bytes)), result_from_bytes, write);
}

[[maybe_unused]] void arrays(std::string_view bytes) {
  value_of(parse_npz(std::as_bytes(std::span(bytes)), "fuzz"));
  value_of(parse_npy(std::as_bytes(std::span(bytes)), "fuzz"));
}

}  // namespace
}  // namespace tw

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::TW_FORM({reinterpret_cast<const char*>(data), size});
  return 0;
}
