#include "support/repro.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

TEST_CASE("a reproducer holds the open contexts, innermost first, and is written once") {
  CHECK(tw::write_reproducer().empty());
  std::string folder;
  {
    tw::CheckContext closed("closed", [] { return std::string("no"); });
  }
  tw::CheckContext outer("pass fold", [] { return std::string("graph"); });
  {
    tw::CheckContext inner("schedule conv", [] { return std::string("kernel"); });
    folder = tw::write_reproducer();
    CHECK(tw::write_reproducer().empty());
  }
  REQUIRE(!folder.empty());
  auto read = [&](const char* name) {
    std::ifstream file(folder + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  CHECK(read("0-schedule-conv.txt") == "kernel");
  CHECK(read("1-pass-fold.txt") == "graph");
  std::filesystem::remove_all(folder);
}
