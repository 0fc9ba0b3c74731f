#include "driver/quantize/quantize.h"

#include <algorithm>
#include <numeric>

#include "driver/accuracy/take_back.h"
#include "driver/compile/example_sizes.h"
#include "driver/run/time_model.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

class ModelQuantizer {
 public:
  ModelQuantizer(const QuantizeRequest& request, QuantizableModel model, SampleSet samples,
                 const OnStage& stage)
      : request_(request),
        model_(std::move(model)),
        samples_(std::move(samples)),
        stage_(stage),
        form_(request.form) {
    for (QuantLayer& layer : model_.layers())
      report_.layers.push_back({std::move(layer), {}, false});
    report_.samples = samples_.size();
    if (request.max_error) report_.measure = request.max_error->measure;
  }

  Expected<QuantizeReport> run() {
    if (request_.equalize) report_.equalized = model_.equalize();
    if (request_.balance) TW_TRY(balance());
    begin("calibrate");
    std::optional<Rounding> rounding;
    if (request_.correct_biases)
      rounding = {[this](const ValueRanges& ranges) { return model_.shared(ranges); },
                  form_.signed_activations};
    TW_ASSIGN(calibration_, calibrate_on(model_.observed(), request_.rule, rounding));
    if (request_.correct_biases)
      form_.means = calibration_.means, form_.rounded_means = calibration_.rounded_means;
    QdqForm form = form_;
    begin("compare");
    TW_ASSIGN(report_.error, error_of(form));
    const bool too_much = request_.max_error && report_.error > request_.max_error->most;
    if (request_.by_layer) TW_TRY(look_at_layers());
    if (too_much) TW_TRY(keep_floats(form));
    report_.model = model_.quantized(calibration_.ranges, form);
    begin("time");
    TW_ASSIGN(report_.times, times_of(report_.model));
    return std::move(report_);
  }

 private:
  void begin(const std::string& stage) {
    if (stage_) stage_(stage);
  }

  Expected<Calibration> calibrate_on(const std::vector<std::string>& values,
                                     const CalibrationRule& rule,
                                     const std::optional<Rounding>& rounding = {}) {
    return calibrate(model_.observing(values), values, request_.build, samples_, rule, rounding);
  }

  Error balance() {
    const std::vector<std::string> values = model_.balanceable();
    if (values.empty()) return Error::success();
    begin("balance");
    TW_ASSIGN(const Calibration seen, calibrate_on(values, {}));
    report_.balanced = model_.balance(seen.largest);
    return Error::success();
  }

  Expected<double> error_of(const QdqForm& form) {
    TW_ASSIGN(const CompiledNetwork network,
              request_.build.compile(model_.quantized(calibration_.ranges, form)));
    OutputErrors error(report_.measure);
    for (size_t i = 0; i < samples_.size(); ++i) {
      TW_ASSIGN(const Inputs inputs, samples_.at(i));
      TW_ASSIGN(const std::vector<Tensor> got, network.run(inputs));
      error.add(got, calibration_.outputs[i]);
    }
    return error.value();
  }

  // Times both models on the first sample, in turns.
  Expected<QuantizedTimes> times_of(const std::string& quantized) {
    constexpr int kTurns = 3;
    constexpr TimingOptions kTiming{.seconds = 0.1};
    TW_ASSIGN(const CompiledNetwork floats, request_.build.compile(model_.observing({})));
    TW_ASSIGN(const CompiledNetwork integers, request_.build.compile(quantized));
    TW_ASSIGN(const Inputs inputs, samples_.at(0));
    TW_ASSIGN(ModelRun run_floats, ModelRun::create(floats.api(), inputs, 1));
    TW_ASSIGN(ModelRun run_integers, ModelRun::create(integers.api(), inputs, 1));
    TW_TRY(run_floats.run());
    TW_TRY(run_integers.run());
    std::vector<double> all_floats, all_integers;
    for (int turn = 0; turn < kTurns; ++turn) {
      TW_ASSIGN(const std::vector<double> some_floats, time_runs(run_floats, kTiming));
      TW_ASSIGN(const std::vector<double> some_integers, time_runs(run_integers, kTiming));
      std::ranges::copy(some_floats, std::back_inserter(all_floats));
      std::ranges::copy(some_integers, std::back_inserter(all_integers));
    }
    return QuantizedTimes{statistics(all_floats).median, statistics(all_integers).median};
  }

  // The error with the layers [first, last) alone quantized
  Expected<double> error_alone(size_t first, size_t last) {
    begin(last - first == 1
              ? "layer " + std::to_string(last)
              : "layers " + std::to_string(first + 1) + " to " + std::to_string(last));
    QdqForm form = form_;
    for (size_t i = 0; i < report_.layers.size(); ++i)
      if (i < first || i >= last) form.floats.insert(i);
    TW_ASSIGN(const double error, error_of(form));
    if (last - first == 1) report_.layers[first].error = error;
    return error;
  }

  Error look_at_layers() {
    for (size_t i = 0; i < report_.layers.size(); ++i) TW_TRY(error_alone(i, i + 1).takeError());
    return Error::success();
  }

  // Keeps the most harmful layers in floats until the error is within the budget.
  Error keep_floats(QdqForm& form) {
    const auto without = [&](const std::set<size_t>& layers) {
      begin("error with " + std::to_string(layers.size()) + " layers in floats");
      form.floats = layers;
      return error_of(form);
    };
    const ChoiceErrors errors{
        report_.layers.size(),
        [this](size_t first, size_t last) { return error_alone(first, last); }, without};
    TW_ASSIGN(const TakenBack taken, take_back(errors, report_.error, request_.max_error->most));
    for (const size_t layer : taken.choices) report_.layers[layer].in_floats = true;
    if (taken.choices.size() == report_.layers.size()) return cannot_meet();
    report_.error = taken.error;
    return Error::success();
  }

  Error cannot_meet() const {
    constexpr size_t kNamed = 5;
    std::vector<size_t> order(report_.layers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t i) { return report_.layers[i].error.value_or(0); });
    Diag diag{DiagCode::over_budget,
              "the error is " + measure_text(report_.error, report_.measure) +
                  ", and only with all layers in floats " + to_string(*request_.max_error) +
                  ": no model is written",
              {},
              {}};
    for (size_t i = 0; i < std::min(kNamed, order.size()); ++i) {
      const LayerReport& layer = report_.layers[order[i]];
      diag.notes.push_back(layer.layer.name + " (" + layer.layer.op + "): alone " +
                           measure_text(layer.error.value_or(0), report_.measure));
    }
    return make_error(std::move(diag));
  }

  const QuantizeRequest& request_;
  QuantizableModel model_;
  const SampleSet samples_;
  const OnStage& stage_;
  QdqForm form_;  // with no layer in floats
  Calibration calibration_;
  QuantizeReport report_;
};

// Types of the model's inputs, from its graph; widened: f16 has become f32
std::vector<TensorSpec> specs_of(const Model& model, bool widened) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : model.graph.inputs()) {
    const Value& value = model.graph.value(id);
    const bool was_half = widened && value.type.dtype == DType::f16;
    specs.push_back({value.name, was_half ? DType::f32 : value.type.dtype, value.type.shape});
  }
  return specs;
}

Error check_names(const InputForms& forms, const std::vector<TensorSpec>& specs) {
  std::vector<Diag> problems;
  std::string names;
  for (const TensorSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
  for (const auto& [name, form] : forms.of)
    if (std::ranges::find(specs, name, &TensorSpec::name) == specs.end())
      problems.push_back(
          {DiagCode::invalid_argument,
           "--inputs: the model has no input '" + name + "'; its inputs are " + names,
           {},
           {}});
  return make_error(std::move(problems));
}

}  // namespace

Expected<QuantizeReport> quantize_model(const QuantizeRequest& request, const OnStage& stage) {
  if (request.data.empty() && request.random == 0)
    return make_error(DiagCode::invalid_argument,
                      "nothing to calibrate on: give --data DIR with inputs as the model will see "
                      "them (.npy, .npz, .pb or pictures), or --random N, which only shows that it "
                      "works");
  if (stage) stage("import");
  TW_ASSIGN(const Model imported, import_onnx(request.model, {request.dims, {}}));
  TW_ASSIGN(QuantizableModel model, QuantizableModel::open(request.model));
  model.bind(imported.dims);
  const bool widened = model.widen_halves();
  TW_TRY(model.fits_file());
  if (model.layers().empty())
    return make_error(DiagCode::invalid_argument,
                      "'{0}' has no Conv, ConvTranspose, Gemm or MatMul in f32 to quantize",
                      request.model);
  const std::vector<TensorSpec> specs = with_names(specs_of(imported, widened),
                                                   imported.symbol_names);
  TW_TRY(check_names(request.inputs, specs));
  TW_ASSIGN(SampleSet samples, request.data.empty()
                                   ? SampleSet::random(request.random, specs)
                                   : SampleSet::open(request.data, specs, request.inputs));
  if (request.samples > 0) samples.keep(static_cast<size_t>(request.samples));
  for (size_t i = 0; i < samples.size(); ++i)  // checks that each fits the model
    TW_TRY(samples.at(i).takeError());
  TW_ASSIGN(QuantizeReport report,
            ModelQuantizer(request, std::move(model), std::move(samples), stage).run());
  report.widened = widened;
  return report;
}

Expected<PackedModel> quantize_weights(const std::string& path,
                                       const std::map<std::string, int64_t>& dims,
                                       const BlockForm& form) {
  TW_ASSIGN(QuantizableModel model, QuantizableModel::open(path));
  if (!dims.empty()) {
    TW_ASSIGN(const ModelOutline known, outline(path));
    std::map<std::string, int64_t> bound;
    for (const auto& [text, size] : dims) {
      TW_ASSIGN(const std::string name, find_dim(text, known.shaped));
      bound[name] = size;
    }
    model.bind(bound);
  }
  const PackedWeights packed = model.pack_weights(form);
  if (packed.matrices + packed.tables == 0)
    return make_error(DiagCode::invalid_argument,
                      "'{0}' has no MatMul, Gemm or Gather with a constant matrix of f32 or f16 to "
                      "quantize",
                      path);
  TW_ASSIGN(std::string bytes, model.bytes());
  return PackedModel{std::move(bytes), packed};
}

}  // namespace tw
