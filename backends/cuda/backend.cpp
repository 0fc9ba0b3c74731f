#include "backends/cuda/backend.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "backends/cuda/cuda.h"
#include "backends/cuda/image.h"
#include "backends/cuda/ptxas.h"
#include "backends/device/launch.h"
#include "support/parallel.h"

namespace tw::cuda {
namespace {

// Compute capability of the PTX that later chips compile themselves
constexpr uint32_t kPortable = 80;

struct Chip {
  std::string name, level;  // "sm_90a", "ptx80"
  uint32_t number = 0;      // 90
  bool exact = false;       // has a letter: the code runs on no other chip
  bool emulated = false;
  bool needs_ptxas = false;
};

Expected<Chip> chip_of(const Target& device) {
  Chip chip;
  for (const std::string& feature : device.features) {
    llvm::StringRef text = feature;
    uint32_t level = 0;
    if (text.consume_front("sm_") && !text.consumeInteger(10, chip.number))
      chip.name = feature, chip.exact = !text.empty();
    else if (llvm::StringRef rest = feature;
             rest.consume_front("ptx") && !rest.getAsInteger(10, level))
      chip.level = feature;
    else if (feature == "emulated") chip.emulated = true;
    else if (feature == "ptxas") chip.needs_ptxas = true;
    else
      return make_error({DiagCode::unsupported,
                         "device '" + device.name + "' has the unknown feature '" + feature + "'",
                         {},
                         {"features of the driver cuda: a chip (sm_80), a PTX level (ptx80), "
                          "ptxas: an error where there is none"}});
  }
  if (chip.name.empty() || chip.level.empty())
    return make_error({DiagCode::unsupported,
                       "device '" + device.name + "' needs a chip and a PTX level",
                       {},
                       {"for example features: [sm_80, ptx80]"}});
  return chip;
}

// Bytes of machine code in a cubin, which is an ELF file
int64_t code_bytes(const std::string& cubin) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(cubin, "cubin"));
  if (!file) return llvm::consumeError(file.takeError()), static_cast<int64_t>(cubin.size());
  int64_t bytes = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections())
    if (section.isText()) bytes += static_cast<int64_t>(section.getSize());
  return bytes;
}

// One kernel, compiled alone
struct Compiled {
  CudaCode ptx;
  std::string cubin;    // empty: no ptxas
  KernelReport report;  // without a name
};

class CudaBackend : public DeviceBackend {
 public:
  CudaBackend(Target device, Chip chip, std::string ptxas)
      : device_(std::move(device)), chip_(std::move(chip)), ptxas_(std::move(ptxas)) {}

  Error supports(const Kernel& kernel) const override { return compiled(kernel).takeError(); }

  Expected<std::vector<KernelReport>> compile(Program& program, int device,
                                              int jobs) const override {
    DeviceProgram& out = program.devices[static_cast<size_t>(device) - 1];
    const std::vector<bool> here = kernels_of(program, device);
    const size_t count = program.kernels.size();
    std::vector<KernelReport> reports(count);
    std::vector<std::vector<CudaImage>> images(count);
    out.launches.assign(count, {});
    TW_TRY(parallel_for(jobs, count, [&](size_t k) -> Error {
      if (!here[k]) return Error::success();
      TW_ASSIGN(const std::shared_ptr<const Compiled> kernel, compiled(program.kernels[k]));
      reports[k] = kernel->report;
      reports[k].name = program.kernels[k].name;
      TW_ASSIGN(reports[k].one_thread, device::runs_in_one_thread(program.kernels[k], device_));
      out.launches[k] = kernel->ptx.launches.front();
      TW_ASSIGN(images[k], images_of(program.kernels[k], *kernel));
      return Error::success();
    }));
    std::vector<CudaImage> table;
    uint32_t first = 0;
    for (size_t k = 0; k < count; ++k) {
      const auto launches = static_cast<uint32_t>(out.launches[k].size());
      for (CudaImage& image : images[k]) {
        image.first = first, image.launches = launches;
        table.push_back(std::move(image));
      }
      first += launches;
    }
    if (!table.empty()) out.code = cuda_images(table);
    return reports;
  }

  std::string note() const override {
    if (ptxas_.empty())
      return "there is no ptxas (scripts/setup.sh cuda): the library holds PTX alone, unchecked, "
             "which the driver compiles when it is loaded";
    return "machine code by ptxas " + ptxas_version(ptxas_) +
           ", on which the library's bytes depend";
  }

 private:
  // Compiles each kernel once. Placement asks for code of a kernel from several threads; later the
  // program needs it.
  Expected<std::shared_ptr<const Compiled>> compiled(const Kernel& kernel) const {
    Known* known = nullptr;
    {
      const std::lock_guard lock(mutex_);
      known = &known_[kernel_hash(kernel)];
    }
    const std::lock_guard lock(known->mutex);
    if (!known->made) { TW_ASSIGN(known->made, compile_alone(kernel)); }
    return known->made;
  }

  Expected<std::shared_ptr<const Compiled>> compile_alone(const Kernel& kernel) const {
    auto made = std::make_shared<Compiled>();
    TW_ASSIGN(made->ptx, cuda_code(std::array{&kernel}, device_, {chip_.name, chip_.level}));
    KernelReport& report = made->report;
    report.code_bytes = static_cast<int64_t>(made->ptx.bytes.size());
    if (ptxas_.empty()) return made;
    TW_ASSIGN(PtxasResult result, run_ptxas(ptxas_, made->ptx.bytes, chip_.name));
    made->cubin = std::move(result.cubin);
    report.code_bytes = code_bytes(made->cubin);
    for (const auto& [name, function] : result.functions) {
      report.registers = std::max(report.registers, function.registers);
      report.stack_bytes = std::max(report.stack_bytes, function.stack_bytes);
      report.shared_bytes = std::max(report.shared_bytes, function.shared_bytes);
    }
    return made;
  }

  Expected<std::vector<CudaImage>> images_of(const Kernel& kernel, const Compiled& made) const {
    std::vector<CudaImage> images;
    const CudaImageKind kind = chip_.exact ? CudaImageKind::cubin_exact : CudaImageKind::cubin;
    const auto add = [&](CudaImageKind what, uint32_t chip, std::string bytes) {
      images.push_back({what, chip, 0, 0, std::move(bytes)});
    };
    if (chip_.emulated) {
      TW_ASSIGN(CudaCode object, cuda_code(std::array{&kernel}, device_, {}));
      add(kind, chip_.number, std::move(object.bytes));
    } else if (!made.cubin.empty()) {
      add(kind, chip_.number, made.cubin);
    }
    if (chip_.exact) {
      TW_ASSIGN(CudaCode portable, cuda_code(std::array{&kernel}, device_,
                                             {"sm_" + std::to_string(kPortable), chip_.level}));
      add(CudaImageKind::ptx, kPortable, portable.bytes + '\0');
    } else {
      add(CudaImageKind::ptx, chip_.number, made.ptx.bytes + '\0');
    }
    return images;
  }

  Target device_;
  Chip chip_;
  std::string ptxas_;
  struct Known {
    std::mutex mutex;
    std::shared_ptr<const Compiled> made;  // null: not made yet, or failed
  };
  mutable std::mutex mutex_;
  mutable std::map<std::string, Known> known_;  // by kernel_hash
};

}  // namespace

}  // namespace tw::cuda

namespace tw {

Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Target& device) {
  TW_ASSIGN(cuda::Chip chip, cuda::chip_of(device));
  TW_TRY(check_emits(
      device, "calls of LLVM's intrinsics, llvm.name(c, a, b) and each.llvm.name(a), and async",
      [](const Intrinsic& intrinsic) {
        return intrinsic.emit == "async" ||
               std::ranges::all_of(intrinsic.emit.calls, [](const EmitCalls::Call& call) {
                 return call.callee.starts_with("llvm.") || call.callee.starts_with("each.llvm.");
               });
      }));
  std::string ptxas = cuda::find_ptxas();
  if (chip.needs_ptxas && ptxas.empty())
    return make_error(
        {DiagCode::unsupported,
         "device '" + device.name + "' has the feature 'ptxas', and there is no ptxas here",
         {},
         {"scripts/setup.sh cuda installs it"}});
  return std::make_unique<cuda::CudaBackend>(device, std::move(chip), std::move(ptxas));
}

}  // namespace tw
