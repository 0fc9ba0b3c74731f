#include "backends/cuda/backend.h"

#include <llvm/ADT/StringRef.h>

#include "backends/cuda/emit.h"
#include "backends/cuda/image.h"
#include "backends/cuda/ptxas.h"

namespace tw {
namespace {

constexpr uint32_t kPortable = 80;   // compute capability of the PTX that later chips compile on their own

struct Chip {
  std::string name, level;            // "sm_90a", "ptx80"
  uint32_t number = 0;                // 90
  bool exact = false;                 // with a letter: its code runs on no other chip
  bool emulated = false;
};

Expected<Chip> chip_of(const Target& device) {
  Chip chip;
  for (const std::string& feature : device.features) {
    llvm::StringRef text = feature;
    uint32_t level = 0;
    if (text.consume_front("sm_") && !text.consumeInteger(10, chip.number)) chip.name = feature, chip.exact = !text.empty();
    else if (llvm::StringRef rest = feature; rest.consume_front("ptx") && !rest.getAsInteger(10, level)) chip.level = feature;
    else if (feature == "emulated") chip.emulated = true;
    else return make_error({DiagCode::unsupported, "device '" + device.name + "' has the unknown feature '" + feature + "'", {}, {"features of the driver cuda: a chip (sm_80), a PTX level (ptx80)"}});
  }
  if (chip.name.empty() || chip.level.empty())
    return make_error({DiagCode::unsupported, "device '" + device.name + "' needs a chip and a PTX level", {}, {"for example features: [sm_80, ptx80]"}});
  return chip;
}

class CudaBackend : public DeviceBackend {
 public:
  CudaBackend(Target device, Chip chip) : device_(std::move(device)), chip_(std::move(chip)), ptxas_(find_ptxas()) {}

  Error supports(const Kernel& kernel) const override {
    const std::vector<const Kernel*> one = {&kernel};
    std::vector<std::vector<DeviceLaunch>> launches;
    TW_ASSIGN(const std::string ptx, code_of(one, *make_nvptx_form(chip_.name, chip_.level), true, launches));
    if (ptxas_.empty()) return Error::success();
    return run_ptxas(ptxas_, ptx, chip_.name).takeError();
  }

  Expected<std::vector<KernelReport>> compile(Program& program, int device) const override {
    DeviceProgram& out = program.devices[static_cast<size_t>(device) - 1];
    const std::vector<bool> here = kernels_of(program, device);
    std::vector<const Kernel*> kernels(program.kernels.size());
    bool any = false;
    for (size_t k = 0; k < kernels.size(); ++k)
      if (here[k]) kernels[k] = &program.kernels[k], any = true;
    std::vector<KernelReport> reports(kernels.size());
    out.launches.assign(kernels.size(), {});
    if (!any) return reports;
    TW_ASSIGN(const std::string ptx, code_of(kernels, *make_nvptx_form(chip_.name, chip_.level), true, out.launches));
    std::vector<CudaImage> images;
    std::map<std::string, PtxasFunction> functions;
    const CudaImageKind kind = chip_.exact ? CudaImageKind::cubin_exact : CudaImageKind::cubin;
    if (chip_.emulated) {
      TW_ASSIGN(const std::unique_ptr<GpuForm> form, make_emulated_form());
      TW_ASSIGN(std::string object, code_of(kernels, *form, false, out.launches));
      images.push_back({kind, chip_.number, std::move(object)});
    } else if (!ptxas_.empty()) {
      TW_ASSIGN(PtxasResult result, run_ptxas(ptxas_, ptx, chip_.name));
      images.push_back({kind, chip_.number, std::move(result.cubin)});
      functions = std::move(result.functions);
    }
    if (chip_.exact) {
      TW_ASSIGN(std::string portable, code_of(kernels, *make_nvptx_form("sm_" + std::to_string(kPortable), "ptx" + std::to_string(kPortable)), true, out.launches));
      images.push_back({CudaImageKind::ptx, kPortable, portable + '\0'});
    } else {
      images.push_back({CudaImageKind::ptx, chip_.number, ptx + '\0'});
    }
    out.code = cuda_images(images);
    for (size_t k = 0; k < kernels.size(); ++k)
      if (kernels[k]) reports[k] = {kernels[k]->name, static_cast<int64_t>(ptx.size() / kernels.size()), 0, 0};
    return reports;
  }

 private:
  // All kernels (null ones left out) as one module, called k0, k1, ...
  Expected<std::string> code_of(const std::vector<const Kernel*>& kernels, const GpuForm& form, bool assembly, std::vector<std::vector<DeviceLaunch>>& launches) const {
    llvm::LLVMContext context;
    llvm::Module module("tilewright", context);
    TW_ASSIGN(const std::unique_ptr<llvm::TargetMachine> machine, form.machine());
    module.setTargetTriple(machine->getTargetTriple());
    module.setDataLayout(machine->createDataLayout());
    launches.assign(kernels.size(), {});
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (!kernels[k]) continue;
      TW_ASSIGN(launches[k], emit_gpu(module, *kernels[k], device_, form, "k" + std::to_string(k)));
    }
    return finish_gpu(module, form, assembly);
  }

  Target device_;
  Chip chip_;
  std::string ptxas_;
};

}  // namespace

Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Target& device) {
  TW_ASSIGN(Chip chip, chip_of(device));
  return std::make_unique<CudaBackend>(device, std::move(chip));
}

}  // namespace tw
