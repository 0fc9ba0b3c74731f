#include "support/most_like.h"

#include <doctest/doctest.h>

using namespace tw;

TEST_CASE("the nearest names come first") {
  const std::vector<std::string> targets = {"cortex-a53", "cortex-a7", "cortex-m4", "znver4"};
  CHECK(most_like("cortex-a54", targets, 2) == std::vector<std::string>{"cortex-a53", "cortex-a7"});
  CHECK(most_like("x", {}, 2).empty());
}

TEST_CASE("only names that are near are asked about") {
  CHECK(did_you_mean("--treads", {"--threads", "--target", "--tune"}) ==
        "did you mean '--threads'?");
  CHECK(did_you_mean("bach", {"batch", "width"}) == "did you mean 'batch'?");
  CHECK(did_you_mean("seq", {"sequence", "batch"}) == "did you mean 'sequence'?");
  CHECK(did_you_mean("Batch", {"batch"}) == "did you mean 'batch'?");
  CHECK(did_you_mean("width", {"x[3]", "a.b.0"}).empty());
  CHECK(did_you_mean("N", {"M", "W"}).empty());
}
