#include "driver/compare/budget_check.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "driver/compare/compare.h"
#include "driver/compare/verify.h"
#include "driver/compile/manifest.h"
#include "driver/run/device_report.h"
#include "driver/run/time_model.h"
#include "ir/text.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

// Results of runs; 0 where the budget does not ask
struct Measured {
  double error = 0, p50_ms = 0, cycles = 0;
};

bool asks_for(const Budget& budget, Budgeted what) {
  return std::ranges::count(budget, what, &BudgetLimit::what) > 0;
}

bool needs_run(const BudgetRequest& request) {
  return std::ranges::any_of(request.budget, [&](const BudgetLimit& limit) {
    return name_of(limit.what).measured && !(limit.what == Budgeted::error && request.error);
  });
}

InputSources example_inputs(const Manifest& manifest) {
  InputSources sources;
  sources.random = 0;
  for (const auto& [name, size] : manifest.example)
    sources.dims.push_back(name + "=" + std::to_string(size));
  return sources;
}

Expected<double> measured_error(const BudgetRequest& request, const Manifest& manifest) {
  VerifyRequest verify;
  verify.library = request.library;
  verify.model = request.model;
  verify.inputs = example_inputs(manifest);
  verify.place.threads = request.threads;
  TW_ASSIGN(const VerifyReport report, verify_model(verify, nullptr, nullptr));
  double worst = 0;
  for (const VerifiedOutput& output : report.outputs)
    worst = std::max(worst, output.difference.problem.empty()
                                ? output.difference.max_rel
                                : std::numeric_limits<double>::infinity());
  return worst;
}

Expected<Measured> measure(const BudgetRequest& request, const Manifest& manifest) {
  Measured out;
  Expected<LoadedModel> model = LoadedModel::open(request.library, Integrity::trust);
  if (!model) {
    std::vector<Diag> diags = take_diags(model.takeError());
    for (Diag& d : diags)
      d.notes.push_back(
          "the budget's error, p50_ms and cycles are measured by a run on this machine");
    return make_error(std::move(diags));
  }
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model->api()), example_inputs(manifest)));
  TW_ASSIGN(ModelRun run, ModelRun::create(model->api(), std::move(inputs), request.threads));
  TW_TRY(run.run());
  TW_ASSIGN(const std::vector<DeviceReport> devices, device_reports(run));
  for (const DeviceReport& d : devices) out.cycles += static_cast<double>(d.stats.cycles);
  if (asks_for(request.budget, Budgeted::cycles) && devices.empty())
    return make_error(DiagCode::unsupported,
                      "the budget has cycles, and no device of '{0}' counts them", request.library);
  if (asks_for(request.budget, Budgeted::p50_ms)) {
    TW_ASSIGN(const std::vector<double> ms, time_runs(run, {0, 1.0}));
    out.p50_ms = statistics(ms).median;
  }
  if (!request.error && asks_for(request.budget, Budgeted::error)) {
    TW_ASSIGN(out.error, measured_error(request, manifest));
  }
  return out;
}

Expected<double> arena_bytes(const Manifest& manifest) {
  if (manifest.max_arena_bytes) return static_cast<double>(*manifest.max_arena_bytes);
  TW_ASSIGN(const Expr bytes, parse_expr(manifest.arena_bytes));
  Sizes sizes;
  for (const auto& [symbol, name] : symbol_names(manifest))
    if (const auto size = manifest.example.find(name); size != manifest.example.end())
      sizes[symbol] = size->second;
  return static_cast<double>(value_at(bytes, sizes));
}

std::string amount(Budgeted what, double value) {
  return name_of(what).bytes || what == Budgeted::cycles
             ? llvm::formatv("{0}", static_cast<int64_t>(value)).str()
             : number_text(value);
}

std::string verdict(const BudgetRow& row) {
  if (row.within()) return "within";
  constexpr double kFactor = 10;  // from here on percents say little
  if (row.most == 0) return "over";
  if (row.needed >= kFactor * row.most)
    return llvm::formatv("over by a factor of {0:F0}", row.needed / row.most).str();
  return llvm::formatv("over by {0:P1}", row.needed / row.most - 1).str();
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  return out;
}

}  // namespace

Expected<std::vector<BudgetRow>> check_budget(const BudgetRequest& request) {
  TW_ASSIGN(const std::string text, read_manifest(request.library));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, request.library));
  Measured measured;
  if (needs_run(request)) { TW_ASSIGN(measured, measure(request, manifest)); }
  if (request.error) measured.error = *request.error;
  std::vector<BudgetRow> rows;
  for (const BudgetLimit& limit : request.budget) {
    BudgetRow row{limit.what, 0, limit.most};
    switch (limit.what) {
      case Budgeted::artifact_bytes: {
        std::error_code none;
        row.needed = static_cast<double>(std::filesystem::file_size(request.library, none));
        break;
      }
      case Budgeted::weight_bytes: row.needed = static_cast<double>(manifest.weight_bytes); break;
      case Budgeted::arena_bytes: {
        TW_ASSIGN(row.needed, arena_bytes(manifest));
        break;
      }
      case Budgeted::error: row.needed = measured.error; break;
      case Budgeted::p50_ms: row.needed = measured.p50_ms; break;
      case Budgeted::cycles: row.needed = measured.cycles; break;
    }
    rows.push_back(row);
  }
  return rows;
}

bool within(const std::vector<BudgetRow>& rows) {
  return std::ranges::all_of(rows, &BudgetRow::within);
}

std::string to_string(const std::vector<BudgetRow>& rows) {
  std::string text = llvm::formatv("{0,-16} {1,14} {2,14}\n", "budget", "needed", "allowed").str();
  for (const BudgetRow& r : rows)
    text += llvm::formatv("{0,-16} {1,14} {2,14}  {3}\n", name_of(r.what).name,
                          amount(r.what, r.needed), amount(r.what, r.most), verdict(r))
                .str();
  return text;
}

Json to_json(const std::vector<BudgetRow>& rows) {
  Json::Array list;
  for (const BudgetRow& r : rows)
    list.push_back(Json::Object{{"name", name_of(r.what).name},
                                {"needed", r.needed},
                                {"allowed", r.most},
                                {"within", r.within()}});
  return list;
}

std::string junit_text(const std::vector<BudgetRow>& rows, const std::string& suite) {
  const auto over = std::ranges::count_if(rows, [](const BudgetRow& r) { return !r.within(); });
  const std::string name = escaped(suite);
  std::string text = llvm::formatv(
                         "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite "
                         "name=\"{0}\" tests=\"{1}\" failures=\"{2}\">\n",
                         name, rows.size(), over)
                         .str();
  for (const BudgetRow& r : rows) {
    text += llvm::formatv("  <testcase classname=\"{0}\" name=\"{1}\"", name, name_of(r.what).name)
                .str();
    if (r.within()) text += "/>\n";
    else
      text += llvm::formatv("><failure message=\"needed {0}, allowed {1}\"/></testcase>\n",
                            amount(r.what, r.needed), amount(r.what, r.most))
                  .str();
  }
  return text + "</testsuite>\n";
}

}  // namespace tw
