// tilewright quantize: turns an ONNX file in floats into one with integers.
#include "driver/quantize/quantize.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/text/formatted.h"
#include "cli/untrusted.h"
#include "frontend/frontend.h"
#include "packager/output_file.h"

namespace tw {
namespace {

struct QuantizeArgs {
  std::string model, output, data, inputs, method = "minmax", activations = "u8", max_error;
  std::vector<std::string> dims;
  int random = 0, samples = 0, weight_bits = 8, bits = 8, block = 32;
  double percentile = CalibrationRule().percent;
  bool equalize = false, plain = false, layers = false, weights_only = false, asymmetric = false;
  UntrustedFlags untrusted;
};

std::string output_of(const QuantizeArgs& args) {
  if (!args.output.empty()) return args.output;
  std::string stem = args.model;
  if (stem.ends_with(".onnx")) stem.resize(stem.size() - 5);
  return stem + "_int" + std::to_string(args.weights_only ? args.bits : 8) + ".onnx";
}

Error check_quantize(const QuantizeArgs& args) {
  std::vector<Diag> problems;
  const auto problem = [&](const std::string& text) {
    problems.push_back({DiagCode::invalid_argument, text, {}, {}});
  };
  if (!range_method_from_name(args.method))
    problem("--method '" + args.method + "': one of minmax, percentile, mse, entropy");
  if (args.activations != "u8" && args.activations != "i8")
    problem("--activations '" + args.activations + "': one of u8, i8");
  if (args.weight_bits != 7 && args.weight_bits != 8) problem("--weight-bits is 7 or 8");
  if (args.percentile <= 50 || args.percentile > 100)
    problem("--percentile is more than 50 and 100 at most");
  if (args.bits != 2 && args.bits != 4 && args.bits != 8) problem("--bits is 2, 4 or 8");
  if (args.block < 16 || args.block > 256 || (args.block & (args.block - 1)) != 0)
    problem("--block is 16, 32, 64, 128 or 256");
  if (!args.data.empty() && args.random > 0) problem("give --data or --random, not both");
  if (args.asymmetric && !args.weights_only) problem("--asymmetric is of --weights-only");
  return make_error(std::move(problems));
}

Expected<QuantizeRequest> request_of(const QuantizeArgs& args) {
  QuantizeRequest request;
  request.model = args.model;
  request.data = args.data;
  request.random = args.random;
  request.samples = args.samples;
  TW_ASSIGN(request.inputs, parse_input_forms(args.inputs));
  TW_ASSIGN(request.dims, parse_dims(args.dims));
  TW_ASSIGN(request.build.target, load_target(kHostTarget, config_dirs()));
  request.rule = {*range_method_from_name(args.method), args.percentile};
  request.form.signed_activations = args.activations == "i8";
  request.form.weight_bits = args.weight_bits;
  request.equalize = args.equalize;
  request.balance = request.correct_biases = !args.plain;
  request.by_layer = args.layers;
  if (!args.max_error.empty()) {
    TW_ASSIGN(request.max_error, error_limit_from_text(args.max_error, ErrorMeasure::rms));
  }
  return request;
}

// Warnings about a model that is written and perhaps should not be used.
std::vector<std::string> warnings_of(const QuantizeArgs& args, const QuantizeReport& report) {
  constexpr double kMuch = 0.2, kGain = 1.05;
  std::vector<std::string> warnings;
  if (report.error >= kMuch) {
    std::string advice;
    if (args.data.empty()) advice += "calibrate on data as the model will see it (--data), ";
    if (!args.layers) advice += "see which layers do it (--layers), ";
    if (args.max_error.empty()) advice += "leave these in floats (--max-error rms:0.05), ";
    if (args.plain) advice += "leave out --plain, ";
    warnings.push_back(
        "the error is " + measure_text(report.error, report.measure) +
        ": outputs so far off are of little use; " + advice +
        (args.method == "mse" ? "or try --method percentile" : "or try --method mse"));
  }
  const auto floats = std::ranges::count_if(report.layers, &LayerReport::in_floats);
  if (report.times.speed_up() < kGain)
    warnings.push_back(
        formatted("%lld of %zu layers in integers gain nothing on this machine: %.2f times as fast "
                  "as floats; ",
                  static_cast<long long>(report.layers.size()) - static_cast<long long>(floats),
                  report.layers.size(), report.times.speed_up()) +
        (floats > 0 ? "allow a larger --max-error, or keep the model in floats"
                    : "keep the model in floats, unless it is for another chip or for its size"));
  return warnings;
}

Json to_json(const QuantizeReport& report, const std::string& output,
             const std::vector<std::string>& warnings) {
  Json::Array layers;
  for (const LayerReport& l : report.layers)
    layers.push_back(Json::Object{{"name", l.layer.name},
                                  {"op", l.layer.op},
                                  {"weights", l.layer.weights},
                                  {"error", l.error ? Json(*l.error) : Json()},
                                  {"floats", l.in_floats}});
  return Json::Object{{"output", output},
                      {"samples", static_cast<int64_t>(report.samples)},
                      {"error", report.error},
                      {"equalized", report.equalized},
                      {"balanced", report.balanced},
                      {"widened", report.widened},
                      {"floats_ms", report.times.floats},
                      {"integers_ms", report.times.integers},
                      {"speed_up", report.times.speed_up()},
                      {"warnings", json_array(warnings)},
                      {"layers", layers}};
}

// Prints all layers: first those that were measured alone, the most harmful at the top.
void print_layers(std::ostream& out, std::vector<LayerReport> layers) {
  std::ranges::stable_sort(layers, std::greater(),
                           [](const LayerReport& l) { return l.error.value_or(-1); });
  out << "error alone     weights  layer\n";
  for (const LayerReport& l : layers)
    out << (l.error ? formatted("%11.6f", *l.error) : "          -")
        << formatted(" %11lld  %s (%s)%s\n", static_cast<long long>(l.layer.weights),
                     l.layer.name.c_str(), l.layer.op.c_str(),
                     l.in_floats ? ", left in floats" : "");
}

void print_quantized(Console& console, const QuantizeReport& report, const std::string& output) {
  std::ostream& out = console.out;
  const auto floats = std::ranges::count_if(report.layers, &LayerReport::in_floats);
  if (std::ranges::any_of(report.layers, [](const LayerReport& l) { return l.error.has_value(); }))
    print_layers(out, report.layers);
  if (report.widened) out << "f16 became f32, in the model's inputs and outputs too\n";
  if (report.equalized > 0) out << report.equalized << " pairs of layers equalized\n";
  if (report.balanced > 0) out << report.balanced << " values with balanced channels\n";
  out << output << ": " << static_cast<int64_t>(report.layers.size()) - floats << " of "
      << report.layers.size() << " layers in integers, "
      << (report.measure == ErrorMeasure::top1 ? "" : "error ")
      << measure_text(report.error, report.measure) << " on " << report.samples
      << (report.samples == 1 ? " sample" : " samples")
      << formatted(
             "; %.2f times as fast here: %.4g ms in floats, %.4g ms in integers, on one "
             "thread\n",
             report.times.speed_up(), report.times.floats, report.times.integers);
}

void print_packed(Console& console, const QuantizeArgs& args, const PackedWeights& packed,
                  const std::string& output) {
  if (console.json)
    return write_json(console, Json::Object{{"output", output},
                                            {"matrices", packed.matrices},
                                            {"tables", packed.tables},
                                            {"inside", packed.inside},
                                            {"other_gemms", packed.other_gemms},
                                            {"other_tables", packed.other_tables}});
  std::ostream& out = console.out;
  out << output << ": " << packed.matrices << " matrices and " << packed.tables << " tables of "
      << args.bits << " bits, a scale " << (args.asymmetric ? "and a zero point " : "") << "for "
      << args.block << " weights\n";
  const auto left = [&](int count, const char* what) {
    if (count > 0) out << "left in floats: " << count << " " << what << "\n";
  };
  left(packed.inside, "products inside of If, Loop or Scan");
  left(packed.other_gemms, "Gemms with alpha, beta or transA");
  left(packed.other_tables, "tables of Gather that 4 or 8 bits do not fit");
}

Expected<int> quantize(const QuantizeArgs& args, Console& console) {
  TW_TRY(check_quantize(args));
  const std::string output = output_of(args);
  TW_ASSIGN(const Confined work,
            confined(args.untrusted,
                     {folder_of(args.model), cache_folder(args.model), args.data,
                      is_input_forms_file(args.inputs) ? args.inputs : ""},
                     {folder_of(output)}, console));
  if (work.code) return *work.code;
  FileRoles files;
  files.reads_model(args.model);
  files.writes("the quantized model", output);
  TW_TRY(files.check());
  TW_TRY(check_writable(output));
  TW_ASSIGN(const QuantizeRequest request, request_of(args));
  if (args.weights_only) {
    TW_ASSIGN(const PackedModel made,
              quantize_weights(args.model, request.dims, {args.bits, args.block, args.asymmetric}));
    TW_TRY(files.models_are_unchanged());
    TW_TRY(write_file(output, made.model));
    print_packed(console, args, made.packed, output);
    return int{kExitOk};
  }
  Expected<QuantizeReport> report = [&] {
    Progress progress(console);
    return quantize_model(request, [&](const std::string& stage) { progress.begin(stage); });
  }();
  if (!report) return report.takeError();
  TW_TRY(files.models_are_unchanged());
  TW_TRY(write_file(output, report->model));
  const std::vector<std::string> warnings = warnings_of(args, *report);
  if (console.json) write_json(console, to_json(*report, output, warnings));
  else print_quantized(console, *report, output);
  if (!console.json)
    for (const std::string& warning : warnings) console.err << "warning: " << warning << "\n";
  return int{kExitOk};
}

}  // namespace

CommandRun define_quantize(Flags& flags) {
  auto args = std::make_shared<QuantizeArgs>();
  flags.argument("MODEL", args->model, "An ONNX file in f32 or f16");
  flags.text("-o,--output", args->output, "FILE",
             "Where the quantized model goes; default: MODEL_int8.onnx");
  flags.text("--data", args->data, "DIR",
             "What to calibrate on: .npy, .npz, .pb, .png or .jpg files, or a folder a sample with "
             "a file an input");
  flags.integer("--random", args->random,
                "Calibrate on so many random samples: shows that it works, and no more", 1);
  flags.integer("--samples", args->samples, "Use no more than the first so many samples", 1);
  flags.text("--inputs", args->inputs, "FILE|YAML",
             "How pictures become inputs, as of compile: {image: {fit: letterbox, scale: 0.0039}}");
  flags.repeated("--dim", args->dims, "NAME=N",
                 "Bind a free dimension, in the written model too: batch=1");
  flags.text("--method", args->method, "NAME",
             "Ranges of activations: minmax (default), percentile, mse or entropy");
  flags.number("--percentile", args->percentile, "P",
               "Share of the values that percentile keeps; default 99.999");
  flags.text("--activations", args->activations, "TYPE", "u8 (default) or i8");
  flags.integer("--weight-bits", args->weight_bits,
                "8 (default) or 7: onnxruntime's sums saturate with 8 on x86 without VNNI");
  flags.flag("--equalize", args->equalize,
             "Give neighbouring convolutions weights of equal ranges before");
  flags.flag("--plain", args->plain,
             "Neither balance channels nor take the mean error of rounding from the biases");
  flags.flag("--layers", args->layers, "Measure what each layer alone does to the outputs");
  flags.text("--max-error", args->max_error, "E",
             "Leave the most harmful layers in floats until the outputs' error, relative to "
             "their root mean square, is within E on the data; or max:E, of an output's range, or "
             "top1:P%, of rows with the same class");
  flags.flag(
      "--weights-only", args->weights_only,
      "Weights of MatMul, Gemm and Gather alone, as MatMulNBits and GatherBlockQuantized: for "
      "language models; needs no data");
  flags.flag("--asymmetric", args->asymmetric,
             "Of --weights-only: blocks have a zero point too, for ranges that are not about 0");
  flags.integer("--bits", args->bits, "Of --weights-only: 2, 4 or 8 (default)", 1);
  flags.integer("--block", args->block, "Of --weights-only: weights that share a scale; default 32",
                1);
  args->untrusted.define(flags);
  return [args](Console& console) { return quantize(*args, console); };
}

}  // namespace tw
