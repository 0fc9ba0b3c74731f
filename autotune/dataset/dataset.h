// A data set to learn from: tasks, their programs (whole schedules), and the time of each program
// on several platforms. It is an SQLite file that stands alone, as a tuning log is.
//
// A task's kernel is its definition by the algorithm that the task names. Its programs are drawn
// from the spaces of the target that it names, and a program is the same on every platform. A layer
// with another algorithm is another task with the same key. A program's id is the hash of its
// task's key, algorithm and schedule.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "autotune/sql.h"
#include "ir/group.h"

namespace tw {

// The test tasks are whole families of networks that training has not seen. A near task belongs to
// such a family, but is so similar to a training task that it proves nothing.
enum class Split : uint8_t { train, validation, test, near };
inline constexpr int kSplitCount = 4;
const char* split_name(Split split);
std::optional<Split> split_from_name(std::string_view name);

inline constexpr const char* kSampledNetwork = "sampled";  // for tasks that the prior draws

struct LearningTask {
  int64_t id = 0;
  std::string key, name;    // task_key, task_name
  std::string kind;         // the family of its schedule: "conv", "matmul", ..
  std::string network;      // a family of networks ("resnet"), or kSampledNetwork
  std::string lowered_for;  // name of the target
  Algorithm algorithm = Algorithm::direct;
  std::string text;         // print_task
  std::string kernel;       // kernel_hash
  std::string kernel_text;  // as defined
  double flops = 0;
  Split split = Split::train;
  bool complete = false;  // all of its programs are in the file
};

enum class ProgramSource : uint8_t {
  standard,   // the default schedule
  uniform,    // drawn from the space without rules
  search,     // proposed by a search that learns (exploration-based sampling)
  neighbour,  // the best program with one or two knobs changed
  product,    // from the product's own space: the hand-written schedule, with rules
  predicted,  // asked for by a search with a predictor
};
inline constexpr int kProgramSourceCount = 6;
const char* source_name(ProgramSource source);

struct LearningProgram {
  int64_t id = 0;
  ProgramSource source{};
  std::string schedule;  // text
};
int64_t program_id(const LearningTask& task, const std::string& schedule);  // positive

enum class LabelKind : uint8_t {
  time,      // seconds, measured
  cycles,    // counted by an exact simulator, in seconds
  estimate,  // from a model of the processor; never mixed with times
};
inline constexpr int kLabelKindCount = 3;
const char* label_kind_name(LabelKind kind);

struct Platform {
  int64_t id = 0;
  std::string name;     // name of the target: "x86-64-v3"
  std::string target;   // target_key
  std::string machine;  // fingerprint of the machine
  int threads = 1;
  LabelKind kind = LabelKind::time;
};
std::string platform_text(const Platform& platform);  // "x86-64-v3, 1 thread, on ..."

struct Label {
  int64_t program = 0;
  int pass = 0;  // 1: measured a second time, later, in another process
  Status status = Status::ok;
  double least = 0, median = 0;  // seconds; 0 unless ok
  int samples = 0;
  bool contended = false;  // disturbed, even when taken again
  std::string code;        // hash of the object code; equal code is timed once a pass
  int64_t time = 0;        // seconds since 1970

  // The time to learn from. On a disturbed machine, second labels agree with the least of the
  // samples far better than with the median.
  double seconds() const { return least; }
};

class DataSet {
 public:
  // Errors: no such file, not a data set, another version.
  static Expected<DataSet> open(const std::string& path, sql::Mode mode);
  const std::string& path() const { return database_.path(); }

  // Adds a task, known by key, target and algorithm. False: it exists already.
  Expected<bool> add(const LearningTask& task);
  // Tasks in the order of their ids, without their texts
  Expected<std::vector<LearningTask>> tasks();
  Expected<LearningTask> task(int64_t id);  // with texts
  Error set_split(int64_t task, Split split);
  Error set_complete(int64_t task);

  // Programs that exist already stay as they are.
  Error add_programs(int64_t task, const std::vector<LearningProgram>& programs);
  Expected<std::vector<LearningProgram>> programs(int64_t task);  // in the order of their ids
  // A program by its id, and the id of its task. Errors: no such program.
  struct Found {
    int64_t task = 0;
    LearningProgram program;
  };
  Expected<Found> program(int64_t id);

  // The id of the platform that is equal but for the id. The platform is added if there is none.
  Expected<int64_t> platform(const Platform& platform);
  Expected<std::vector<Platform>> platforms();

  // Adds all labels or, on an error, none. An existing label of a program and pass stays.
  Error add_labels(int64_t platform, const std::vector<Label>& labels);
  Expected<std::vector<Label>> labels(int64_t platform, int64_t task, int pass);
  // The number of the task's programs without a label of the first pass
  Expected<int64_t> unlabelled(int64_t platform, int64_t task);
  Expected<std::map<int64_t, int64_t>> label_counts(int64_t platform, int pass);

  // Several processes may make labels at once. A claim gives the holder a task on a platform for
  // `seconds`. False: somebody else holds it.
  Expected<bool> claim(int64_t platform, int64_t task, const std::string& holder, int64_t now,
                       int64_t seconds);
  Error release(int64_t platform, int64_t task, const std::string& holder);

 private:
  explicit DataSet(sql::Database database) : database_(std::move(database)) {}
  Error prepare(sql::Mode mode);
  sql::Database database_;
};

}  // namespace tw
