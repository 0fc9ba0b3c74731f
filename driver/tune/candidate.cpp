#include "driver/tune/candidate.h"

#include "backends/backend.h"
#include "packager/link.h"
#include "runtime/embedded.h"

namespace tw {
namespace {

// Every candidate has this name, so that the same code has the same bytes.
constexpr const char* kSymbol = "candidate";

Expected<std::string> link_candidate(const std::string& object, const std::string& triple) {
  LinkRequest request;
  request.triple = triple;
  request.objects = {object};
  // Functions for operations that the processor has no instruction for
  request.fallback = {std::string(runtime_object(triple))};
  request.exports = {kSymbol};
  TW_ASSIGN(LinkedImage image, link_shared(request));
  return std::move(image.bytes);
}

}  // namespace

Expected<CandidateBuilder> candidate_builder(const Target& target, int threads, Tables tables) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<const Backend> backend = std::move(made);
  const auto compile = [backend, tables,
                        parallel = threads > 1](const Kernel& kernel) -> Expected<std::string> {
    TW_TRY(check_bounds(kernel, tables));
    Kernel named = kernel;
    named.name = kSymbol;
    return backend->compile_kernel(named, parallel);
  };
  const auto link = [triple = target.triple](const std::string& object) {
    return link_candidate(object, triple);
  };
  return CandidateBuilder{compile, link, kSymbol};
}

}  // namespace tw
