
#include <llvm/Support/MemoryBuffer.h>

#include "driver/compile/candidate.h"
#include "driver/compile/device_program.h"
#include "driver/compile/pack_weights.h"
#include "packager/artifact.h"
#include "support/temporary_folder.h"

namespace tw {
namespace {

constexpr const char* kName = "candidate";

Expected<std::string> library_of(const Program& program, ObjectCode code) {
  LinkRequest request;
  request.objects = std::move(code.objects);
  request.soname = std::string(kName) + ".so";
  request.exports = model_exports(kName);
  request.manifest = "{}";
  TW_ASSIGN(LinkedImage image, link_shared(request));
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string path = folder.path() + "/" + request.soname;
  TW_ASSIGN(ArtifactWriter writer, ArtifactWriter::create(path, image, program.weight_bytes));
  TW_TRY(pack_weights(
      program,
      [&](uint64_t offset, uint64_t size, auto body) { return writer.fill(offset, size, body); },
      1));
  TW_TRY(writer.finish());
  auto bytes = llvm::MemoryBuffer::getFile(path, false, false);
  if (!bytes)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", path, bytes.getError().message());
  return (*bytes)->getBuffer().str();
}

class DeviceKernelBuilder final : public CandidateBuilder {
 public:
  DeviceKernelBuilder(std::unique_ptr<Backend> backend, std::shared_ptr<const DeviceBackend> device,
                      std::vector<Constant> constants, const Target& target)
      : CandidateBuilder(std::string("tw_") + kName + "_query", true),
        backend_(std::move(backend)),
        device_(std::move(device)),
        constants_(std::move(constants)) {
    codegen_.symbol = kName;
    codegen_.target_name = target.name;
    codegen_.devices.emplace_back(target.devices.front().name, target.devices.front().driver);
  }

  Expected<CandidateObjects> compile(const RunKernel& run) const override {
    TW_TRY(device_->supports(run.kernel));
    Kernel named = run.kernel;
    named.name = kName;
    TW_ASSIGN(Program program, device_program(named, constants_of(run, constants_), true));
    TW_TRY(device_->compile(program, 1, 1).takeError());
    TW_ASSIGN(ObjectCode code, backend_->compile(program, codegen_));
    TW_ASSIGN(std::string library, library_of(program, std::move(code)));
    return CandidateObjects{{kName, std::move(library)}};
  }

  Expected<std::string> link(const CandidateObjects& library) const override {
    return library[0].code;
  }

 private:
  std::unique_ptr<const Backend> backend_;
  std::shared_ptr<const DeviceBackend> device_;
  std::vector<Constant> constants_;
  CodegenOptions codegen_;
};

}  // namespace

Expected<std::unique_ptr<CandidateBuilder>> device_candidate_builder(
    const Target& target, const std::shared_ptr<const DeviceBackend>& device,
    std::vector<Constant> constants) {
  TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(target));
  return std::make_unique<DeviceKernelBuilder>(std::move(backend), device, std::move(constants),
                                               target);
}

}  // namespace tw
