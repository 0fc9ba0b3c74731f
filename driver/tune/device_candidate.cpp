#include "driver/tune/device_candidate.h"

#include <llvm/Support/MemoryBuffer.h>

#include "autotune/measure/device_program.h"
#include "driver/compile/pack_weights.h"
#include "driver/run/temporary_folder.h"
#include "packager/artifact.h"

namespace tw {
namespace {

constexpr const char* kName = "candidate";

Expected<std::string> write_library(const Program& program, ObjectCode code) {
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

}  // namespace

Expected<CandidateBuilder> device_candidate_builder(
    const Target& target, const std::shared_ptr<const DeviceBackend>& device,
    std::vector<Constant> constants) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<const Backend> backend = std::move(made);
  CodegenOptions codegen;
  codegen.symbol = kName;
  codegen.target_name = target.name;
  codegen.devices.emplace_back(target.devices.front().name, target.devices.front().driver);
  const auto compile = [backend, device, constants = std::move(constants),
                        codegen](const RunKernel& run) -> Expected<CandidateObjects> {
    TW_TRY(device->supports(run.kernel));
    Kernel named = run.kernel;
    named.name = kName;
    TW_ASSIGN(Program program, device_program(named, constants_of(run, constants), true));
    TW_TRY(device->compile(program, 1, 1).takeError());
    TW_ASSIGN(ObjectCode code, backend->compile(program, codegen));
    TW_ASSIGN(std::string library, write_library(program, std::move(code)));
    return CandidateObjects{{kName, std::move(library)}};
  };
  const auto link = [](const CandidateObjects& library) -> Expected<std::string> {
    return library[0].code;
  };
  return CandidateBuilder{compile, link, std::string("tw_") + kName + "_query", true};
}

}  // namespace tw
