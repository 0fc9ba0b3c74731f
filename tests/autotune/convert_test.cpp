// Data sets whose schedules are of the first language: kernels lowered for a chip.
#include "driver/dataset/convert.h"

#include <doctest/doctest.h>

#include "ir/schedule/constant_stages.h"
#include "tests/ir/graph_testing.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

using test::must;
void must(Error error) {
  if (error) FAIL(error_text(std::move(error)));
}

constexpr const char* kTask = R"(task anchor=0 weights_between=16777216
graph @task() {
  %x0: f32[1, 32, 28, 28]@1:8 = input
  %c1: f32[192, 32, 1, 1] = const #"e0bb2a55c6a36d55"
  %c2: f32[192] = const #"371b49392232d731"
  %v3: f32[1, 192, 28, 28]@1:8 = conv(%x0, %c1, %c2) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
  output %v3 as ""
}
)";
// The weights have a dimension for the taps here, which is one element.
constexpr const char* kKernel =
    R"(kernel @conv(x: in f32[1, 4, 784, 8], w: const f32[12, 4, 1, 8, 16], bias: const f32[192], y: out f32[1, 24, 784, 8]) {
  temp acc: f32[1, 24, 784, 8]
  for an in 1 {
    for ac in 24 {
      for as0 in 784 {
        for al in 8 {
          for rc in 4 reduce {
            for rl in 8 reduce {
              acc: acc[0, ac, as0, al] += x[0, rc, as0, rl] * w[ac // 2, rc, 0, rl, al + ac % 2 * 8] init 0.0
            }
          }
        }
      }
    }
  }
  for n in 1 {
    for c in 24 {
      for s0 in 784 {
        for l in 8 {
          y: y[0, c, s0, l] = acc[0, c, s0, l] + bias[c * 8 + l]
        }
      }
    }
  }
}
)";
constexpr const char* kCopied = R"(schedule {
  split c 2 -> c_t c_r
  split s0 6 shift -> s0_t s0_r
  reorder n s0_t c_t c_r s0_r l
  compute_at acc c_t
  cache_read w acc -> acc_w_pack stack
  compute_at acc_w_pack c_t
  reorder acc_w_pack_3 acc_w_pack_1 acc_w_pack_4
  vectorize acc_w_pack_4
  reorder rc rl acc_ac acc_as0 acc_al
  decompose_reduction acc rc
  vectorize acc_al
  vectorize l
  parallel n
}
)";
constexpr const char* kPlain = "schedule {\n  vectorize l\n}\n";
// An old step on the taps of the weights has no equal.
constexpr const char* kTaps = R"(schedule {
  cache_read w acc -> acc_w_pack stack
  layout acc_w_pack d0 d1 d2 d3 d4 -> [d2, d0, d1, d3, d4]
}
)";

struct Sets {
  TestFolder folder;
  DataSet old = must(DataSet::open(folder / "old.db", sql::Mode::write));
  DataSet made = must(DataSet::open(folder / "new.db", sql::Mode::write));
  int64_t platform = must(old.platform({0, "x86-64-v3", "0123456789abcdef", "a machine", 1}));

  // Adds the task with this kernel and programs, whose times are 1, 2, ... microseconds.
  void add(const std::string& kernel, const std::vector<std::string>& schedules) {
    LearningTask task;
    task.key = "00aa", task.name = "conv", task.kind = "conv", task.network = "mobilenet";
    task.lowered_for = "x86-64-v3", task.text = kTask;
    task.kernel = "00bb", task.kernel_text = kernel;
    must(old.add(task).takeError());
    task = must(old.tasks()).back();
    must(old.set_complete(task.id));
    for (size_t i = 0; i < schedules.size(); ++i) {
      const int64_t id = program_id(task, schedules[i]);
      must(old.add_programs(task.id, {{id, ProgramSource::uniform, schedules[i]}}));
      Label label;
      label.program = id, label.least = label.median = 1e-6 * static_cast<double>(i + 1);
      label.samples = 1;
      must(old.add_labels(platform, {label}));
    }
  }
  ConvertCounts convert() { return must(convert_set(old, made, {{TW_SOURCE_DIR "/configs"}, 1})); }
};

}  // namespace

TEST_CASE("programs of an older language become whole schedules with their labels") {
  Sets sets;
  sets.add(kKernel, {kCopied, kPlain, kTaps});
  const ConvertCounts counts = sets.convert();
  CHECK(counts.tasks == 1);
  CHECK(counts.programs == 2);
  CHECK(counts.lost_tasks == 0);
  CHECK(counts.lost_programs == 1);
  REQUIRE(counts.reasons.size() == 1);
  CHECK(counts.reasons[0].find("has 4 dimensions, not 5") != std::string::npos);

  const LearningTask task = must(sets.made.task(must(sets.made.tasks()).front().id));
  const Kernel kernel = must(parse_kernel(task.kernel_text));
  CHECK(task.complete);
  CHECK(task.kernel == kernel_hash(kernel));
  CHECK(task.kernel_text.find("const f32[192, 32, 1, 1]") != std::string::npos);
  std::map<int64_t, double> times;
  for (const Label& l : must(sets.made.labels(1, task.id, 0))) times[l.program] = l.least;
  for (const LearningProgram& program : must(sets.made.programs(task.id))) {
    CAPTURE(program.schedule);
    CHECK(program.id == program_id(task, program.schedule));
    CHECK(program.schedule.find("  pack acc right -> w constant") != std::string::npos);
    const RunKernel run = must(apply_to_run(kernel, must(parse_schedule(program.schedule))));
    const bool copied = program.schedule.find("cache_read w acc") != std::string::npos;
    CHECK(times.at(program.id) == doctest::Approx(copied ? 1e-6 : 2e-6));
    CHECK((print(run.kernel).find("for acc_w_pack_3 in 16 vector") != std::string::npos) == copied);
  }
}

TEST_CASE("a task whose old kernel is not the definition, arranged, is lost with both lines") {
  Sets sets;
  std::string other = kKernel;
  other.replace(other.find("* w["), 4, "- w[");
  sets.add(other, {kPlain});
  const ConvertCounts counts = sets.convert();
  CHECK(counts.tasks == 0);
  CHECK(counts.lost_tasks == 1);
  CHECK(must(sets.made.tasks()).empty());
  REQUIRE(counts.reasons.size() == 1);
  CHECK(counts.reasons[0].find("differ in more than names: ") != std::string::npos);
  CHECK(counts.reasons[0].find("- w[ac // 2, rc, 0, rl") != std::string::npos);
}
