// Cost models that were trained beforehand (autotune/predictor). They are networks, compiled by
// this program, that score candidates of tasks they have never seen. They measure nothing and learn
// nothing.
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

// A higher score is faster: it is the logarithm to base 2 of the speed, plus a constant of the
// task. `spread` is the score's standard deviation; 0: unknown.
struct Prediction {
  double score = 0, spread = 0;
  std::vector<float> embedding{};  // input for a chip's own head; empty: none
};

// How much faster a candidate is than another one of its task: the binary logarithm of the ratio of
// their speeds, and its standard deviation
struct PredictedGain {
  double score = 0, spread = 0;
};

// The data that all candidates of a task on a target share
struct PredictedTask {
  std::vector<std::shared_ptr<const Kernel>> lowered;  // by variant
  std::vector<FeatureRow> rows;                        // task_row of each variant
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
  // The outputs are `score` [batch] and, optionally, `spread` [batch] and `embedding` [batch,
  // size]. Errors contain `name`. Errors: other inputs or outputs, columns of another version, no
  // batch.
  static Expected<std::unique_ptr<Predictor>> create(std::shared_ptr<const tw_api> api,
                                                     Metadata metadata, std::string name);
  ~Predictor();
  Predictor(const Predictor&) = delete;

  const Metadata& metadata() const { return metadata_; }
  std::string kind() const { return value("kind"); }  // "ranker", "tlp", ..
  bool states_spread() const { return output("spread") != nullptr; }
  std::string network() const { return value("network"); }  // hash of its source model
  // The variance of the error of the difference of two scores of a task, which says the less the
  // more alike the candidates are: c + s d^2 + sum of v_i e_i^2, where d is the difference and e
  // that of the embeddings. Metadata `gain_variance`: c, s, and the v_i. Without the metadata it is
  // that of two scores whose errors have nothing in common.
  double gain_variance(const Prediction& a, const Prediction& b) const;
  // True when no number of task_row lies outside of the range of the training tasks (metadata
  // `task_least`, `task_most`) by more than a half. Without the metadata it is always true.
  bool has_seen(const PredictedTask& task) const;
  // Reads features on up to `jobs` threads; the network runs on one. Any thread may call it.
  Expected<std::vector<Prediction>> predict(const PredictedTask& task,
                                            std::span<const Candidate> candidates, int jobs);

 private:
  enum class Reads : uint8_t { steps, loops, one_shot, task, hardware };
  struct Input {
    Reads reads{};
    size_t rows = 1, columns = 0;  // numbers of one candidate
    std::vector<float> values{};
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
  FeatureRow task_least_, task_most_, gain_variance_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  tw_context* context_ = nullptr;
  std::mutex running_;  // held while one caller uses the batch's memory and the context
};

// Linear heads over embeddings, fitted to a chip that training has not seen (tilewright adapt).
// Their results are added to the network's own score.
struct PredictorHeads {
  std::vector<std::vector<double>> weights;  // weights of each member, by place in its embedding
  std::vector<double> own_shares;            // factor of each member's own score
  double spread = 0;  // standard deviation of the fit; 0: use the network's spread
};

// Predictors of one kind, trained from different seeds
class PredictorSet {
 public:
  explicit PredictorSet(std::vector<std::unique_ptr<Predictor>> members,
                        std::optional<PredictorHeads> heads = std::nullopt)
      : members_(std::move(members)), heads_(std::move(heads)) {}

  std::string kind() const { return members_.front()->kind(); }
  size_t size() const { return members_.size(); }
  // True if it says how far off its scores may be. Otherwise no choice of its is sure to gain.
  bool states_spread() const { return members_.front()->states_spread(); }
  std::vector<std::string> networks() const;  // hashes of the members
  bool has_seen(const PredictedTask& task) const { return members_.front()->has_seen(task); }
  // The mean of the members' scores, for each candidate in order. The spread combines the members'
  // own spreads and the distance between their scores. `members` limits the number of members; 0:
  // all. Embeddings are the first member's.
  Expected<std::vector<Prediction>> predict(const PredictedTask& task,
                                            std::span<const Candidate> candidates, int jobs,
                                            size_t members = 0) const;
  // The gain of each candidate over the first one, by the mean of the members. The spread combines
  // the members' own and how far their gains are from each other.
  Expected<std::vector<PredictedGain>> gains(const PredictedTask& task,
                                             std::span<const Candidate> candidates, int jobs) const;
  // The predictions of one member, without heads
  Expected<std::vector<Prediction>> by_member(size_t member, const PredictedTask& task,
                                              std::span<const Candidate> candidates,
                                              int jobs) const {
    return members_[member]->predict(task, candidates, jobs);
  }

 private:
  void apply_heads(size_t member, std::vector<Prediction>& predictions) const;
  std::vector<std::unique_ptr<Predictor>> members_;
  std::optional<PredictorHeads> heads_;
};

// Predictors as a cost model for a search. `members` works as in PredictorSet::predict.
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
