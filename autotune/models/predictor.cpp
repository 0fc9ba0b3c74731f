#include "autotune/models/predictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "support/parallel.h"

namespace tw {
namespace {

struct Readable {
  const char* name;
  size_t rank, columns;
};
// Inputs in the order of Predictor::Reads
std::array<Readable, 5> readable() {
  return {{{"steps", 3, step_feature_names().size()},
           {"loops", 3, loop_feature_names().size()},
           {"one_shot", 2, one_shot_feature_names().size()},
           {"task", 2, task_feature_names().size()},
           {"hardware", 2, hardware_feature_names().size()}}};
}
constexpr std::array<const char*, 3> kOutputs = {"score", "spread", "embedding"};

// Reads "1,2.5" as numbers; empty: the text is no such list.
FeatureRow numbers_of(const std::string& text) {
  FeatureRow out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    out.push_back(std::strtof(text.substr(at, end - at).c_str(), nullptr));
    at = end + 1;
  }
  return out;
}

// Copies rows one after the other, as many as fit. The rest of `to` is zero.
void copy_rows(const std::vector<FeatureRow>& rows, std::span<float> to) {
  size_t at = 0;
  for (const FeatureRow& row : rows) {
    if (at + row.size() > to.size()) break;
    std::ranges::copy(row, to.begin() + static_cast<ptrdiff_t>(at));
    at += row.size();
  }
  std::ranges::fill(to.subspan(at), 0.0f);
}

}  // namespace

PredictedTask predicted_task(std::vector<std::shared_ptr<const Kernel>> lowered,
                             const Target& target, int threads) {
  PredictedTask out{std::move(lowered), {}, hardware_row(target, threads)};
  for (const auto& kernel : out.lowered) out.rows.push_back(task_row(*kernel));
  return out;
}

PredictedTask predicted_task(const Task& task, const Target& target, int threads) {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const Variant& variant : task.variants)
    kernels.push_back(std::make_shared<const Kernel>(variant.lowered.kernel));
  return predicted_task(std::move(kernels), target, threads);
}

Predictor::~Predictor() {
  if (context_) api_->destroy(context_);
}

std::string Predictor::value(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? "" : found->second;
}

Error Predictor::wrong(const std::string& what) const {
  return make_error(DiagCode::invalid_argument, "'{0}' is no predictor of this version: {1}", name_,
                    what);
}

Expected<std::unique_ptr<Predictor>> Predictor::create(std::shared_ptr<const tw_api> api,
                                                       Metadata metadata, std::string name) {
  std::unique_ptr<Predictor> out(
      new Predictor(std::move(api), std::move(metadata), std::move(name)));
  TW_TRY(out->describe());
  tw_options options{};
  options.size = sizeof options, options.threads = 1;
  if (const tw_status status = out->api_->create(&options, &out->context_); status != TW_OK)
    return out->wrong(out->api_->status_text(status));
  return out;
}

Error Predictor::describe() {
  if (kind().empty()) return wrong("it does not say what kind it is");
  if (api_->symbol_count != 0) return wrong("it has free dimensions");
  task_least_ = numbers_of(value("task_least")), task_most_ = numbers_of(value("task_most"));
  gain_variance_ = numbers_of(value("gain_variance"));
  for (const FeatureRow& row : {task_least_, task_most_})
    if (!row.empty() && row.size() != task_feature_names().size())
      return wrong("it knows other numbers of tasks");
  for (int32_t i = 0; i < api_->input_count; ++i) TW_TRY(add_input(api_->inputs[i]));
  for (int32_t i = 0; i < api_->output_count; ++i) TW_TRY(add_output(api_->outputs[i]));
  const Output* embedding = output("embedding");
  if (!gain_variance_.empty() && (!embedding || gain_variance_.size() != embedding->columns + 2))
    return wrong("its 'gain_variance' is of another embedding");
  return inputs_.empty() || !output("score") ? wrong("it reads or scores nothing")
                                             : Error::success();
}

Error Predictor::add_input(const tw_tensor_info& info) {
  const auto list = readable();
  const auto known = std::ranges::find_if(
      list, [&](const Readable& r) { return std::string_view(info.name) == r.name; });
  if (known == list.end())
    return wrong(std::string("it reads '") + info.name + "', which nobody knows here");
  const std::span<const int64_t> dims(info.dims, static_cast<size_t>(info.rank));
  if (info.dtype != TW_F32 || dims.size() != known->rank ||
      dims.back() != static_cast<int64_t>(known->columns))
    return wrong(std::string("its input '") + info.name + "' is not [batch, " +
                 (known->rank == 3 ? "rows, " : "") + std::to_string(known->columns) + "] of f32");
  if (batch_ == 0) batch_ = static_cast<size_t>(dims[0]);
  if (static_cast<size_t>(dims[0]) != batch_ || batch_ == 0)
    return wrong("its inputs have different batches");
  Input input{static_cast<Reads>(known - list.begin()), 1, known->columns};
  if (known->rank == 3) input.rows = static_cast<size_t>(dims[1]);
  input.values.resize(batch_ * input.rows * input.columns);
  inputs_.push_back(std::move(input));
  return Error::success();
}

Error Predictor::add_output(const tw_tensor_info& info) {
  const std::string name = info.name;
  const std::span<const int64_t> dims(info.dims, static_cast<size_t>(info.rank));
  const size_t rank = name == "embedding" ? 2 : 1;
  if (std::ranges::find(kOutputs, name) == kOutputs.end() || info.dtype != TW_F32 ||
      dims.size() != rank || static_cast<size_t>(dims[0]) != batch_)
    return wrong("its output '" + name +
                 "' is not one of score [batch], spread [batch] and "
                 "embedding [batch, size], of f32");
  Output output{name, rank == 2 ? static_cast<size_t>(dims[1]) : 1};
  output.values.resize(batch_ * output.columns);
  outputs_.push_back(std::move(output));
  return Error::success();
}

const Predictor::Output* Predictor::output(const std::string& name) const {
  const auto found = std::ranges::find(outputs_, name, &Output::name);
  return found == outputs_.end() ? nullptr : &*found;
}

// Callable from several threads at once, for different rows.
void Predictor::place(const PredictedTask& task, const Candidate& candidate, size_t row) {
  const auto variant = static_cast<size_t>(candidate.variant);
  for (Input& input : inputs_) {
    const size_t size = input.rows * input.columns;
    const std::span<float> to(input.values.data() + row * size, size);
    switch (input.reads) {
      case Reads::steps: copy_rows(step_rows(candidate.schedule), to); break;
      case Reads::loops: copy_rows(loop_rows(candidate.run->kernel), to); break;
      case Reads::one_shot:
        copy_rows({one_shot_row(*task.lowered[variant], candidate.schedule, candidate.run->kernel)},
                  to);
        break;
      case Reads::task: copy_rows({task.rows[variant]}, to); break;
      case Reads::hardware: copy_rows({task.hardware}, to); break;
    }
  }
}

Error Predictor::run() {
  std::vector<tw_tensor> in, out;
  for (size_t i = 0; i < inputs_.size(); ++i)
    in.push_back({inputs_[i].values.data(), inputs_[i].values.size() * sizeof(float), TW_F32,
                  api_->inputs[i].rank, api_->inputs[i].dims});
  for (size_t i = 0; i < outputs_.size(); ++i)
    out.push_back({outputs_[i].values.data(), outputs_[i].values.size() * sizeof(float), TW_F32,
                   api_->outputs[i].rank, nullptr});
  const tw_status status = api_->run(context_, in.data(), out.data());
  return status == TW_OK ? Error::success() : wrong(api_->last_error(context_));
}

bool Predictor::has_seen(const PredictedTask& task) const {
  constexpr float kBeyond = 0.5f;
  const FeatureRow& row = task.rows.front();
  for (size_t i = 0; i < row.size(); ++i) {
    if (i < task_least_.size() && row[i] < task_least_[i] - kBeyond) return false;
    if (i < task_most_.size() && row[i] > task_most_[i] + kBeyond) return false;
  }
  return true;
}

double Predictor::gain_variance(const Prediction& a, const Prediction& b) const {
  if (gain_variance_.empty()) return a.spread * a.spread + b.spread * b.spread;
  const double d = a.score - b.score;
  double variance = gain_variance_[0] + gain_variance_[1] * d * d;
  for (size_t i = 0; i < a.embedding.size(); ++i) {
    const double e = a.embedding[i] - b.embedding[i];
    variance += gain_variance_[i + 2] * e * e;
  }
  return variance;
}

Expected<std::vector<Prediction>> Predictor::predict(const PredictedTask& task,
                                                     std::span<const Candidate> candidates,
                                                     int jobs) {
  const Output *score = output("score"), *spread = output("spread"),
               *embedding = output("embedding");
  const std::lock_guard lock(running_);
  std::vector<Prediction> all;
  for (size_t begin = 0; begin < candidates.size(); begin += batch_) {
    const size_t count = std::min(batch_, candidates.size() - begin);
    TW_TRY(parallel_for(jobs, count, [&](size_t i) -> Error {
      place(task, candidates[begin + i], i);
      return Error::success();
    }));
    TW_TRY(run());
    for (size_t i = 0; i < count; ++i) {
      Prediction& p = all.emplace_back();
      p.score = score->values[i];
      if (spread) p.spread = spread->values[i];
      if (!embedding) continue;
      const auto from = embedding->values.begin() + static_cast<ptrdiff_t>(i * embedding->columns);
      p.embedding.assign(from, from + static_cast<ptrdiff_t>(embedding->columns));
    }
  }
  return all;
}

std::vector<std::string> PredictorSet::networks() const {
  std::vector<std::string> list;
  for (const auto& member : members_) list.push_back(member->network());
  return list;
}

void PredictorSet::apply_heads(size_t member, std::vector<Prediction>& predictions) const {
  if (!heads_) return;
  const std::vector<double>& weights = heads_->weights[member];
  for (Prediction& p : predictions) {
    p.score *= heads_->own_shares[member];
    for (size_t e = 0; e < weights.size() && e < p.embedding.size(); ++e)
      p.score += weights[e] * static_cast<double>(p.embedding[e]);
    if (heads_->spread > 0) p.spread = heads_->spread;
  }
}

Expected<std::vector<Prediction>> PredictorSet::predict(const PredictedTask& task,
                                                        std::span<const Candidate> candidates,
                                                        int jobs, size_t members) const {
  const size_t count = members == 0 ? members_.size() : std::min(members, members_.size());
  std::vector<Prediction> all(candidates.size());
  std::vector<double> squares(candidates.size());
  for (size_t m = 0; m < count; ++m) {
    TW_ASSIGN(std::vector<Prediction> own, by_member(m, task, candidates, jobs));
    apply_heads(m, own);
    for (size_t i = 0; i < own.size(); ++i) {
      const double score = own[i].score, spread = own[i].spread;
      if (m == 0) all[i].embedding = own[i].embedding;
      const auto share = 1 / static_cast<double>(count);
      all[i].score += share * score;
      all[i].spread += share * spread * spread;
      squares[i] += share * score * score;
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double between = std::max(0.0, squares[i] - all[i].score * all[i].score);
    all[i].spread = std::sqrt(all[i].spread + between);
  }
  return all;
}

Expected<std::vector<PredictedGain>> PredictorSet::gains(const PredictedTask& task,
                                                         std::span<const Candidate> candidates,
                                                         int jobs) const {
  std::vector<PredictedGain> all(candidates.size());
  std::vector<double> squares(candidates.size()), variances(candidates.size());
  const auto share = 1 / static_cast<double>(members_.size());
  for (size_t m = 0; m < members_.size(); ++m) {
    TW_ASSIGN(std::vector<Prediction> own, by_member(m, task, candidates, jobs));
    apply_heads(m, own);
    for (size_t i = 0; i < own.size(); ++i) {
      const double gain = own[i].score - own.front().score;
      all[i].score += share * gain;
      squares[i] += share * gain * gain;
      variances[i] += share * members_[m]->gain_variance(own[i], own.front());
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double between = std::max(0.0, squares[i] - all[i].score * all[i].score);
    all[i].spread = std::sqrt(variances[i] + between);
  }
  return all;
}

std::vector<double> PredictorModel::score(std::span<const Candidate> candidates) {
  const std::vector<Prediction> all = llvm::cantFail(
      predictors_->predict(task_, candidates, jobs_, members_));
  std::vector<double> scores;
  for (const Prediction& p : all) scores.push_back(p.score);
  return scores;
}

}  // namespace tw
