// Cost models that were trained before (autotune/predictor): networks that this program compiled,
// which score candidates of a task that they have never seen. Nothing is measured, nothing learned.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "autotune/features/features.h"
#include "autotune/search.h"
#include "autotune/task.h"
#include "ir/target.h"
#include "runtime/tilewright.h"

namespace tw {

// A higher score is faster: the logarithm to base 2 of the speed, up to a number that is the same
// for all candidates of a task. spread: how far off it may be, one standard deviation; 0: it does
// not say.
struct Prediction {
  double score = 0, spread = 0;
  std::vector<float> embedding{};  // what a chip's own head reads; empty: it has none
};

// What is the same for all candidates of a task on a target.
struct PredictedTask {
  std::vector<std::shared_ptr<const Kernel>> lowered;  // by variant
  std::vector<FeatureRow> rows;                        // task_row of each
  FeatureRow hardware;                                 // hardware_row
};
PredictedTask predicted_task(std::vector<std::shared_ptr<const Kernel>> lowered,
                             const Target& target, int threads);
PredictedTask predicted_task(const Task& task, const Target& target, int threads);

class Predictor {
 public:
  using Metadata = std::map<std::string, std::string>;
  // The network's inputs, each of `batch` rows, padded with zeros:
  //   steps [batch, rows, columns]  step_rows      one_shot [batch, 748]  one_shot_row
  //   loops [batch, rows, columns]  loop_rows      task [batch, columns]  task_row
  //   hardware [batch, columns]     hardware_row
  // and its outputs `score` [batch] and, where it has them, `spread` [batch] and `embedding`
  // [batch, size]. name: for errors. Errors: other inputs or outputs, columns of another version,
  // no batch.
  static Expected<std::unique_ptr<Predictor>> create(std::shared_ptr<const tw_api> api,
                                                     Metadata metadata, std::string name);
  ~Predictor();
  Predictor(const Predictor&) = delete;

  const Metadata& metadata() const { return metadata_; }
  std::string kind() const { return value("kind"); }        // "ranker", "tlp", ..
  std::string network() const { return value("network"); }  // hash of what it was compiled from
  // Whether training has seen tasks that are as large in every number of task_row, but for a half
  // (metadata `task_least`, `task_most`); without these it has seen all.
  bool has_seen(const PredictedTask& task) const;
  // On up to `jobs` threads for what it reads; the network itself runs on one. Any thread may ask.
  Expected<std::vector<Prediction>> predict(const PredictedTask& task,
                                            std::span<const Candidate> candidates, int jobs);

 private:
  enum class Reads : uint8_t { steps, loops, one_shot, task, hardware };
  struct Input {
    Reads reads{};
    size_t rows = 1, columns = 0;  // of a candidate
    std::vector<float> values{};   // of a batch
  };
  struct Output {
    std::string name;
    size_t columns = 1;
    std::vector<float> values{};
  };
  Predictor(std::shared_ptr<const tw_api> api, Metadata metadata, std::string name)
      : api_(std::move(api)), metadata_(std::move(metadata)), name_(std::move(name)) {}
  std::string value(const std::string& key) const;
  Error describe();
  Error add_input(const tw_tensor_info& info);
  Error add_output(const tw_tensor_info& info);
  Error wrong(const std::string& what) const;
  void place(const PredictedTask& task, const Candidate& candidate, size_t row);
  Error run();
  const Output* output(const std::string& name) const;

  std::shared_ptr<const tw_api> api_;
  Metadata metadata_;
  std::string name_;
  size_t batch_ = 0;
  FeatureRow task_least_, task_most_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  tw_context* context_ = nullptr;
  std::mutex running_;  // the batch's memory and the context serve one caller
};

// Linear heads over embeddings, fitted to a chip that training has not seen (tilewright adapt):
// what they give is added to the network's own score.
struct PredictorHeads {
  std::vector<std::vector<double>> weights;  // of each member, by place in its embedding
  std::vector<double> own_shares;            // of each member's own score
  double spread = 0;  // one standard deviation of what they were fitted to; 0: the network's own
};

// Predictors of one kind that were trained from different seeds.
class PredictorSet {
 public:
  explicit PredictorSet(std::vector<std::unique_ptr<Predictor>> members,
                        std::optional<PredictorHeads> heads = std::nullopt)
      : members_(std::move(members)), heads_(std::move(heads)) {}

  std::string kind() const { return members_.front()->kind(); }
  size_t size() const { return members_.size(); }
  std::vector<std::string> networks() const;  // of the members
  bool has_seen(const PredictedTask& task) const { return members_.front()->has_seen(task); }
  // The mean of the members' scores; spread: their own and how far they are from each other.
  // members: only so many of them, 0: all. Of each candidate in order; embeddings are those of the
  // first member.
  Expected<std::vector<Prediction>> predict(const PredictedTask& task,
                                            std::span<const Candidate> candidates, int jobs,
                                            size_t members = 0) const;
  // What one member says, without heads.
  Expected<std::vector<Prediction>> by_member(size_t member, const PredictedTask& task,
                                              std::span<const Candidate> candidates,
                                              int jobs) const {
    return members_[member]->predict(task, candidates, jobs);
  }

 private:
  std::vector<std::unique_ptr<Predictor>> members_;
  std::optional<PredictorHeads> heads_;
};

// Predictors as what a search asks. members: as in PredictorSet::predict.
class PredictorModel : public CostModel {
 public:
  PredictorModel(std::shared_ptr<const PredictorSet> predictors, PredictedTask task, int jobs,
                 size_t members = 0)
      : predictors_(std::move(predictors)),
        task_(std::move(task)),
        jobs_(jobs),
        members_(members) {}
  void fit(std::span<const Candidate>, std::span<const double>) override {}
  std::vector<double> score(std::span<const Candidate> candidates) override;

 private:
  std::shared_ptr<const PredictorSet> predictors_;
  PredictedTask task_;
  int jobs_;
  size_t members_;
};

}  // namespace tw
