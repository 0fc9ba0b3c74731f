#include "driver/run/library_runs.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Program.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <filesystem>

#include "driver/run/compiled_network.h"
#include "frontend/frontend.h"
#include "ir/storage_types.h"
#include "packager/output_file.h"
#include "packager/runner.h"
#include "support/temporary_folder.h"

namespace tw {
namespace {

bool runs_on(const Target& target, const Target& host) {
  return target.triple == host.triple &&
         std::ranges::all_of(target.features, [&](const std::string& f) { return host.has(f); });
}

// QEMU's program for the architecture, with all that the target may ask for; "": there is none.
std::string emulator_for(const Target& target) {
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::aarch64: return "qemu-aarch64 -cpu max";
    case llvm::Triple::arm:
    case llvm::Triple::thumb: return "qemu-arm -cpu max";
    // Before QEMU 9.1 there is no `max`.
    case llvm::Triple::riscv64:
      return std::string("qemu-riscv64 -cpu rv64,v=") + (target.has("v") ? "true" : "false");
    default: return "";
  }
}

// The command that starts programs for the target; "": they run here, or nowhere
std::string command_for(const Target& target, const LibraryPlace& place) {
  return place.command.empty() && !runs_here(target) ? emulator_for(target) : place.command;
}

Error check_command(const Target& target, const std::string& command, const std::string& library) {
  if (command.empty() || target.devices.empty()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "'{0}': only its own machine has device '{1}', so it cannot be run by '{2}'",
                    library, target.main_device().name, command);
}

Expected<std::string> program_on_path(llvm::StringRef name) {
  const auto program = llvm::sys::findProgramByName(name);
  if (program) return *program;
  return make_error(DiagCode::unsupported,
                    "'{0}' is not on PATH: it starts programs for the library's machine", name);
}

}  // namespace

bool runs_here(const Target& target) { return runs_on(target, host_target()); }

class LibraryRuns::Runs {
 public:
  virtual ~Runs() = default;
  virtual Expected<std::vector<Tensor>> run(const Inputs& inputs) const = 0;

  std::vector<TensorSpec> inputs;
  std::vector<std::string> outputs;
  std::string machine;
};

namespace {

class RunsHere : public LibraryRuns::Runs {
 public:
  RunsHere(LoadedModel model, int threads) : model_(std::move(model)), threads_(threads) {
    inputs = input_specs(model_.api());
    for (int32_t i = 0; i < model_.api().output_count; ++i)
      outputs.emplace_back(model_.api().outputs[i].name);
    machine = "this machine";
  }
  Expected<std::vector<Tensor>> run(const Inputs& given) const override {
    return outputs_of(model_.api(), given, threads_);
  }

 private:
  LoadedModel model_;
  int threads_;
};

// Runs a library by its runner on another machine. Tensors go there and come back as files.
class RunsElsewhere : public LibraryRuns::Runs {
 public:
  RunsElsewhere(TemporaryFolder folder, const std::string& library, const Manifest& manifest,
                const LibraryPlace& place)
      : folder_(std::move(folder)),
        library_(std::filesystem::absolute(library).string()),
        threads_(place.threads) {
    machine = place.command;
    inputs = input_specs(manifest);
    for (const ManifestTensor& t : manifest.outputs) {
      outputs.push_back(t.name);
      output_types_.push_back(dtype_from_name(t.dtype).value_or(DType::f32));
    }
  }
  std::string runner() const { return folder_.path() + "/library.run"; }

  Expected<std::vector<Tensor>> run(const Inputs& given) const override {
    const std::string data = folder_.path() + "/data", made = folder_.path() + "/made";
    std::error_code none;
    std::filesystem::remove_all(data, none);
    std::filesystem::remove_all(made, none);
    std::filesystem::create_directory(data, none);
    for (size_t i = 0; i < given.tensors.size(); ++i)
      TW_TRY(save_output(data + "/input_" + std::to_string(i) + ".npy", given.tensors[i]));
    std::vector<std::string> words{runner(), "run", library_, "--data", data, "--output-dir", made};
    if (threads_ > 0) words.insert(words.end(), {"--threads", std::to_string(threads_)});
    for (const auto& [symbol, size] : given.symbols)
      words.insert(words.end(), {"--dim", symbol + "=" + std::to_string(size)});
    TW_TRY(start(words));
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < outputs.size(); ++i) {
      TW_ASSIGN(Tensor tensor, read_tensor(output_path(made, outputs[i])));
      if (is_storage_only(output_types_[i]) && tensor.dtype == DType::u8)
        tensor.dtype = output_types_[i];
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

 private:
  Error start(const std::vector<std::string>& arguments) const {
    llvm::SmallVector<llvm::StringRef, 4> command;
    llvm::SplitString(machine, command);
    std::vector<llvm::StringRef> words(command.begin(), command.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    TW_ASSIGN(const std::string program, program_on_path(words[0]));
    const std::string said = folder_.path() + "/said.txt";
    std::error_code none;
    std::filesystem::remove(said, none);
    const std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), llvm::StringRef(said),
                                                      llvm::StringRef(said)};
    std::string problem;
    const int code = llvm::sys::ExecuteAndWait(program, words, std::nullopt, streams, 0, 0,
                                               &problem);
    if (code == 0) return Error::success();
    const auto text = llvm::MemoryBuffer::getFile(said);
    return make_error(DiagCode::invalid_argument,
                      "'{0}' ended with {1}: the library does not run there: {2}", machine, code,
                      text && problem.empty() ? (*text)->getBuffer().rtrim().str() : problem);
  }

  TemporaryFolder folder_;
  std::string library_;
  int threads_;
  std::vector<DType> output_types_;
};

Expected<std::unique_ptr<LibraryRuns::Runs>> elsewhere(const std::string& library,
                                                       const Manifest& manifest,
                                                       const LibraryPlace& place,
                                                       const std::string& triple) {
  for (const auto* tensors : {&manifest.inputs, &manifest.outputs})
    for (const ManifestTensor& tensor : *tensors)
      if (tensor.dtype == dtype_name(DType::string))
        return make_error(DiagCode::unsupported,
                          "{0}: '{1}' is of strings, which only a library for this machine is "
                          "given: `{2}` would run it with numbers alone",
                          library, tensor.name, place.command);
  TW_ASSIGN(const std::string runner, link_runner(triple));
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  auto runs = std::make_unique<RunsElsewhere>(std::move(folder), library, manifest, place);
  TW_TRY(write_file(runs->runner(), runner, true));
  return runs;
}

}  // namespace

LibraryRuns::LibraryRuns(std::unique_ptr<Runs> runs) : runs_(std::move(runs)) {}
LibraryRuns::LibraryRuns(LibraryRuns&&) noexcept = default;
LibraryRuns& LibraryRuns::operator=(LibraryRuns&&) noexcept = default;
LibraryRuns::~LibraryRuns() = default;

const std::vector<TensorSpec>& LibraryRuns::inputs() const { return runs_->inputs; }
const std::vector<std::string>& LibraryRuns::outputs() const { return runs_->outputs; }
std::string LibraryRuns::machine() const { return runs_->machine; }
Expected<std::vector<Tensor>> LibraryRuns::run(const Inputs& inputs) const {
  return runs_->run(inputs);
}

Error LibraryRuns::check(const Target& target, const LibraryPlace& place) {
  const std::string command = command_for(target, place);
  TW_TRY(check_command(target, command, target.name));
  if (command.empty()) return Error::success();
  return program_on_path(llvm::StringRef(command).split(' ').first).takeError();
}

Expected<LibraryRuns> LibraryRuns::open(const std::string& library, const Manifest& manifest,
                                        const LibraryPlace& place, Integrity integrity) {
  TW_ASSIGN(const Target target,
            parse_target(manifest.target_yaml, library + " (its manifest's target)"));
  const LibraryPlace there{command_for(target, place), place.threads};
  if (there.command.empty()) {
    TW_ASSIGN(LoadedModel model, LoadedModel::open(library, integrity));
    return LibraryRuns(std::make_unique<RunsHere>(std::move(model), place.threads));
  }
  TW_TRY(check_command(target, there.command, library));
  if (integrity == Integrity::check) TW_TRY(read_manifest(library, integrity).takeError());
  TW_ASSIGN(std::unique_ptr<Runs> runs, elsewhere(library, manifest, there, target.triple));
  return LibraryRuns(std::move(runs));
}

}  // namespace tw
