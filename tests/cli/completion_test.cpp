#include <doctest/doctest.h>

#include "cli_test_util.h"

using namespace tw;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("completion: every shell's script has every command, and the flags with their values") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const CliResult r = cli({"completion", shell});
    REQUIRE(r.code == kExitOk);
    for (const Command& c : all_commands()) CHECK(has(r.out, c.name));
    CHECK(has(r.out, "tilewright targets"));
    CHECK(has(r.out, "virtual-threads"));
  }
  CHECK(has(cli({"completion", "bash"}).out, "'compile -o'|'compile --output'"));
  const CliResult other = cli({"completion", "csh"});
  CHECK(other.code == kExitUser);
  CHECK(has(other.err, "one of bash, zsh, fish"));
}

TEST_CASE(
    "the manual page has every command with its flags and examples, and the exit codes once") {
  const CliResult r = cli({"man"});
  REQUIRE(r.code == kExitOk);
  CHECK(r.out.starts_with(".TH TILEWRIGHT 1"));
  for (const Command& c : all_commands())
    CHECK(has(r.out, std::string(".SS \"tilewright ") + c.name));
  CHECK(has(r.out, "\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR"));
  CHECK(has(r.out, "  tilewright compile resnet50.onnx\n"));
  CHECK(r.out.find("Exit codes") == r.out.rfind("Exit codes"));
}
