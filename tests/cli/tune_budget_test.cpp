// The time of a tuning, by an injected clock; tables of few columns; the kinds of failures.
#include <doctest/doctest.h>

#include <cmath>

#include "autotune/network.h"
#include "cli/text/kernel_table.h"
#include "cli/text/text_width.h"
#include "cli/tune_table.h"
#include "driver/compare/reduce.h"

using namespace tw;

TEST_CASE(
    "the time of a tuning: what is kept for later and for measuring again is within the limit") {
  double now = 3;
  const TuneBudget budget(30, 6, [&] { return now; });
  CHECK(budget.left() == 21);
  CHECK(budget.search_seconds() == 21);
  CHECK(budget.fits(21));
  CHECK_FALSE(budget.fits(21.1));
  CHECK(budget.confirm_seconds(0, 0, 0) == 0);
  // Measurements under way when the search ends
  CHECK(budget.confirm_seconds(0, 100, 10) == doctest::Approx(0.2));
  CHECK(budget.confirm_seconds(5, 100, 10) ==
        doctest::Approx(0.2 + 5 * TuneBudget::confirm_one(100, 10)));
  // Confirming takes at most a share of the limit.
  CHECK(budget.confirm_seconds(1000, 100, 10) == doctest::Approx(9));
  CHECK(TuneBudget::confirm_one(100, 10) > 0.5);  // as long as several trials
  CHECK(TuneBudget::confirm_one(0, 0) > 0);
  now = 29;
  CHECK(budget.left() == -5);
  CHECK(budget.search_seconds() > 0);  // 0 would mean no limit
  CHECK(budget.search_seconds() < 0.01);

  const TuneBudget free(0, 0, [&] { return now; });
  CHECK(std::isinf(free.left()));
  CHECK(free.search_seconds() == 0);
  CHECK(free.fits(1e9));
  CHECK(free.confirm_seconds(7, 100, 10) == 0);
}

TEST_CASE("what is left of a tuning is said where it can be known") {
  double now = 10;
  const TuneBudget limited(30, 0, [&] { return now; }), free(0, 0, [&] { return now; });
  CHECK(rest_text(limited, 0, 50, 5) == "20.0 s left");
  CHECK(rest_text(limited, 60, 50, 5) == "1.00 s left");  // the trials set this time
  CHECK(rest_text(free, 60, 50, 5) == "1.00 s left");
  CHECK(rest_text(free, 60, 0, 5).empty());
  CHECK(rest_text(free, 0, 50, 5).empty());
  now = 40;
  CHECK(rest_text(limited, 0, 50, 5) == "0.00 s left");
}

TEST_CASE("names are cut in their middle") {
  CHECK(fit("conv 64x56x56 relu", 18) == "conv 64x56x56 relu");
  CHECK(fit("conv 64x56x56 relu", 12) == "conv .. relu");
  CHECK(fit("abcdefgh", 6) == "ab..gh");
  for (int columns = 0; columns < 10; ++columns)
    CHECK(fit("abcdefghijkl", columns).size() == static_cast<size_t>(columns));
  // Characters of two bytes stay whole
  CHECK(fit("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 4) == "\xc3\xa4..\xc3\xbc");
  CHECK(column("ab", 4) == "ab  ");
  CHECK(column("abcdefgh", 6) == "ab..gh");
}

TEST_CASE("the table of kernels fits its columns") {
  KernelTable table;
  for (int i = 0; i < 3; ++i)
    table.rows.push_back({"backbone.stage" + std::to_string(i) +
                              ".block.convolution, backbone.stage" + std::to_string(i) +
                              ".block.activation",
                          "conv_with_a_long_name_" + std::to_string(i),
                          1.5,
                          1e9,
                          1e6,
                          1e6,
                          1e6,
                          {},
                          2});
  for (const int columns : {80, 100, 140}) {
    CAPTURE(columns);
    const std::string text = to_string(table, columns);
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      CHECK(text.find('\n', at) - at <= static_cast<size_t>(columns));
    CHECK(text.find("conv_with_a") != std::string::npos);
    CHECK((text.find("spills") != std::string::npos) == (columns > 110));
  }
}

TEST_CASE("a failure is known by its code and words, not by its numbers") {
  const auto error = [](const std::string& code, const std::string& message) {
    return failure_of(R"({"error": [{"code": ")" + code + R"(", "message": ")" + message +
                      R"("}, {"code": "io", "message": "another"}]})");
  };
  CHECK(error("unsupported", "node 'conv_12' (Conv): window [3, 3] at 2.5") ==
        error("unsupported", "node 'conv_7' (Conv): window [5, 5, 5] at 17"));
  CHECK(error("unsupported", "node 'a' (Conv)") != error("unsupported", "node 'a' (Pool)"));
  CHECK(error("unsupported", "x") != error("invalid model", "x"));
  const auto off = [](const std::string& difference) {
    return failure_of(R"({"ok": false, "outputs": [{"name": "y", "difference": )" + difference +
                      "}]}");
  };
  const std::string values = off(R"({"ok": false, "max_abs": 0.5})"),
                    nan = off(R"({"ok": false, "max_abs": null})"),
                    shape = off(R"({"ok": false, "problem": "shape [1, 2], expected [1]"})");
  CHECK(values != nan);
  CHECK(values != shape);
  CHECK(values == off(R"({"ok": false, "max_abs": 3})"));
  CHECK(shape == off(R"({"ok": false, "problem": "shape [7], expected [3, 4]"})"));
  CHECK(failure_of("not JSON").empty());
}
