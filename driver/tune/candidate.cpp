#include "driver/tune/candidate.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/backend.h"
#include "ir/schedule/constant_stages.h"
#include "packager/link.h"
#include "runtime/embedded.h"

namespace tw {
namespace {

// Every candidate has this name, so that the same code has the same bytes.
constexpr const char* kSymbol = "candidate";

// Compiles the kernels that make constants, each once for all candidates.
class PackObjects {
 public:
  Expected<CandidateObject> of(const Kernel& pack, const Backend& backend) {
    Kernel named = pack;
    named.name = pack_symbol(pack);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = codes_.find(named.name); known != codes_.end())
        return CandidateObject{named.name, known->second};
    }
    TW_ASSIGN(const std::string code, backend.compile_kernel(named));
    const std::lock_guard lock(mutex_);
    return CandidateObject{named.name, codes_.emplace(named.name, code).first->second};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> codes_;  // by symbol
};

Expected<std::string> link_candidate(const CandidateObjects& objects, const std::string& triple) {
  LinkRequest request;
  request.triple = triple;
  for (const CandidateObject& object : objects) {
    request.objects.push_back(object.code);
    request.exports.push_back(object.symbol);
  }
  // Functions for operations that the processor has no instruction for
  request.fallback = {std::string(runtime_object(triple))};
  TW_ASSIGN(LinkedImage image, link_shared(request));
  return std::move(image.bytes);
}

}  // namespace

Expected<CandidateBuilder> candidate_builder(const Target& target, int threads, Tables tables) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<const Backend> backend = std::move(made);
  const auto compile = [backend, tables, parallel = threads > 1,
                        packs = std::make_shared<PackObjects>()](
                           const RunKernel& run) -> Expected<CandidateObjects> {
    TW_TRY(check_bounds(run.kernel, tables));
    Kernel named = run.kernel;
    named.name = kSymbol;
    TW_ASSIGN(std::string code, backend->compile_kernel(named, parallel));
    CandidateObjects objects = {{kSymbol, std::move(code)}};
    for (const ParameterSource& source : run.sources) {
      if (!source.pack) continue;
      TW_TRY(check_bounds(*source.pack, tables));
      TW_ASSIGN(CandidateObject object, packs->of(*source.pack, *backend));
      if (std::ranges::find(objects, object.symbol, &CandidateObject::symbol) == objects.end())
        objects.push_back(std::move(object));
    }
    return objects;
  };
  const auto link = [triple = target.triple](const CandidateObjects& objects) {
    return link_candidate(objects, triple);
  };
  return CandidateBuilder{compile, link, kSymbol};
}

}  // namespace tw
