// Tuning a network: a search for each of its tasks, which learn from each other and from records,
// and the scheduler that shares the trials.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "autotune/explorers/explorers.h"
#include "autotune/models/gbt.h"
#include "autotune/models/predictor.h"
#include "autotune/scheduler.h"
#include "autotune/task.h"
#include "autotune/transfer.h"
#include "autotune/tuner.h"

namespace tw {

enum class TunerKind : uint8_t {
  gbt,
  genetic,
  anneal,
  random,
  grid,
  // By predictors that were trained before. Those of the papers learn nothing from the search.
  one_shot,  // One-Shot Tuner: annealing
  tlp,       // TLP, and with heads of several platforms: generations
  mtl_tlp,
  ranker,  // drafts, then verifies, and corrects its scores by what is measured
};
inline constexpr int kTunerKindCount = 9;
inline bool is_predicted(TunerKind kind) { return kind >= TunerKind::one_shot; }
const char* tuner_name(TunerKind kind);
std::optional<TunerKind> tuner_from_name(std::string_view name);
enum class FeatureKind : uint8_t { knob, itervar, curve, loops };
inline constexpr int kFeatureKindCount = 4;
const char* feature_name(FeatureKind kind);
std::optional<FeatureKind> feature_from_name(std::string_view name);

struct NetworkOptions {
  TunerKind tuner = TunerKind::gbt;
  std::shared_ptr<const PredictorSet> predictors = nullptr;  // of the tuner's kind
  // Of a predicted one without a limit: so many trials of each task's first exploration
  int trials_each = 64;
  Objective objective = Objective::rank;      // gbt
  FeatureKind features = FeatureKind::loops;  // gbt
  bool transfer = true;                       // tasks learn from those of the same family
  // For comparing methods: records answer what a search asks for, count as its trials, and teach it
  // nothing
  bool table = false;
  // Batch 0: after the trials and the tasks that there are
  SchedulerOptions scheduler;
  int patience = 0;  // trials of a task without a gain; 0: never
  uint64_t seed = 1;
  int threads = 1;  // of the records' key
  int jobs = 1;     // threads that build candidates
};

// What a search needs of the rest of the tuner. Each is called from one thread.
struct NetworkServices {
  std::function<Expected<Space>(const Task&)> space;
  // Results of the candidates in order; fewer when it was interrupted.
  std::function<std::vector<MeasureResult>(const Task&, std::span<const Candidate>,
                                           const StopAsked&)>
      measure;
  std::function<Expected<std::vector<Record>>(const RecordKey&)> known;  // null: none
  // Of all kernels known for the target; null: none
  std::function<Expected<std::vector<RecordNote>>()> notes;
  // What records of the task will be of; before the first of them; null: nowhere
  std::function<Error(const Task&)> describe = nullptr;
  // Without tool and time; null: nowhere
  std::function<Error(Record)> store;
};

// Candidates of a task: its variants' kernels with schedules applied. Of a point of one of its
// spaces, or of any schedule.
Expected<Candidate> candidate_of(const Task& task, const Target& target, const Space& space,
                                 const Point& point);
Expected<Candidate> candidate_of(const Task& task, const Target& target, int variant,
                                 Schedule schedule, const Point& point = {-1, {}});

class NetworkTuner {
 public:
  // Errors: a space that cannot be made.
  static Expected<std::unique_ptr<NetworkTuner>> create(std::vector<Task> tasks,
                                                        const Target& target,
                                                        NetworkServices services,
                                                        const NetworkOptions& options);
  ~NetworkTuner();

  // First the default schedule of every task. clock: seconds since anything. A round is cut short
  // when the time is over. Errors: every task failed; records that cannot be read or stored.
  Expected<StopReason> run(const std::function<double()>& clock,
                           const std::atomic<bool>* stop = nullptr, const SearchWatch& watch = {});

  struct Row {  // of a task, for people
    const Task* task = nullptr;
    double first = 0;  // seconds of the default schedule; infinite: none yet, or it fails
    double best = 0;   // infinite: none yet
    int measured = 0, known = 0, illegal = 0;
    double space = 0;               // points
    DType multiplies = DType::f32;  // by the default schedule
    std::string error;              // why nothing that was tried works; "": it does, or none was
    bool from_log = false;          // the best was known before
  };
  // Schedules as texts; "": none yet
  struct Change {
    Algorithm algorithm = Algorithm::direct;  // of the best
    std::string first, best;
  };
  size_t task_count() const;
  Row row(size_t task) const;
  Change change(size_t task) const;
  const std::vector<double>& curve(size_t task) const;  // best so far, by trial
  double network_seconds() const;
  // By the default schedules, of the same tasks
  double first_seconds() const;
  int measured() const;
  // Of the run so far; the rest of it went into searching
  double measuring_seconds() const { return measuring_seconds_; }
  size_t reached() const;  // tasks that have a time
  // A line each, with the reason: tasks of which nothing works that was tried
  std::vector<std::string> failures() const;
  // Of those with a schedule that would replace the default one
  size_t gains() const;

 private:
  struct Search;
  NetworkTuner(const Target& target, NetworkServices services, const NetworkOptions& options);
  static std::string failure(const Search& search, int tried);
  Error begin(Search& search);
  std::vector<MeasureResult> measure(const Task& task, std::span<const Candidate> candidates);
  bool learn_from_others(Search& search, GbtModel& model);
  std::vector<const Search*> nearest(const Search& search) const;
  Expected<TaskRound> first_round(Search& search);
  Expected<TaskRound> round(Search& search, int most);
  void store(const Search& search, const Candidate& candidate, const MeasureResult& result);
  Record record_of(const Search& search, const Candidate& candidate,
                   const MeasureResult& result) const;
  MakeCandidate maker(Search& search) const;
  MakeCandidate unless_stopped(MakeCandidate make) const;
  Expected<Candidate> usual(Search& search, size_t variant) const;
  void limit_code(Search& search) const;
  void choose_method(Search& search);
  void learn_by_trees(Search& search, uint64_t seed);
  void learn_from_ranker(Search& search, uint64_t seed);
  void trust_predictors(Search& search, uint64_t seed);
  Expected<std::vector<KnownResult>> known_of(const Search& search) const;
  std::vector<Candidate> beginning(Search& search) const;

  const Target& target_;
  NetworkServices services_;
  NetworkOptions options_;
  std::vector<std::unique_ptr<Search>> searches_;
  std::unique_ptr<TaskScheduler> scheduler_;
  std::vector<RecordNote> notes_;
  std::function<double()> clock_;  // of the present run
  double measuring_seconds_ = 0;
  StopAsked stop_;             // of the present run: asked for, or out of time
  std::vector<Diag> storing_;  // records that could not be stored
};

}  // namespace tw
