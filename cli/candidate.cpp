#include "cli/candidate.h"

#include "backends/backend.h"
#include "packager/link.h"
#include "support/hash.h"

namespace tw {

Expected<BuildCandidate> candidate_builder(const Target& target) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<const Backend> backend = std::move(made);
  return [backend](const Kernel& kernel) -> Expected<BuiltCandidate> {
    Kernel named = kernel;
    named.name = "candidate";   // the same code has the same bytes
    TW_ASSIGN(std::string object, backend->compile_kernel(named));
    BuiltCandidate built;
    built.symbol = named.name;
    built.code_hash = short_hash(object);
    LinkRequest request;
    request.objects = {std::move(object)};
    request.exports = {built.symbol};
    TW_ASSIGN(LinkedImage image, link_shared(request));
    built.library = std::move(image.bytes);
    return built;
  };
}

}  // namespace tw
