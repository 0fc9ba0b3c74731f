#include "autotune/network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "autotune/median.h"
#include "autotune/models/corrected.h"
#include "ir/kernel/code_size.h"
#include "ir/kernel/work.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"

namespace tw {
namespace {
constexpr std::array<const char*, kTunerKindCount> kTuners = {
    "gbt", "genetic", "anneal", "random", "grid", "one-shot", "tlp", "mtl-tlp", "ranker"};
constexpr std::array<const char*, kFeatureKindCount> kFeatures = {"knob", "itervar", "curve",
                                                                  "loops"};
constexpr size_t kNeighbours = 2;  // similar tasks whose best schedules are tried first
// Most measurements of another task that a model learns from
constexpr size_t kTaught = 256;
constexpr int kMostBatch = 64, kTimedBatch = 16;
constexpr int kLearningBatches = 4;  // batches of a task; each corrects its scores
// Annealing when features need kernels: only this many are built for a batch.
constexpr int kChains = 32, kSteps = 48;

template <size_t N>
std::optional<int> index_of(const std::array<const char*, N>& words, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (name == words[i]) return static_cast<int>(i);
  return std::nullopt;
}

Features features_of(FeatureKind kind, const Space& space) {
  switch (kind) {
    case FeatureKind::knob: return knob_features(space);
    case FeatureKind::itervar: return itervar_features();
    case FeatureKind::curve: return curve_features();
    case FeatureKind::loops: return loop_features();
  }
  TW_UNREACHABLE("features");
}

std::string family_of(const Task& task) { return family_of(task.variants.front().lowered); }

// A seed for each task, the same in every network
uint64_t seed_of(uint64_t seed, const std::string& key) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

const char* tuner_name(TunerKind kind) { return kTuners[static_cast<size_t>(kind)]; }
const char* feature_name(FeatureKind kind) { return kFeatures[static_cast<size_t>(kind)]; }
std::optional<TunerKind> tuner_from_name(std::string_view name) {
  const std::optional<int> i = index_of(kTuners, name);
  return i ? std::optional(static_cast<TunerKind>(*i)) : std::nullopt;
}
std::optional<FeatureKind> feature_from_name(std::string_view name) {
  const std::optional<int> i = index_of(kFeatures, name);
  return i ? std::optional(static_cast<FeatureKind>(*i)) : std::nullopt;
}

Expected<Candidate> candidate_of(const Task& task, const Target& target, int variant,
                                 Schedule schedule, const Point& point) {
  if (variant < 0 || static_cast<size_t>(variant) >= task.variants.size())
    return make_error(DiagCode::invalid_argument, "{0} has no variant {1}", task.name, variant);
  TW_ASSIGN(RunKernel run,
            scheduled_run(task.variants[static_cast<size_t>(variant)].lowered, schedule, target));
  return Candidate{point, std::move(schedule), std::make_shared<const RunKernel>(std::move(run)),
                   variant};
}

Expected<Candidate> candidate_of(const Task& task, const Target& target, const Space& space,
                                 const Point& point) {
  TW_ASSIGN(FilledSketch made, space.filled(point));
  const int variant = space.sketches()[static_cast<size_t>(point.sketch)].variant;
  if (!made.run) return candidate_of(task, target, variant, std::move(made.schedule), point);
  return Candidate{point, std::move(made.schedule), std::move(made.run), variant};
}

struct NetworkTuner::Search {
  Search(Task t, Space s) : task(std::move(t)), space(std::move(s)) {}
  Task task;
  Space space;
  std::vector<std::string> hashes;  // hashes of the variants' kernels
  // Default schedules of the variants, as far as they apply
  std::vector<std::string> defaults;
  KernelShape shape;
  // Limit of a candidate's operations, with unrolled loops written out
  int64_t most_code = std::numeric_limits<int64_t>::max();
  std::unique_ptr<CostModel> model;
  std::unique_ptr<Explorer> explorer;
  std::unique_ptr<TaskTuner> tuner;                    // present from the task's first round on
  std::vector<std::pair<Candidate, double>> measured;  // without kernels
  std::optional<MeasureResult> by_default;             // result of the default schedule
  bool has_default = false;
  DType multiplies = DType::f32;    // type that the default schedule multiplies in
  double first = kInfiniteSeconds;  // seconds of the default schedule
};

NetworkTuner::NetworkTuner(const Target& target, NetworkServices services,
                           const NetworkOptions& options)
    : target_(target), services_(std::move(services)), options_(options) {}
NetworkTuner::~NetworkTuner() = default;

Expected<std::unique_ptr<NetworkTuner>> NetworkTuner::create(std::vector<Task> tasks,
                                                             const Target& target,
                                                             NetworkServices services,
                                                             const NetworkOptions& options) {
  std::unique_ptr<NetworkTuner> out(new NetworkTuner(target, std::move(services), options));
  int& batch = out->options_.scheduler.batch;
  const bool own_batch = batch <= 0;
  const int count = static_cast<int>(std::max<size_t>(1, tasks.size()));
  int& trials = out->options_.scheduler.trials;
  if (is_predicted(options.tuner) && trials <= 0 && options.scheduler.seconds <= 0)
    trials = count * options.trials_each;
  if (batch <= 0) batch = trials > 0 ? std::clamp(trials / count, 1, kMostBatch) : kTimedBatch;
  if (own_batch && options.tuner == TunerKind::ranker)
    batch = std::clamp(batch / kLearningBatches, 1, kTimedBatch);
  out->options_.scheduler.seed = options.seed;
  out->options_.scheduler.count_known = options.table;
  if (out->services_.notes && options.transfer && !options.table) {
    TW_ASSIGN(out->notes_, out->services_.notes());
    // Drops notes without a point to start from.
    std::erase_if(out->notes_, [](const RecordNote& note) { return note.point.empty(); });
  }
  for (Task& task : tasks) {
    TW_ASSIGN(Space space, out->services_.space(task));
    auto search = std::make_unique<Search>(std::move(task), std::move(space));
    for (const Variant& v : search->task.variants)
      search->hashes.push_back(definition_hash(v.lowered));
    search->shape = shape_of(search->task.variants.front().lowered);
    out->searches_.push_back(std::move(search));
  }
  return out;
}

Record NetworkTuner::record_of(const Search& search, const Candidate& candidate,
                               const MeasureResult& result) const {
  Record record;
  record.key = {search.task.key, target_key(target_), options_.threads};
  record.algorithm = algorithm_name(
      search.task.variants[static_cast<size_t>(candidate.variant)].algorithm);
  record.kernel_hash = search.hashes[static_cast<size_t>(candidate.variant)];
  record.schedule = print(candidate.schedule);
  record.seconds = result.status == Status::ok ? result.seconds : std::vector<double>();
  record.status = result.status;
  record.error = result.error;
  record.device = result.device;
  const bool by_default = search.defaults.size() > static_cast<size_t>(candidate.variant) &&
                          search.defaults[static_cast<size_t>(candidate.variant)] ==
                              record.schedule;
  if (in_space(candidate.point) || by_default)
    record.about = print(RecordNote{
        shape_of(search.task.variants[static_cast<size_t>(candidate.variant)].lowered),
        in_space(candidate.point) ? search.space.print(candidate.point) : "", by_default});
  return record;
}

// Searches of the same family that have results, the nearest shape first
std::vector<const NetworkTuner::Search*> NetworkTuner::nearest(const Search& search) const {
  std::vector<std::pair<double, const Search*>> list;
  for (const auto& other : searches_) {
    if (other.get() == &search || !other->tuner || !std::isfinite(other->tuner->best_seconds()) ||
        family_of(other->task) != family_of(search.task))
      continue;
    list.push_back({distance(search.shape, other->shape), other.get()});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Search*> out;
  for (const auto& [d, other] : list) out.push_back(other);
  return out;
}

bool NetworkTuner::learn_from_others(Search& search, GbtModel& model) {
  std::vector<MeasuredSet> sets;
  for (const Search* other : nearest(search)) {
    MeasuredSet set;
    for (size_t i = 0; i < other->measured.size() && i < kTaught; ++i) {
      const auto& [candidate, seconds] = other->measured[i];
      Expected<Candidate> whole = candidate_of(other->task, target_, candidate.variant,
                                               candidate.schedule);
      if (!whole) {
        llvm::consumeError(whole.takeError());
        continue;
      }
      set.candidates.push_back(std::move(*whole));
      set.seconds.push_back(seconds);
    }
    sets.push_back(std::move(set));
  }
  return !sets.empty() && model.transfer(sets);
}

MakeCandidate NetworkTuner::maker(Search& search) const {
  return [this, &search](const Point& point) -> Expected<Candidate> {
    TW_ASSIGN(Candidate candidate, candidate_of(search.task, target_, search.space, point));
    const int64_t size = written_out_operations(candidate.run->kernel, target_.lanes(4));
    if (size > search.most_code)
      return make_error(DiagCode::illegal_schedule,
                        "its unrolled loops are {0} operations; {1} are the most here", size,
                        search.most_code);
    return candidate;
  };
}

// Scoring points takes seconds when their kernels are built for it. Once the time is over, this
// makes no more of them.
MakeCandidate NetworkTuner::unless_stopped(MakeCandidate make) const {
  return [this, make = std::move(make)](const Point& point) -> Expected<Candidate> {
    if (stop_ && stop_()) return make_error(DiagCode::limit, "the search ends");
    return make(point);
  };
}

void NetworkTuner::learn_by_trees(Search& search, uint64_t seed) {
  const int batch = options_.scheduler.batch;
  GbtOptions gbt;
  gbt.objective = options_.objective, gbt.top = batch, gbt.seed = seed & 0x7fffffff,
  gbt.jobs = options_.jobs;
  auto model = std::make_unique<GbtModel>(features_of(options_.features, search.space), gbt);
  AnnealingOptions annealing;
  annealing.random_first = options_.transfer && learn_from_others(search, *model) ? 0 : batch;
  if (options_.features != FeatureKind::knob)
    annealing.chains = kChains, annealing.iterations = kSteps;
  search.explorer = annealing_explorer(
      search.space, seed, annealing,
      score_points(unless_stopped(maker(search)), *model, options_.jobs));
  search.model = std::move(model);
}

// Lets measurements correct the ranker's scores.
void NetworkTuner::learn_from_ranker(Search& search, uint64_t seed) {
  auto model = std::make_unique<CorrectedModel>(predict_by(
      options_.predictors, predicted_task(search.task, target_, options_.threads), options_.jobs));
  // Exploring is wide, because measuring costs more.
  const DraftOptions wide{
      .first = 256, .rounds = 4, .drafted = 1 << 15, .verified = 192, .again = 1};
  search.explorer = corrected_explorer(search.space, seed, wide, unless_stopped(maker(search)),
                                       *model, options_.jobs);
  search.model = std::move(model);
}

// Explores once, as each paper does, by scores that nothing here changes.
void NetworkTuner::trust_predictors(Search& search, uint64_t seed) {
  search.model = std::make_unique<PredictorModel>(
      options_.predictors, predicted_task(search.task, target_, options_.threads), options_.jobs);
  const ScorePoints score = score_points(unless_stopped(maker(search)), *search.model,
                                         options_.jobs);
  if (options_.tuner == TunerKind::one_shot) {
    AnnealingOptions annealing;  // CC'22, section 5: 512 chains of 160 steps at most
    annealing.chains = 512, annealing.iterations = 160, annealing.random_first = 0;
    annealing.epsilon = 0, annealing.diversity = 1;
    search.explorer = annealing_explorer(search.space, seed, annealing, score);
  } else {
    GeneticOptions genetic;  // ASPLOS'23: Ansor's generations
    genetic.scored_population = 2048, genetic.random_first = 0, genetic.epsilon = 0;
    search.explorer = genetic_explorer(search.space, seed, genetic, score);
  }
}

void NetworkTuner::choose_method(Search& search) {
  const uint64_t seed = seed_of(options_.seed, search.task.key);
  switch (options_.tuner) {
    case TunerKind::gbt: learn_by_trees(search, seed); return;
    case TunerKind::genetic: search.explorer = genetic_explorer(search.space, seed); return;
    case TunerKind::anneal: search.explorer = annealing_explorer(search.space, seed); return;
    case TunerKind::random: search.explorer = random_explorer(search.space, seed); return;
    case TunerKind::grid: search.explorer = grid_explorer(search.space); return;
    case TunerKind::one_shot:
    case TunerKind::tlp:
    case TunerKind::mtl_tlp: trust_predictors(search, seed); return;
    case TunerKind::ranker: learn_from_ranker(search, seed); return;
  }
}

// Records of the task with a current kernel. Records of kernels that were lowered in another way
// are left out.
Expected<std::vector<KnownResult>> NetworkTuner::known_of(const Search& search) const {
  std::vector<KnownResult> known;
  if (!services_.known) return known;
  TW_ASSIGN(std::vector<Record> records,
            services_.known({search.task.key, target_key(target_), options_.threads}));
  for (const Record& r : latest(std::move(records))) {
    const auto hash = std::find(search.hashes.begin(), search.hashes.end(), r.kernel_hash);
    if (hash == search.hashes.end()) continue;
    known.push_back({static_cast<int>(hash - search.hashes.begin()),
                     r.schedule,
                     {r.status, r.seconds, r.error, r.device, false}});
  }
  return known;
}

// The candidate with the default schedule of a variant. For the first variant the space may have a
// point for it.
Expected<Candidate> NetworkTuner::usual(Search& search, size_t variant) const {
  if (const std::optional<Point> point = search.space.default_point(); point && variant == 0)
    return maker(search)(*point);
  const LoweredGroup& lowered = search.task.variants[variant].lowered;
  TW_ASSIGN(Schedule schedule, default_schedule(lowered, target_));
  return candidate_of(search.task, target_, static_cast<int>(variant), std::move(schedule));
}

// The candidates to begin with: the default schedule; the other algorithms' default schedules, as
// alternatives; the usual points of sketches without a default; and the best candidates of similar
// tasks, where they are legal here.
std::vector<Candidate> NetworkTuner::beginning(Search& search) const {
  std::vector<Candidate> out;
  const auto add = [&](Expected<Candidate> candidate) {
    if (candidate) out.push_back(std::move(*candidate));
    else llvm::consumeError(candidate.takeError());  // only a start, so errors do not matter
  };
  search.defaults.resize(search.task.variants.size());
  for (size_t v = 0; v < search.task.variants.size(); ++v) {
    const size_t before = out.size();
    add(usual(search, v));
    search.defaults[v] = (out.size() > before ? print(out.back().schedule) : "");
  }
  search.has_default = !search.defaults.front().empty();
  for (const Point& point : search.space.starts()) add(maker(search)(point));
  if (!options_.transfer || options_.tuner == TunerKind::grid ||
      options_.tuner == TunerKind::random)
    return out;
  const std::vector<const Search*> others = nearest(search);
  for (size_t i = 0; i < others.size() && i < kNeighbours; ++i) {
    const Candidate& best = others[i]->tuner->best();
    add(candidate_of(search.task, target_, best.variant, best.schedule));
  }
  // Similar tasks of other networks
  for (const RecordNote& note : nearest_notes(notes_, search.shape, kNeighbours))
    if (const std::optional<Point> point = search.space.parse(note.point))
      add(maker(search)(*point));
  return out;
}

// Limits unrolled code by the default schedules of all variants.
void NetworkTuner::limit_code(Search& search) const {
  if (!target_.driver.empty()) return;
  int64_t most = kLeastOperations;
  for (size_t v = 0; v < search.task.variants.size(); ++v) {
    if (Expected<Candidate> candidate = usual(search, v))
      most = std::max(most, most_operations(candidate->run->kernel, target_.lanes(4)));
    else llvm::consumeError(candidate.takeError());  // the error is reported when it is measured
  }
  search.most_code = most;
}

void NetworkTuner::store(const Search& search, const Candidate& candidate,
                         const MeasureResult& result) {
  if (!services_.store || result.lost) return;
  if (Error e = services_.store(record_of(search, candidate, result)))
    for (Diag& d : take_diags(std::move(e))) storing_.push_back(std::move(d));
}

std::vector<MeasureResult> NetworkTuner::measure(const Task& task,
                                                 std::span<const Candidate> candidates) {
  const double begin = clock_();
  std::vector<MeasureResult> results = services_.measure(task, candidates, stop_);
  measuring_seconds_ += clock_() - begin;
  return results;
}

// Measures the default schedule alone, so that the network's time is known before any search.
Expected<TaskRound> NetworkTuner::first_round(Search& search) {
  if (services_.describe) TW_TRY(services_.describe(search.task));
  Expected<Candidate> candidate = usual(search, 0);
  if (!candidate) {  // rounds begin without a default schedule
    llvm::consumeError(candidate.takeError());
    return TaskRound{0, 0, kInfiniteSeconds, false};
  }
  search.multiplies = multiplied_type(candidate->run->kernel);
  const std::string schedule = print(candidate->schedule);
  search.defaults = {schedule};
  TW_ASSIGN(const std::vector<KnownResult> known, known_of(search));
  const auto record = std::ranges::find_if(
      known, [&](const KnownResult& r) { return r.variant == 0 && r.schedule == schedule; });
  if (record != known.end()) {
    search.by_default = record->result;
  } else {
    const std::vector<MeasureResult> results = measure(search.task, {&*candidate, 1});
    if (results.empty()) return TaskRound{0, 0, kInfiniteSeconds, false};  // stopped
    search.by_default = results.front();
    store(search, *candidate, results.front());
    if (!storing_.empty()) return make_error(storing_);
  }
  search.first = seconds_of(*search.by_default);
  return record != known.end() ? TaskRound{0, 1, search.first, false}
                               : TaskRound{1, 0, search.first, false};
}

// Sets up the search at a task's first round, so that it can learn from earlier tasks.
Error NetworkTuner::begin(Search& search) {
  limit_code(search);
  choose_method(search);
  TuneHooks hooks;
  hooks.make = maker(search);
  if (!options_.table)
    hooks.adopt = [this, &search](int variant, const Schedule& schedule) {
      return candidate_of(search.task, target_, variant, schedule);
    };
  hooks.measure = [this, &search](std::span<const Candidate> candidates) {
    return measure(search.task, candidates);
  };
  hooks.record = [this, &search](const Candidate& candidate, const MeasureResult& result) {
    store(search, candidate, result);
  };
  TuneOptions tune;
  tune.batch = options_.scheduler.batch, tune.patience = options_.patience,
  tune.jobs = options_.jobs;
  if (options_.tuner == TunerKind::grid)  // a grid visits every point, however many repeat
    tune.most_repeated = std::numeric_limits<int>::max();
  TW_ASSIGN(std::vector<KnownResult> known, known_of(search));
  search.tuner = std::make_unique<TaskTuner>(search.task.name, search.space, *search.explorer,
                                             search.model.get(), std::move(hooks), tune);
  search.tuner->know(std::move(known));
  if (!options_.table) search.tuner->begin_with(beginning(search), search.by_default);
  return Error::success();
}

Expected<TaskRound> NetworkTuner::round(Search& search, int most) {
  if (!search.tuner) TW_TRY(begin(search));
  TW_ASSIGN(const TuneStep step, search.tuner->step(most, stop_));
  if (search.has_default) search.first = search.tuner->first_seconds();
  search.measured = search.tuner->measured();
  if (!storing_.empty()) return make_error(storing_);
  return TaskRound{step.measured, step.known, search.tuner->best_seconds(), search.tuner->done()};
}

Expected<StopReason> NetworkTuner::run(const std::function<double()>& clock,
                                       const std::atomic<bool>* stop, const SearchWatch& watch) {
  std::vector<ScheduledTask> tasks;
  for (const auto& search : searches_) {
    const Task& task = search->task;
    tasks.push_back({task.name, similar_group(family_of(task), task.flops),
                     static_cast<double>(task.calls), task.flops,
                     [this, s = search.get()](int most) { return round(*s, most); }});
    if (!options_.table) tasks.back().first = [this, s = search.get()] { return first_round(*s); };
  }
  scheduler_ = std::make_unique<TaskScheduler>(std::move(tasks), options_.scheduler);
  clock_ = clock;
  stop_ = [this, clock, stop, watch, start = clock()] {
    return (stop && stop->load(std::memory_order_relaxed)) ||
           clock() >= search_end(options_.scheduler, start, watch);
  };
  TW_ASSIGN(const StopReason reason, scheduler_->run(clock, stop, watch));
  if (!storing_.empty()) return make_error(std::move(storing_));
  return reason;
}

size_t NetworkTuner::task_count() const { return searches_.size(); }

// A text for candidates without a time
std::string NetworkTuner::failure(const Search& search, int tried) {
  std::string text = search.task.name + ": no candidate of " + std::to_string(tried) + " works";
  if (!search.by_default || search.by_default->status == Status::ok) return text;
  text += std::string("; the default schedule: ") + status_name(search.by_default->status);
  return search.by_default->error.empty() ? text : text + ", " + search.by_default->error;
}

NetworkTuner::Row NetworkTuner::row(size_t task) const {
  const Search& s = *searches_[task];
  Row row{&s.task, s.first, s.first, 0, 0, 0, s.space.size(), s.multiplies, ""};
  if (s.tuner) {
    row.best = s.tuner->best_seconds(), row.illegal = s.tuner->illegal();
    row.from_log = s.tuner->best_is_known();
  }
  if (scheduler_) {
    const TaskState& state = scheduler_->states()[task];
    row.measured = state.measured, row.known = state.known, row.error = state.error;
  }
  const int tried = row.measured + row.known;
  if (tried > 0 && !std::isfinite(row.best)) row.error = failure(s, tried);
  return row;
}

NetworkTuner::Change NetworkTuner::change(size_t task) const {
  const Search& s = *searches_[task];
  Change change;
  if (!s.defaults.empty()) change.first = s.defaults.front();
  if (!s.tuner && std::isfinite(s.first)) change.best = change.first;  // nothing else was tried
  if (!s.tuner || !std::isfinite(s.tuner->best_seconds())) return change;
  const Candidate& best = s.tuner->best();
  change.algorithm = s.task.variants[static_cast<size_t>(best.variant)].algorithm;
  change.best = print(best.schedule);
  return change;
}

const std::vector<double>& NetworkTuner::curve(size_t task) const {
  static const std::vector<double> none;
  return searches_[task]->tuner ? searches_[task]->tuner->curve() : none;
}

double NetworkTuner::network_seconds() const {
  return scheduler_ ? scheduler_->network_seconds() : 0;
}

double NetworkTuner::first_seconds() const {
  double sum = 0;
  for (const auto& s : searches_)
    if (std::isfinite(s->first)) sum += static_cast<double>(s->task.calls) * s->first;
  return sum;
}

size_t NetworkTuner::reached() const {
  size_t count = 0;
  for (size_t i = 0; i < searches_.size(); ++i) count += std::isfinite(row(i).best);
  return count;
}

std::vector<std::string> NetworkTuner::failures() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < searches_.size(); ++i)
    if (const std::string error = row(i).error; !error.empty())
      lines.push_back(error.substr(0, error.find('\n')));
  return lines;
}

size_t NetworkTuner::gains() const {
  size_t count = 0;
  for (size_t i = 0; i < searches_.size(); ++i)
    count += std::isfinite(row(i).first) && is_gain(row(i).best, row(i).first);
  return count;
}

int NetworkTuner::measured() const { return scheduler_ ? scheduler_->measured() : 0; }

}  // namespace tw
