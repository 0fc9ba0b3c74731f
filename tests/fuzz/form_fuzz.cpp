// libFuzzer over the text and byte forms that the program reads: any bytes give an error, or a
// value whose printed form reads as the same value. TW_FORM names the function of the form,
// TW_MUTATOR the function that changes inputs.
#include <llvm/ADT/StringExtras.h>
#include <sys/mman.h>
#include <unistd.h>

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
#include "driver/run/tensors.h"
#include "frontend/budget.h"
#include "frontend/frontend.h"
#include "frontend/intrinsic_library.h"
#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"
#include "ir/size_ends.h"
#include "ir/target.h"
#include "packager/artifact.h"
#include "packager/elf_view.h"
#include "tests/fuzz/mutators.h"
#include "tests/fuzz/run_small.h"

namespace tw {
namespace {

// Returns the value, or nullopt instead of an error.
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

// Gives bytes a path, for functions that read only files.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", 0)) {
    TW_CHECK(descriptor_ >= 0 && write(descriptor_, bytes.data(), bytes.size()) ==
                                     static_cast<ssize_t>(bytes.size()),
             "no memory for a file of {0} bytes", bytes.size());
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

const Target& usual_target() {
  static const Target target = llvm::cantFail(load_target("x86-64-v3", {TW_CONFIGS}));
  return target;
}

[[maybe_unused]] void target(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_target(std::string(t), "fuzz.yaml"); };
  round_trip(value_of(read(text)), read, [](const Target& x) { return print(x); });
}

[[maybe_unused]] void intrinsics(std::string_view text) {
  value_of(parse_intrinsics(std::string(text), "fuzz.yaml"));
}

[[maybe_unused]] void budget(std::string_view text) {
  const MemoryFile file(text);
  value_of(load_budget(file.path(), true));
}

// Skips a text that ends like a file's name, since the program would open that file.
[[maybe_unused]] void inputs(std::string_view text) {
  if (is_input_forms_file(std::string(text))) return;
  const std::optional<InputForms> forms = value_of(parse_input_forms(std::string(text)));
  if (!forms) return;
  for (const auto& [name, form] : forms->of)
    for (const int64_t side : {int64_t{1}, int64_t{7}, kMostExtent})
      place_of(form, form.size ? (*form.size)[0] : 1, form.size ? (*form.size)[1] : side, side, 3);
}

[[maybe_unused]] void graph(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_graph(t, "fuzz"); };
  const std::optional<Graph> g = value_of(read(text));
  if (g && holds(verify(*g))) round_trip(g, read, [](const Graph& x) { return print(x); });
}

// Reads a kernel and, behind it, a schedule as in tests/golden/schedule. All legal steps must leave
// a kernel that verifies.
[[maybe_unused]] void schedule(std::string_view text) {
  constexpr std::string_view kSchedule = "// --- schedule\n", kExpect = "// --- expect\n";
  text = text.substr(0, text.find(kExpect));
  const size_t at = text.find(kSchedule);
  const auto read = [](std::string_view t) { return parse_kernel(t, "fuzz"); };
  const std::optional<Kernel> kernel = value_of(read(text.substr(0, at)));
  if (!kernel || !holds(verify(*kernel))) return;
  round_trip(kernel, read, [](const Kernel& x) { return print(x); });
  fuzz::check_really_within(*kernel, Tables::unknown);
  if (at == std::string_view::npos) return;
  const auto steps = [](std::string_view t) { return parse_schedule(t, "fuzz"); };
  const std::optional<Schedule> s = value_of(steps(text.substr(at + kSchedule.size())));
  round_trip(s, steps, [](const Schedule& x) { return print(x); });
  if (!s) return;
  if (const std::optional<Kernel> made = value_of(apply(*kernel, *s))) {
    const std::string problem = error_text(verify(*made));
    TW_CHECK(problem.empty(), "a schedule left a kernel that does not verify: {0}", problem);
    fuzz::check_really_within(*made, Tables::unknown);
  }
}

// Reads a task and, behind it, lines of a log. Applies each schedule to the task's kernel, as a
// compile would.
[[maybe_unused]] void log(std::string_view text) {
  constexpr std::string_view kRecords = "// --- records\n";
  const size_t at = text.find(kRecords);
  const std::optional<ParsedTask> task = value_of(parse_task(text.substr(0, at), "fuzz"));
  if (!task || at == std::string_view::npos) return;
  for (const llvm::StringRef line : llvm::split(llvm::StringRef(text).substr(at), "\n")) {
    const std::optional<Record> record = value_of(parse_record(line, "fuzz"));
    if (!record || !holds(check(*record))) continue;
    const std::optional<Algorithm> algorithm = algorithm_from_name(record->algorithm);
    const std::optional<Schedule> steps = value_of(parse_schedule(record->schedule, "fuzz"));
    if (!algorithm || !steps) continue;
    const std::optional<Task> lowered = value_of(lower_task(*task, usual_target(), *algorithm));
    if (!lowered) return;
    for (const Variant& variant : lowered->variants)
      if (const auto made = value_of(apply(variant.lowered.kernel, *steps, &usual_target())))
        fuzz::check_really_within(*made, Tables::ours);
  }
}

[[maybe_unused]] void task(std::string_view text) {
  const auto read = [](std::string_view t) { return parse_task(t, "fuzz"); };
  if (const std::optional<ParsedTask> parsed = value_of(read(text)))
    if (const auto again = value_of(print_task(parsed->graph, parsed->group)))
      value_of(read(*again));
}

// A good bundle has the size, the names and the one program that the writer would give it.
[[maybe_unused]] void bundle(std::string_view bytes) {
  std::vector<TarMember> members;
  if (!check_bundle(bytes, "fuzz", &members).good()) return;
  TW_CHECK(tar_bytes(members) == bytes.size(), "a good bundle of another size");
  for (const TarMember& member : members)
    TW_CHECK(bad_member_name(member.name).empty(), "a good bundle with a bad name");
  for (size_t m = 1; m < members.size(); ++m)
    TW_CHECK(!members[m].executable || m == 1, "a good bundle with a second program");
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
  const TensorSpec spec{.name = "x", .dtype = DType::f32, .dims = {var("n"), Expr(3)}};
  if (const auto members = value_of(parse_npz(std::as_bytes(std::span(bytes)), "fuzz")))
    for (const auto& [name, tensor] : *members) {
      Symbols symbols;
      holds(bind_shape(spec, tensor, name, symbols));
    }
  value_of(parse_npy(std::as_bytes(std::span(bytes)), "fuzz"));
}

// Reads a library, or bytes that claim to be one, as far as `inspect` and `run` read it before they
// have checked its hashes.
[[maybe_unused]] void library(std::string_view bytes) {
  const MemoryFile file(bytes);
  value_of(is_artifact(file.path()));
  value_of(read_manifest(file.path()));
  if (const auto text = value_of(read_manifest(file.path(), Integrity::trust)))
    value_of(parse_manifest(*text, "fuzz"));
  const auto view = value_of(ElfView::parse(bytes, "fuzz"));
  if (!view) return;
  value_of(view->dynamic_symbols());
  value_of(view->global_symbols());
}

}  // namespace
}  // namespace tw

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return tw::fuzz::TW_MUTATOR(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::TW_FORM({reinterpret_cast<const char*>(data), size});
  return 0;
}
