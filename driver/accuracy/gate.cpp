#include "driver/accuracy/gate.h"

#include <algorithm>
#include <map>

#include "driver/accuracy/samples.h"
#include "driver/accuracy/stand_in.h"
#include "driver/accuracy/take_back.h"
#include "driver/compile/manifest.h"
#include "driver/run/reference.h"
#include "driver/run/time_model.h"
#include "ir/dim_names.h"
#include "packager/artifact.h"
#include "program/not_pinned.h"

namespace tw {
namespace {

constexpr double kTimed = 0.5;  // seconds of timed runs
constexpr size_t kBlamed = 5;   // layers that an error names

// The model with nothing rounded for speed: it computes in f64, and no rows are cut to 8 bits.
Expected<ReferenceModel> exact_model(const CompileOptions& options, const Target& target) {
  TW_ASSIGN(Model model, import_model(options));
  for (const NodeId id : model.graph.order())
    if (auto* product = std::get_if<op::MatMulNBits>(&model.graph.node(id).attrs))
      product->byte_rows = false;
  return ReferenceModel::compile(std::move(model), target);
}

Expected<LoadedModel> open_here(const std::string& library) {
  Expected<LoadedModel> model = LoadedModel::open(library, Integrity::trust);
  if (model) return model;
  std::vector<Diag> diags = take_diags(model.takeError());
  for (Diag& d : diags)
    d.notes.push_back("the error of a budget is measured by a run on this machine");
  return make_error(std::move(diags));
}

class AccuracyGate {
 public:
  AccuracyGate(const CompileReport& compiled, CompileOptions& options, const Target& target,
               const AccuracyRequest& request, const OnStage& stage)
      : compiled_(compiled),
        out_(options.algorithms),
        options_(options),
        target_(target),
        measured_(target),
        request_(request),
        stage_(stage) {
    report_.limit = request.limit;
    report_.seeded = request.data.empty();
    report_.frozen = request.frozen;
    for (const LossyLayer& layer : compiled.lossy) report_.layers.push_back({layer, {}, {}, false});
  }

  Expected<AccuracyReport> run() {
    TW_ASSIGN(const std::optional<Target> other, stand_in_for(target_));
    own_code_ = !other;
    if (other) {
      measured_ = *other;
      options_.schedules = nullptr;  // made for target_, not for measured_
    }
    if (own_code_ && options_.emit == Emit::so) {
      TW_ASSIGN(const LoadedModel library, open_here(compiled_.output));
      return hold(library.api(), compiled_.output);
    }
    report_.stand_in = measured_.name;
    settle();
    begin("accuracy: a library for '" + measured_.name + "'");
    TW_ASSIGN(const CompiledNetwork library, compile_without({}));
    TW_TRY(check_same_choices(compiled_, library.report(), target_));
    return hold(library.api(), library.report().output);
  }

 private:
  Expected<AccuracyReport> hold(const tw_api& api, const std::string& library) {
    TW_TRY(look_at_data(api));
    begin("accuracy: compare");
    TW_ASSIGN(report_.first, error_of(api));
    report_.error = report_.first;
    settle();
    if (request_.by_layer) TW_TRY(look_at_layers(api, library));
    report_.within = report_.first <= request_.limit.most;
    if (!report_.within && !request_.frozen) TW_TRY(take_choices_back());
    return std::move(report_);
  }

  void begin(const std::string& stage) {
    if (stage_) stage_(stage);
  }

  // Fills samples_, and wanted_ with the exact model's outputs.
  Error look_at_data(const tw_api& api) {
    TW_ASSIGN(samples_, samples_for({request_.data, request_.samples, options_.given.forms,
                                     size_flags(compiled_.example, compiled_.symbol_names)},
                                    input_specs(api)));
    report_.samples = samples_.size();
    begin("accuracy: reference");
    TW_ASSIGN(const ReferenceModel exact, exact_model(options_, measured_));
    for (size_t i = 0; i < samples_.size(); ++i) {
      TW_ASSIGN(Inputs inputs, samples_.at(i));
      TW_ASSIGN(std::vector<Tensor> outputs, exact.run(std::move(inputs)));
      wanted_.push_back(std::move(outputs));
    }
    return Error::success();
  }

  Expected<double> error_of(const tw_api& api) {
    OutputErrors errors(request_.limit.measure);
    for (size_t i = 0; i < samples_.size(); ++i) {
      TW_ASSIGN(Inputs inputs, samples_.at(i));
      TW_ASSIGN(const std::vector<Tensor> got,
                outputs_of(api, std::move(inputs), request_.threads));
      errors.add(got, wanted_[i]);
    }
    return errors.value();
  }

  // Fixes all choices. A build without some of them must not choose anew for the other layers, nor
  // round layers that the lock keeps exact.
  void settle() {
    options_.algorithms.exact.insert(compiled_.exact.begin(), compiled_.exact.end());
    for (const auto& [name, algorithm] : compiled_.algorithms)
      options_.algorithms.settled.emplace(name, algorithm);
  }

  Expected<CompiledNetwork> compile_without(const std::set<size_t>& layers) const {
    CompileOptions options = options_;
    for (const size_t layer : layers)
      options.algorithms.exact.insert(report_.layers[layer].layer.name);
    return CompiledNetwork::compile(std::move(options), measured_);
  }

  Expected<double> error_without(const std::set<size_t>& layers) {
    begin("accuracy: " + std::to_string(layers.size()) + " choices taken back");
    TW_ASSIGN(const CompiledNetwork network, compile_without(layers));
    return error_of(network.api());
  }

  // The error with the choices of layers [first, last) alone
  Expected<double> error_alone(size_t first, size_t last) {
    begin(last - first == 1
              ? "accuracy: layer " + std::to_string(last)
              : "accuracy: layers " + std::to_string(first + 1) + " to " + std::to_string(last));
    if (last - first == 1 && report_.layers[first].error) return *report_.layers[first].error;
    std::set<size_t> others;
    for (size_t i = 0; i < report_.layers.size(); ++i)
      if (i < first || i >= last) others.insert(i);
    TW_ASSIGN(const CompiledNetwork network, compile_without(others));
    TW_ASSIGN(const double error, error_of(network.api()));
    if (last - first == 1) report_.layers[first].error = error;
    return error;
  }

  std::set<size_t> all_layers() const {
    std::set<size_t> all;
    for (size_t i = 0; i < report_.layers.size(); ++i) all.insert(i);
    return all;
  }

  // Measures each layer's error alone, and its times where the target's own code runs.
  Error look_at_layers(const tw_api& api, const std::string& library) {
    for (size_t i = 0; i < report_.layers.size(); ++i) TW_TRY(error_alone(i, i + 1).takeError());
    if (!own_code_) return Error::success();
    begin("accuracy: times");
    TW_ASSIGN(const CompiledNetwork exact, compile_without(all_layers()));
    TW_ASSIGN(const auto with, call_times(api, library));
    TW_ASSIGN(const auto without, call_times(exact.api(), exact.report().output));
    for (LayerAccuracy& l : report_.layers) {
      const std::string first = first_node(l.layer.group);
      const auto a = with.find(first), b = without.find(first);
      if (a != with.end() && b != without.end()) l.saved_ms = b->second - a->second;
    }
    return Error::success();
  }

  // The first node in a call's name. It names the call in every build; behind it, casts of the next
  // layer may follow.
  static std::string first_node(const std::string& group) {
    return group.substr(0, group.find('+'));
  }

  // Median milliseconds of calls, by the call's first node
  Expected<std::map<std::string, double>> call_times(const tw_api& api,
                                                     const std::string& library) {
    TW_ASSIGN(const std::string text, read_manifest(library, Integrity::trust));
    TW_ASSIGN(const Manifest manifest, parse_manifest(text, library));
    TW_ASSIGN(Inputs inputs, samples_.at(0));
    TW_ASSIGN(ModelRun run, ModelRun::create(api, std::move(inputs), request_.threads));
    TW_TRY(run.run());
    TW_ASSIGN(const std::vector<double> ms, time_calls(run, {0, kTimed}));
    std::map<std::string, double> times;
    for (size_t i = 0; i < std::min(ms.size(), manifest.calls.size()); ++i)
      times[first_node(manifest.calls[i].name)] += ms[i];
    return times;
  }

  Error take_choices_back() {
    TW_ASSIGN(const double least, error_without(all_layers()));
    if (least > request_.limit.most) {
      report_.error = least;
      return find_worst();
    }
    const ChoiceErrors errors{
        report_.layers.size(),
        [this](size_t first, size_t last) { return error_alone(first, last); },
        [this](const std::set<size_t>& layers) { return error_without(layers); }};
    TW_ASSIGN(const TakenBack taken, take_back(errors, report_.first, request_.limit.most));
    for (const size_t layer : taken.choices) {
      report_.layers[layer].exact = true;
      options_.algorithms.exact.insert(report_.layers[layer].layer.name);
    }
    report_.error = taken.error;
    report_.within = true;
    out_ = options_.algorithms;
    return Error::success();
  }

  // Looks for the layer that alone does most harm, and notes the errors of layers on its way.
  Error find_worst() {
    const ChoiceErrors errors{
        report_.layers.size(),
        [this](size_t first, size_t last) { return error_alone(first, last); },
        [](const std::set<size_t>&) -> Expected<double> { return 0.0; }};
    return take_back(errors, report_.first, request_.limit.most).takeError();
  }

  const CompileReport& compiled_;
  AlgorithmOptions& out_;
  CompileOptions options_;  // with all choices settled
  const Target& target_;
  Target measured_;  // target of the libraries that run
  bool own_code_ = true;
  const AccuracyRequest& request_;
  const OnStage& stage_;
  SampleSet samples_;
  std::vector<std::vector<Tensor>> wanted_;  // exact outputs, by sample
  AccuracyReport report_;
};

}  // namespace

Error over_accuracy(const AccuracyReport& report) {
  const ErrorMeasure measure = report.limit.measure;
  const std::string error = measure_text(report.first, measure);
  if (report.frozen)
    return make_error(DiagCode::over_budget,
                      "--frozen: the error is {0} with the layers that the lock keeps exact; the "
                      "budget is {1}: nothing is written; 'tilewright lock --max-error' writes the "
                      "lock anew",
                      error, to_string(report.limit));
  Diag diag{DiagCode::over_budget,
            "the error is " + error + ", and " + measure_text(report.error, measure) +
                " with every layer exact; the budget is " + to_string(report.limit) +
                ": nothing is written",
            {},
            {}};
  std::vector<const LayerAccuracy*> blamed;
  for (const LayerAccuracy& l : report.layers)
    if (l.error) blamed.push_back(&l);
  std::ranges::stable_sort(blamed, std::greater(),
                           [](const LayerAccuracy* l) { return *l->error; });
  blamed.resize(std::min(blamed.size(), kBlamed));
  for (const LayerAccuracy* l : blamed)
    diag.notes.push_back(l->layer.name + " (" + l->layer.op + ", " + l->layer.choice + "): alone " +
                         measure_text(*l->error, measure));
  return make_error(std::move(diag));
}

size_t AccuracyReport::taken_back() const {
  return static_cast<size_t>(std::ranges::count_if(layers, &LayerAccuracy::exact));
}

Expected<AccuracyReport> hold_accuracy(const CompileReport& compiled, CompileOptions& options,
                                       const Target& target, const AccuracyRequest& request,
                                       const OnStage& stage) {
  return AccuracyGate(compiled, options, target, request, stage).run();
}

}  // namespace tw
