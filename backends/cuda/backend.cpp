#include "backends/cuda/backend.h"

#include <llvm/ADT/StringRef.h>

#include <algorithm>

#include "backends/cuda/cuda.h"
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

// Of PTX text: the functions of these launches.
int64_t bytes_of(llvm::StringRef ptx, const std::vector<DeviceLaunch>& launches) {
  int64_t bytes = 0;
  for (const DeviceLaunch& launch : launches) {
    const llvm::StringRef text = ptx.drop_front(ptx.find(".entry " + launch.function + "("));
    bytes += static_cast<int64_t>(std::min(text.size(), text.find("\n}")));
  }
  return bytes;
}

class CudaBackend : public DeviceBackend {
 public:
  CudaBackend(Target device, Chip chip) : device_(std::move(device)), chip_(std::move(chip)), ptxas_(find_ptxas()) {}

  Error supports(const Kernel& kernel) const override {
    const Kernel* one = &kernel;
    TW_ASSIGN(const CudaCode code, cuda_code({&one, 1}, device_, {chip_.name, chip_.level}));
    return ptxas_.empty() ? Error::success() : run_ptxas(ptxas_, code.bytes, chip_.name).takeError();
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
    TW_ASSIGN(CudaCode code, cuda_code(kernels, device_, {chip_.name, chip_.level}));
    out.launches = std::move(code.launches);
    std::vector<CudaImage> images;
    const CudaImageKind kind = chip_.exact ? CudaImageKind::cubin_exact : CudaImageKind::cubin;
    if (chip_.emulated) {
      TW_ASSIGN(CudaCode object, cuda_code(kernels, device_, {}));
      images.push_back({kind, chip_.number, std::move(object.bytes)});
    } else if (!ptxas_.empty()) {
      TW_ASSIGN(PtxasResult result, run_ptxas(ptxas_, code.bytes, chip_.name));
      images.push_back({kind, chip_.number, std::move(result.cubin)});
    }
    if (chip_.exact) {
      TW_ASSIGN(CudaCode portable, cuda_code(kernels, device_, {"sm_" + std::to_string(kPortable), chip_.level}));
      images.push_back({CudaImageKind::ptx, kPortable, portable.bytes + '\0'});
    } else {
      images.push_back({CudaImageKind::ptx, chip_.number, code.bytes + '\0'});
    }
    out.code = cuda_images(images);
    for (size_t k = 0; k < kernels.size(); ++k)
      if (kernels[k]) reports[k] = {kernels[k]->name, bytes_of(code.bytes, out.launches[k]), 0, 0};
    return reports;
  }

  std::string note() const override {
    return chip_.emulated || !ptxas_.empty() ? "" : "there is no ptxas (scripts/setup.sh cuda): the library holds PTX alone, unchecked, which the driver compiles when it is loaded";
  }

 private:
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
