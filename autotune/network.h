// Tunes a network. Each task has a search; the searches learn from each other and from records, and
// a scheduler divides the trials among them.
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
  // Predictors that were trained before. The papers' methods learn nothing from the search.
  one_shot,  // One-Shot Tuner: annealing
  tlp,       // TLP, and with heads of several platforms: generations
  mtl_tlp,
  ranker,  // drafts, then verifies, and lets measurements correct its scores
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
  std::shared_ptr<const PredictorSet> predictors = nullptr;  // predictors of the tuner's kind
  // Trials for each task, with a predictor and no limit
  int trials_each = 64;
  Objective objective = Objective::rank;      // with gbt
  FeatureKind features = FeatureKind::loops;  // with gbt
  bool transfer = true;                       // tasks learn from others of the same family
  // For comparing methods: records answer the search's requests, count as its trials, and teach it
  // nothing else
  bool table = false;
  // Batch 0: chosen from the numbers of trials and tasks
  SchedulerOptions scheduler;
  int patience = 0;  // trials of a task without a gain before it stops; 0: never
  uint64_t seed = 1;
  int threads = 1;  // part of the records' key
  int jobs = 1;     // threads that build candidates
};

// The functions that a search needs from the rest of the tuner. One thread at a time calls each of
// them.
struct NetworkServices {
  std::function<Expected<Space>(const Task&)> space;
  // Returns results of the candidates in order; fewer when it was interrupted.
  std::function<std::vector<MeasureResult>(const Task&, std::span<const Candidate>,
                                           const StopAsked&)>
      measure;
  std::function<Expected<std::vector<Record>>(const RecordKey&)> known;  // null: no records
  // Notes on all kernels known for the target; null: none
  std::function<Expected<std::vector<RecordNote>>()> notes;
  // Stores the texts of a task before its first record; null: not stored
  std::function<Error(const Task&)> describe = nullptr;
  // Stores a record, without tool and time; null: not stored
  std::function<Error(Record)> store;
};

// A candidate of a task: a variant's kernel with a schedule applied, from a point of a space or
// from any schedule.
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

  // Begins with the default schedule of every task. `clock` gives seconds since any moment. A round
  // is cut short when the time is over. Errors: every task failed; records that cannot be read or
  // stored.
  Expected<StopReason> run(const std::function<double()>& clock,
                           const std::atomic<bool>* stop = nullptr, const SearchWatch& watch = {});

  struct Row {  // facts about a task, for people
    const Task* task = nullptr;
    double first = 0;  // seconds of the default schedule; infinite: unknown, or it fails
    double best = 0;   // infinite: unknown
    int measured = 0, known = 0, illegal = 0;
    double space = 0;               // points
    DType multiplies = DType::f32;  // type that the default schedule multiplies in
    std::string error;              // why no tried candidate works; "": one does, or none was tried
    bool from_log = false;          // the best candidate is a known record
  };
  // Schedules as texts; "": none yet
  struct Change {
    Algorithm algorithm = Algorithm::direct;  // algorithm of the best schedule
    std::string first, best;
  };
  size_t task_count() const;
  Row row(size_t task) const;
  Change change(size_t task) const;
  const std::vector<double>& curve(size_t task) const;  // best time so far, by trial
  double network_seconds() const;
  // Seconds of the network by the default schedules, over the tasks where these have a time
  double first_seconds() const;
  int measured() const;
  // Seconds of measuring in the run so far; searching took the rest
  double measuring_seconds() const { return measuring_seconds_; }
  size_t reached() const;  // number of tasks that have a time
  // A line for each task where no tried candidate works, with the reason
  std::vector<std::string> failures() const;
  // Number of tasks with a schedule that would replace the default one
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
  std::function<double()> clock_;
  double measuring_seconds_ = 0;
  StopAsked stop_;             // true when the present run is to end: on request, or out of time
  std::vector<Diag> storing_;  // diagnostics of records that could not be stored
};

}  // namespace tw
