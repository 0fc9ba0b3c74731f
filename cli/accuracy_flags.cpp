#include "cli/accuracy_flags.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <map>

#include "cli/progress.h"
#include "cli/text/formatted.h"
#include "cli/text/text_width.h"

namespace tw {
namespace {

// "12 layers in bf16, 3 in bf16 winograd_f2".
std::string choices_text(const AccuracyReport& report) {
  std::map<std::string, int> counts;
  for (const LayerAccuracy& l : report.layers) counts[l.layer.choice] += l.exact ? 0 : 1;
  std::string text;
  for (const auto& [choice, count] : counts)
    if (count > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) +
              (text.empty() ? count == 1 ? " layer in " : " layers in " : " in ") + choice;
  return text.empty() ? "every layer exact" : text;
}

// Least columns of a layer's name. fit() cuts the middle out of a longer one.
constexpr int kLeastName = 56;
std::string layer_line(const LayerAccuracy& l, ErrorMeasure measure, int columns) {
  const std::string error = l.error ? measure_text(*l.error, measure) : "";
  const std::string ms = l.saved_ms ? formatted("%.4f", *l.saved_ms) : "";
  const std::string bytes = format_bytes(static_cast<uint64_t>(l.layer.exact_bytes)) + " to " +
                            format_bytes(static_cast<uint64_t>(l.layer.weight_bytes));
  const std::string figures = formatted("%14s %10s  %-20s %-16s ", error.c_str(), ms.c_str(),
                                        bytes.c_str(), l.layer.choice.c_str());
  const std::string rest = " (" + l.layer.op + ")" + (l.exact ? ", taken back" : "");
  const int left = columns - static_cast<int>(figures.size() + rest.size());
  return figures + fit(l.layer.name, std::max(kLeastName, left)) + rest;
}

}  // namespace

void AccuracyFlags::define(Flags& flags) {
  flags.text("--max-error", max_error, "X",
             "Outputs may be off by so much of their range (1e-3), of their root mean square "
             "(rms:0.02), or rows may have another class (top1:99%): short floats and fast "
             "algorithms are taken back where they are over it; default: the budget's error");
  flags.text("--accuracy-data", data, "DIR",
             "What --max-error is measured on: .npy, .npz, .pb, .png or .jpg files, or a folder a "
             "sample; default: seeded inputs");
  flags.integer("--samples", samples, "Of --accuracy-data no more than the first so many", 1);
  flags.flag("--layers", layers,
             "Of --max-error: what each layer's choice costs and gains alone; a compile a layer");
}

Expected<std::optional<AccuracyRequest>> AccuracyFlags::request(const Budget& budget,
                                                                int threads) const {
  AccuracyRequest request;
  request.data = data, request.samples = samples, request.by_layer = layers;
  request.threads = threads;
  const auto limit = std::ranges::find(budget, Budgeted::error, &BudgetLimit::what);
  if (!max_error.empty()) {
    TW_ASSIGN(request.limit, error_limit_from_text(max_error, ErrorMeasure::largest));
    return std::optional(std::move(request));
  }
  if (limit != budget.end()) {
    request.limit = {ErrorMeasure::largest, limit->most};
    return std::optional(std::move(request));
  }
  if (!data.empty() || samples > 0 || layers)
    return make_error(DiagCode::invalid_argument,
                      "--accuracy-data, --samples and --layers are of a limit, and there is none: "
                      "--max-error X, or 'error' in the budget");
  return std::optional<AccuracyRequest>();
}

Error check_limited(const Target& target) {
  if (target.wider.empty()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "a limit of accuracy is about one processor, and '{0}' is {1}: name one of "
                    "these",
                    target.name, llvm::join(target.isa, ", "));
}

std::string accuracy_note(const AccuracyReport& report) {
  const ErrorMeasure measure = report.limit.measure;
  std::string text = "accuracy " +
                     measure_text(report.within ? report.error : report.first, measure) + ", " +
                     (report.within ? "" : "not ") + to_string(report.limit) + "; " +
                     choices_text(report) + "\n         on " + std::to_string(report.samples) +
                     (report.samples == 1 ? " sample" : " samples");
  if (report.seeded) text += " that are made up: --accuracy-data DIR takes yours";
  text += "\n";
  if (!report.stand_in.empty())
    text += "         measured by a library for target '" + report.stand_in +
            "' with the same choices\n";
  if (report.taken_back() > 0)
    text += "         " + std::to_string(report.taken_back()) + " of " +
            std::to_string(report.layers.size()) + " choices taken back; with them " +
            measure_text(report.first, measure) + "\n";
  return text;
}

std::string accuracy_text(const AccuracyReport& report, int columns) {
  const ErrorMeasure measure = report.limit.measure;
  std::string text = accuracy_note(report);
  std::vector<const LayerAccuracy*> known;
  for (const LayerAccuracy& l : report.layers)
    if (l.error || l.exact) known.push_back(&l);
  if (known.empty()) return text;
  std::ranges::stable_sort(known, std::greater(),
                           [](const LayerAccuracy* l) { return l->error.value_or(0); });
  text += formatted("%14s %10s  %-20s %-12s layer\n", "error alone", "saved ms", "weights",
                    "choice");
  for (const LayerAccuracy* l : known) text += layer_line(*l, measure, columns) + "\n";
  return text;
}

Json to_json(const AccuracyReport& report) {
  Json::Array layers;
  for (const LayerAccuracy& l : report.layers)
    layers.push_back(Json::Object{{"name", l.layer.name},
                                  {"op", l.layer.op},
                                  {"group", l.layer.group},
                                  {"choice", l.layer.choice},
                                  {"weight_bytes", l.layer.weight_bytes},
                                  {"exact_weight_bytes", l.layer.exact_bytes},
                                  {"error", l.error ? Json(*l.error) : Json()},
                                  {"saved_ms", l.saved_ms ? Json(*l.saved_ms) : Json()},
                                  {"taken_back", l.exact}});
  return Json::Object{{"limit", to_string(report.limit)},
                      {"allowed", report.limit.most},
                      {"error", report.error},
                      {"error_of_all_choices", report.first},
                      {"within", report.within},
                      {"samples", static_cast<int64_t>(report.samples)},
                      {"seeded", report.seeded},
                      {"measured_by", report.stand_in.empty() ? Json() : Json(report.stand_in)},
                      {"layers", layers}};
}

}  // namespace tw
