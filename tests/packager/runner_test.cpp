// The program that runs libraries is static, and the same each time, for every machine with an
// operating system. tests/boards tests its work.
#include "packager/runner.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <string>
#include <utility>

#include "packager/elf_view.h"

TEST_CASE("a runner needs nothing but the kernel") {
  for (const auto& [triple, machine] :
       {std::pair("x86_64-linux-gnu", EM_X86_64), std::pair("aarch64-linux-gnu", EM_AARCH64),
        std::pair("aarch64-linux-android", EM_AARCH64), std::pair("armv7-linux-gnueabihf", EM_ARM),
        std::pair("armv7-linux-androideabi", EM_ARM), std::pair("riscv64-linux-gnu", EM_RISCV)}) {
    CAPTURE(triple);
    auto program = tw::link_runner(triple);
    if (!program) FAIL(tw::error_text(program.takeError()));
    CHECK(program->size() < 128 << 10);
    auto again = tw::link_runner(triple);
    REQUIRE(bool(again));
    CHECK(*program == *again);
    auto view = tw::ElfView::parse(*program, "runner");
    REQUIRE(bool(view));
    CHECK(view->machine() == machine);
    int loaded = 0;
    for (const tw::ElfSegment& s : view->segments()) {
      CHECK(s.type != PT_INTERP);
      CHECK(s.type != PT_DYNAMIC);
      CHECK((s.type != PT_LOAD || (s.flags & (PF_W | PF_X)) != (PF_W | PF_X)));
      loaded += s.type == PT_LOAD;
    }
    CHECK(loaded > 1);
  }
}

TEST_CASE("without an operating system there is no runner") {
  auto program = tw::link_runner("thumbv7em-none-eabihf");
  REQUIRE(!program);
  CHECK(tw::error_text(program.takeError())
            .find("no runner for the triple 'thumbv7em-none-eabihf'") != std::string::npos);
}
