#include "tests/packager/fake_artifact.h"

#include <doctest/doctest.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "packager/artifact.h"
#include "runtime/embedded.h"

std::string compile_fake(const std::string& file) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(TW_FAKE_DIR) + "/" + file + ".o");
  REQUIRE(buffer);
  return (*buffer)->getBuffer().str();
}

tw::LinkRequest fake_request(const std::string& file, const std::string& name) {
  tw::LinkRequest request;
  request.objects = {compile_fake(file),
                     std::string(tw::runtime_object(file.substr(file.rfind('.') + 1)))};
  request.soname = name + ".so";
  request.exports = tw::model_exports(name);
  request.manifest = "{\"model\": \"" + name + "\"}";
  return request;
}

void write_fake(const std::string& path, const std::string& file, const std::string& name,
                const std::vector<float>& weights) {
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
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_),
                                        std::filesystem::directory_iterator()));
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
