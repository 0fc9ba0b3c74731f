#include "driver/accuracy/verified_library.h"

#include <algorithm>
#include <filesystem>

#include "packager/artifact.h"
#include "support/hash.h"
#include "support/regular_file.h"

namespace tw {
namespace {

namespace fs = std::filesystem;

bool farther(const VerifiedOutput& a, const VerifiedOutput& b) {
  if (a.same() != b.same()) return !a.same();
  return a.difference.max_rel > b.difference.max_rel;
}

// Warnings about integer inputs that were made up; data of the user need none.
std::vector<std::string> integers_made_up(const SampleRequest& samples,
                                          const std::vector<TensorSpec>& specs) {
  return samples.data.empty() ? made_up_integers(specs, {}) : std::vector<std::string>();
}

}  // namespace

bool VerifiedLibrary::same() const { return std::ranges::all_of(outputs, &VerifiedOutput::same); }

Expected<VerifiedLibrary> verify_library(VerifyLibrary request, const OnStage& stage) {
  if (stage) stage("verify");
  TW_ASSIGN(const std::string text, read_manifest(request.library, Integrity::trust));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, request.library));
  TW_ASSIGN(const LibraryRuns runs,
            LibraryRuns::open(request.library, manifest, request.place, Integrity::trust));
  if (request.samples.dims.empty())
    for (const auto& [name, size] : manifest.example)
      request.samples.dims.push_back(name + "=" + std::to_string(size));
  TW_ASSIGN(const SampleSet samples, samples_for(request.samples, runs.inputs()));
  VerifiedLibrary report{samples.size(), runs.machine(), {}, {}};
  report.warnings = integers_made_up(request.samples, runs.inputs());
  Judge judge({request.model, manifest, ReferenceKind::f64, request.tolerance}, stage);
  for (size_t i = 0; i < samples.size(); ++i) {
    TW_ASSIGN(const Inputs inputs, samples.at(i));
    TW_ASSIGN(const std::vector<Tensor> got, runs.run(inputs));
    TW_ASSIGN(std::vector<VerifiedOutput> outputs, judge.judge(got, inputs, runs.inputs()));
    if (i == 0) report.outputs = outputs;
    for (size_t k = 0; k < outputs.size(); ++k)
      if (farther(outputs[k], report.outputs[k])) report.outputs[k] = std::move(outputs[k]);
  }
  std::ranges::copy(little_said(report.outputs), std::back_inserter(report.warnings));
  return report;
}

Expected<std::string> data_hash(const std::string& path) {
  std::vector<fs::path> files;
  std::error_code code;
  if (fs::is_directory(path, code)) {
    for (fs::recursive_directory_iterator it(path, code), end; !code && it != end;
         it.increment(code))
      if (it->is_regular_file(code)) files.push_back(it->path());
  } else {
    files.emplace_back(path);
  }
  if (code)
    return make_error(DiagCode::io, "cannot read the data '{0}': {1}", path, code.message());
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) {
    TW_ASSIGN(const auto bytes, regular_file(file.string()));
    all += fs::relative(file, path, code).string() + " " +
           sha256_hex({bytes->getBufferStart(), bytes->getBufferSize()}) + "\n";
  }
  return sha256_hex(all);
}

}  // namespace tw
