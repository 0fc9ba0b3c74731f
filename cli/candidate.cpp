#include "cli/candidate.h"

#include "backends/backend.h"
#include "packager/link.h"

namespace tw {
namespace {

constexpr const char* kSymbol = "candidate";   // of every candidate, so that the same code has the same bytes

Expected<std::string> link_candidate(const std::string& object) {
  LinkRequest request;
  request.objects = {object};
  request.exports = {kSymbol};
  TW_ASSIGN(LinkedImage image, link_shared(request));
  return std::move(image.bytes);
}

}  // namespace

Expected<CandidateBuilder> candidate_builder(const Target& target, int threads) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<const Backend> backend = std::move(made);
  const auto compile = [backend, parallel = threads > 1](const Kernel& kernel) {
    Kernel named = kernel;
    named.name = kSymbol;
    return backend->compile_kernel(named, parallel);
  };
  return CandidateBuilder{compile, link_candidate, kSymbol};
}

}  // namespace tw
