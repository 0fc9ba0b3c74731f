#include "driver/compile/candidate.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "ir/schedule/constant_stages.h"
#include "packager/link.h"
#include "runtime/embedded.h"
#include "support/hash.h"

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

class KernelBuilder final : public CandidateBuilder {
 public:
  KernelBuilder(std::unique_ptr<Backend> backend, std::string triple, bool parallel, Tables tables)
      : CandidateBuilder(kSymbol, false),
        backend_(std::move(backend)),
        triple_(std::move(triple)),
        parallel_(parallel),
        tables_(tables) {}

  Expected<CandidateObjects> compile(const RunKernel& run) const override {
    TW_TRY(check_bounds(run.kernel, tables_));
    Kernel named = run.kernel;
    named.name = kSymbol;
    TW_ASSIGN(std::string code, backend_->compile_kernel(named, parallel_));
    CandidateObjects objects = {{kSymbol, std::move(code)}};
    for (const ParameterSource& source : run.sources) {
      if (!source.pack) continue;
      TW_TRY(check_bounds(*source.pack, tables_));
      TW_ASSIGN(CandidateObject object, packs_.of(*source.pack, *backend_));
      if (std::ranges::find(objects, object.symbol, &CandidateObject::symbol) == objects.end())
        objects.push_back(std::move(object));
    }
    return objects;
  }

  Expected<std::string> link(const CandidateObjects& objects) const override {
    LinkRequest request;
    request.triple = triple_;
    for (const CandidateObject& object : objects) {
      request.objects.push_back(object.code);
      request.exports.push_back(object.symbol);
    }
    // Functions for operations that the processor has no instruction for
    request.fallback = {std::string(runtime_object(triple_))};
    TW_ASSIGN(LinkedImage image, link_shared(request));
    return std::move(image.bytes);
  }

 private:
  std::unique_ptr<const Backend> backend_;
  std::string triple_;
  bool parallel_;
  Tables tables_;
  mutable PackObjects packs_;
};

}  // namespace

std::string pack_symbol(const Kernel& pack) { return "pack_" + short_hash(print(pack)); }

Expected<std::unique_ptr<CandidateBuilder>> candidate_builder(const Target& target, int threads,
                                                              Tables tables) {
  TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(target));
  return std::make_unique<KernelBuilder>(std::move(backend), target.triple, threads > 1, tables);
}

}  // namespace tw
