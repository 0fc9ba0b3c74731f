#include "driver/dataset/program_maker.h"

#include <algorithm>
#include <random>
#include <set>

#include "autotune/candidate.h"
#include "autotune/explorers/explorers.h"
#include "autotune/features/features.h"
#include "autotune/models/corrected.h"
#include "autotune/models/gbt.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr int kTriesEach = 200;  // most points drawn for a legal one
constexpr int kSearchBatch = 16;
// Short chains: a point costs as much as a measurement, and the set needs the programs that a
// search meets on its way.
constexpr int kChains = 16, kSteps = 16;

}  // namespace

// Errors: an illegal point, or one whose unrolled loops are much longer than the default's.
Expected<Candidate> ProgramMaker::candidate(const Space& space, const Point& point) const {
  TW_ASSIGN(FilledSketch filled, space.filled(point));
  Candidate made{point, std::move(filled.schedule), std::move(filled.run), 0};
  if (!made.run) { TW_ASSIGN(made, of_.candidate(std::move(made.schedule), point)); }
  TW_TRY(check_code_size(made, *of_.lowered_for_, of_.most_code_));
  return made;
}

// The space without rules
Expected<Space> ProgramMaker::free_space() const {
  return search_space(of_.lowered_, *of_.lowered_for_, {.rules = false});
}

int ProgramMaker::count_of(ProgramSource source) const {
  return static_cast<int>(std::ranges::count_if(
      of_.programs_, [&](const auto& one) { return one.second.source == source; }));
}

Error ProgramMaker::make(int programs) {
  const int searched = programs * 3 / 10, neighbours = programs * 3 / 20, product = programs / 20;
  const int uniform = std::max(0, programs - 1 - searched - neighbours - product);
  TW_TRY(make_standard());
  TW_ASSIGN(const Space space, free_space());
  std::mt19937_64 random(seed_for(of_.task_, "uniform"));
  TW_TRY(make_drawn(space, uniform, ProgramSource::uniform, [&] { return space.sample(random); }));
  if (stopped()) return Error::success();
  TW_TRY(make_search(space, searched));
  if (stopped()) return Error::success();
  TW_TRY(make_neighbours(space, neighbours));
  TW_TRY(make_product(product));
  if (stopped()) return Error::success();
  of_.task_.complete = true;
  return of_.set_.set_complete(of_.task_.id);
}

Error ProgramMaker::make_standard() {
  TW_ASSIGN(const Schedule standard, of_.standard_schedule());
  if (count_of(ProgramSource::standard) > 0) return Error::success();
  const std::string text = print(standard);
  return of_.measure_new({{program_id(of_.task_, text), ProgramSource::standard, text}}, 0, stop_);
}

std::vector<LearningProgram> ProgramMaker::legal(const Space& space, int count,
                                                 ProgramSource source,
                                                 llvm::function_ref<Point()> draw) {
  constexpr size_t kTogether = 32;  // points that are built at once, so that all cores have work
  std::vector<LearningProgram> found;
  std::set<int64_t> ids;
  for (int tries = 0; tries < kTriesEach * count && static_cast<int>(found.size()) < count;
       tries += static_cast<int>(kTogether)) {
    std::vector<Point> points;
    while (points.size() < kTogether) points.push_back(draw());
    std::vector<std::string> texts(points.size());
    llvm::cantFail(parallel_for(of_.place_.jobs, points.size(), [&](size_t i) -> Error {
      if (Expected<Candidate> made = candidate(space, points[i])) texts[i] = print(made->schedule);
      else llvm::consumeError(made.takeError());
      return Error::success();
    }));
    for (size_t i = 0; i < points.size() && static_cast<int>(found.size()) < count; ++i) {
      if (texts[i].empty()) continue;
      const int64_t id = program_id(of_.task_, texts[i]);
      if (source != ProgramSource::product) points_.emplace(id, points[i]);
      const auto known = of_.programs_.find(id);
      // Earlier programs of this source count, those of other sources do not.
      if (known != of_.programs_.end() && known->second.source != source) continue;
      if (ids.insert(id).second) found.push_back({id, source, texts[i]});
    }
  }
  return found;
}

Error ProgramMaker::make_drawn(const Space& space, int count, ProgramSource source,
                               llvm::function_ref<Point()> draw) {
  std::vector<LearningProgram> programs = legal(space, count, source, draw);
  std::erase_if(programs, [&](const LearningProgram& p) { return of_.labels_.contains(p.id); });
  return of_.measure_new(programs, 0, stop_);
}

// Searches by annealing with gradient-boosted trees over Ansor's features, beginning with known
// labels.
Error ProgramMaker::make_search(const Space& space, int count) {
  count -= count_of(ProgramSource::search);
  if (count <= 0) return Error::success();
  const int jobs = of_.place_.jobs;
  GbtOptions gbt;
  gbt.top = kSearchBatch, gbt.seed = seed_for(of_.task_, "trees") & 0x7fffffff, gbt.jobs = jobs;
  GbtModel model(loop_features(), gbt);
  AnnealingOptions annealing;
  annealing.random_first = 0, annealing.chains = kChains, annealing.iterations = kSteps;
  const MakeCandidate make = [&](const Point& point) { return candidate(space, point); };
  const std::unique_ptr<Explorer> explorer = annealing_explorer(
      space, seed_for(of_.task_, "annealing"), annealing, score_points(make, model, jobs));
  return search(space, *explorer, model, ProgramSource::search, count);
}

Error ProgramMaker::extend(const std::shared_ptr<const PredictorSet>& predictors, int count) {
  count -= count_of(ProgramSource::predicted);
  if (count <= 0 || !of_.task_.complete) return Error::success();
  TW_ASSIGN(const Space space, free_space());
  const int jobs = of_.place_.jobs;
  const PredictedTask about = predicted_task({std::make_shared<const Kernel>(of_.kernel_)},
                                             of_.place_.target(), of_.place_.threads);
  CorrectedModel model(predict_by(predictors, about, jobs));
  const MakeCandidate make = [&](const Point& point) { return candidate(space, point); };
  const std::unique_ptr<Explorer> explorer = corrected_explorer(
      space, seed_for(of_.task_, "predicted"), {.again = 1}, make, model, jobs);
  return search(space, *explorer, model, ProgramSource::predicted, count);
}

// Every point that a search measures gets a label.
class ProgramMaker::Trials final : public TaskTrials {
 public:
  Trials(ProgramMaker& maker, const Space& space, ProgramSource source)
      : maker_(maker), of_(maker.of_), space_(space), source_(source) {}

  Expected<Candidate> make(const Point& point) const override {
    return maker_.candidate(space_, point);
  }
  Expected<Candidate> adopt(int, const Schedule& schedule) const override {
    return of_.candidate(schedule);
  }
  std::vector<MeasureResult> measure(std::span<const Candidate> candidates) override {
    std::vector<LearningProgram> programs;
    for (const Candidate& c : candidates) {
      const std::string text = print(c.schedule);
      programs.push_back({program_id(of_.task_, text), source_, text});
      maker_.points_.emplace(programs.back().id, c.point);
    }
    std::vector<LearningProgram> missing = programs;
    std::erase_if(missing, [&](const LearningProgram& p) { return of_.labels_.contains(p.id); });
    if (!storing_) storing_ = of_.measure_new(missing, 0, maker_.stop_);
    std::vector<MeasureResult> results;
    for (const LearningProgram& p : programs) {
      const auto label = of_.labels_.find(p.id);
      if (label == of_.labels_.end()) break;  // stopped
      results.push_back(result_of(label->second));
    }
    return results;
  }
  static MeasureResult result_of(const Label& label) {
    MeasureResult result;
    result.status = label.status;
    if (label.status == Status::ok) result.seconds = {label.seconds()};
    return result;
  }
  // The error of storing labels
  Error take_error() { return std::move(storing_); }

 private:
  ProgramMaker& maker_;
  TaskLabels& of_;
  const Space& space_;
  ProgramSource source_;
  Error storing_ = Error::success();
};

std::vector<KnownResult> ProgramMaker::known_results() const {
  std::vector<KnownResult> known;
  for (const auto& [id, label] : of_.labels_)
    if (const LearningProgram& program = of_.programs_.at(id);
        program.source != ProgramSource::product)
      known.push_back({0, program.schedule, Trials::result_of(label)});
  return known;
}

Error ProgramMaker::search(const Space& space, Explorer& explorer, CostModel& model,
                           ProgramSource source, int count) {
  Trials trials(*this, space, source);
  TuneOptions options;
  options.batch = kSearchBatch, options.jobs = of_.place_.jobs;
  TaskTuner tuner(of_.task_.name, space, explorer, &model, trials, options);
  // A predicted search begins as the product's does, without labels: its first batch holds the
  // programs that the network alone takes for the best, right or wrong.
  if (source == ProgramSource::search) tuner.know(known_results());
  // A space without further legal points is no failure of the set.
  llvm::consumeError(tuner.run(count, stop_).takeError());
  return trials.take_error();
}

Error ProgramMaker::make_neighbours(const Space& space, int count) {
  count -= count_of(ProgramSource::neighbour);
  const Label* best = nullptr;
  for (const auto& [id, label] : of_.labels_)
    if (label.status == Status::ok && points_.contains(id) &&
        (!best || label.seconds() < best->seconds()))
      best = &label;
  if (!best || count <= 0) return Error::success();
  std::mt19937_64 random(seed_for(of_.task_, "neighbours"));
  const Point from = points_.at(best->program);
  return make_drawn(space, count, ProgramSource::neighbour,
                    [&] { return space.mutate(from, random); });
}

Error ProgramMaker::make_product(int count) {
  TW_ASSIGN(const Space space,
            search_space(of_.lowered_, *of_.lowered_for_, {.sketches = SketchSource::templates}));
  std::mt19937_64 random(seed_for(of_.task_, "product"));
  return make_drawn(space, count, ProgramSource::product, [&] { return space.sample(random); });
}

}  // namespace tw
