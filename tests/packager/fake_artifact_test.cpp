#include "tests/packager/fake_artifact.h"

#include <doctest/doctest.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "backends/llvm/runtime_link.h"
#include "packager/artifact.h"

std::string compile_fake(const std::string& file) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();  // the runtime has inline assembly
  llvm::LLVMContext context;
  auto buffer = llvm::MemoryBuffer::getFile(std::string(TW_FAKE_DIR) + "/" + file + ".bc");
  REQUIRE(buffer);
  auto module = llvm::cantFail(llvm::parseBitcodeFile(**buffer, context));
  tw::Error linked = tw::link_runtime(*module, {});
  REQUIRE(!linked);
  std::string error;
  const llvm::Triple triple = module->getTargetTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  REQUIRE(target);
  const char* features = triple.isRISCV() ? "+m,+a,+f,+d,+c" : triple.isARM() ? "+neon,+vfp4" : "";
  llvm::TargetOptions options;
  options.FloatABIType = llvm::FloatABI::Hard;
  if (triple.isRISCV()) options.MCOptions.ABIName = "lp64d";
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(triple, "", features, options, llvm::Reloc::PIC_));
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  REQUIRE(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(*module);
  return object.str().str();
}

tw::LinkRequest fake_request(const std::string& file, const std::string& name) {
  tw::LinkRequest request;
  request.objects = {compile_fake(file)};
  request.soname = name + ".so";
  request.exports = {"tw_" + name + "_query"};
  request.manifest = "{\"model\": \"" + name + "\"}";
  return request;
}

void write_fake(const std::string& path, const std::string& file, const std::string& name, const std::vector<float>& weights) {
  auto image = tw::link_shared(fake_request(file, name));
  if (!image) FAIL(tw::error_text(image.takeError()));
  auto writer = tw::ArtifactWriter::create(path, *image, weights.size() * sizeof(float));
  if (!writer) FAIL(tw::error_text(writer.takeError()));
  tw::Error filled = writer->fill(0, weights.size() * sizeof(float), [&](std::span<std::byte> to) {
    std::memcpy(to.data(), weights.data(), to.size());
    return tw::Error::success();
  });
  REQUIRE(!filled);
  tw::Error done = writer->finish();
  if (done) FAIL(tw::error_text(std::move(done)));
}

ScratchDir::ScratchDir() : path_("/tmp/tw-test-XXXXXX") { REQUIRE(::mkdtemp(path_.data())); }
ScratchDir::~ScratchDir() { std::filesystem::remove_all(path_); }
int ScratchDir::files() const {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
}

CommandResult run_command(const std::string& command) {
  CommandResult result{-1, {}};
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}
