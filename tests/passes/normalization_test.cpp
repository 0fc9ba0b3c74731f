// Normalizations written as several operators become one.
#include <doctest/doctest.h>

#include "run_pass.h"

using tw::test::canonicalizes, tw::test::keeps;

namespace {

// The root of the variance of %d, f32[3, 8], from its squares on
std::string root_of(const std::string& square) {
  return R"(
    %epsilon: f32[] = const [0.0009765625]
    %square: f32[3, 8] = )" +
         square + R"(
    %variance: f32[3, 1] = reduce(%square) kind=mean axes=[1]
    %safe: f32[3, 1] = binary(%variance, %epsilon) function=add
    %root: f32[3, 1] = unary(%safe) function=sqrt
)";
}
const char* const kCentred = R"(
    %x: f32[3, 8] = input
    %mean: f32[3, 1] = reduce(%x) kind=mean axes=[1]
    %d: f32[3, 8] = binary(%x, %mean) function=sub
)";

}  // namespace

TEST_CASE("a layer norm of many operators, with scale and bias") {
  const std::string before = kCentred + root_of("binary(%d, %d) function=mul") + R"(
    %scale: f32[1, 8] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %bias: f32[8] = const [8, 7, 6, 5, 4, 3, 2, 1]
    %n: f32[3, 8] = binary(%d, %root) function=div
    %s: f32[3, 8] = binary(%n, %scale) function=mul
    %y: f32[3, 8] = binary(%s, %bias) function=add
    output %y
  )";
  canonicalizes(before, R"(
    %x: f32[3, 8] = input
    %bias: f32[8] = const [8, 7, 6, 5, 4, 3, 2, 1]
    %scale_tail: f32[8] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %y: f32[3, 8] = layer_norm(%x, %scale_tail, %bias) axis=1 epsilon=0.0009765625 centred=true
    output %y
  )");
}

TEST_CASE("root mean squares: divided by, and times a reciprocal") {
  const std::string after = R"(
    %x: f32[3, 8] = input
    %y_one: f32[] = const [1]
    %y: f32[3, 8] = layer_norm(%x, %y_one) axis=1 epsilon=0.0009765625 centred=false
    output %y
  )";
  const std::string begin = "%x: f32[3, 8] = input\n" + root_of("binary(%x, %x) function=mul");
  canonicalizes(begin + R"(
    %y: f32[3, 8] = binary(%x, %root) function=div
    output %y
  )",
                after);
  canonicalizes(begin + R"(
    %one: f32[] = const [1]
    %inverse: f32[3, 1] = binary(%one, %root) function=div
    %y: f32[3, 8] = binary(%inverse, %x) function=mul
    output %y
  )",
                after);
}

TEST_CASE("a norm over the last two axes of a reshape is one over an axis") {
  canonicalizes(R"(
    %x: f32[3, 8] = input
    %epsilon: f32[] = const [0.0009765625]
    %r: f32[3, 2, 4] = reshape(%x) shape=[3,2,4]
    %mean: f32[3, 1, 1] = reduce(%r) kind=mean axes=[1,2]
    %d: f32[3, 2, 4] = binary(%r, %mean) function=sub
    %square: f32[3, 2, 4] = binary(%d, %d) function=mul
    %variance: f32[3, 1, 1] = reduce(%square) kind=mean axes=[1,2]
    %safe: f32[3, 1, 1] = binary(%variance, %epsilon) function=add
    %root: f32[3, 1, 1] = unary(%safe) function=sqrt
    %y: f32[3, 2, 4] = binary(%d, %root) function=div
    output %y
  )",
                R"(
    %x: f32[3, 8] = input
    %y_one: f32[] = const [1]
    %y_normed: f32[3, 8] = layer_norm(%x, %y_one) axis=1 epsilon=0.0009765625
    %y: f32[3, 2, 4] = reshape(%y_normed) shape=[3,2,4]
    output %y
  )");
}

TEST_CASE("what only resembles a norm stays") {
  SUBCASE("the squares are of something else") {
    keeps(kCentred + root_of("binary(%x, %d) function=mul") + R"(
    %y: f32[3, 8] = binary(%d, %root) function=div
    output %y
  )");
  }
  SUBCASE("other rows are divided") {
    keeps(kCentred + root_of("binary(%d, %d) function=mul") + R"(
    %y: f32[3, 8] = binary(%x, %root) function=div
    output %y
  )");
  }
  SUBCASE("the axis is not the last") {
    keeps(R"(
    %x: f32[3, 8] = input
    %epsilon: f32[] = const [0.0009765625]
    %square: f32[3, 8] = binary(%x, %x) function=mul
    %variance: f32[1, 8] = reduce(%square) kind=mean axes=[0]
    %safe: f32[1, 8] = binary(%variance, %epsilon) function=add
    %root: f32[1, 8] = unary(%safe) function=sqrt
    %y: f32[3, 8] = binary(%x, %root) function=div
    output %y
  )");
  }
}

TEST_CASE("softmax and log-softmax of many operators") {
  const std::string begin = R"(
    %x: f32[3, 8] = input
    %top: f32[3, 1] = reduce(%x) kind=max axes=[1]
    %d: f32[3, 8] = binary(%x, %top) function=sub
    %e: f32[3, 8] = unary(%d) function=exp
)";
  const auto becomes = [&](const std::string& end, const std::string& log) {
    canonicalizes(begin + "%sum: f32[3, 1] = reduce(%e) kind=sum axes=[1]\n" + end + "output %y\n",
                  "%x: f32[3, 8] = input\n%y: f32[3, 8] = softmax(%x) axis=1 log=" + log +
                      " masked=false\noutput %y\n");
  };
  becomes("%y: f32[3, 8] = binary(%e, %sum) function=div\n", "false");
  becomes(
      "%log: f32[3, 1] = unary(%sum) function=log\n"
      "%y: f32[3, 8] = binary(%d, %log) function=sub\n",
      "true");
  // The sum is over columns, but the maximum was over rows.
  keeps(begin + R"(
    %sum: f32[1, 8] = reduce(%e) kind=sum axes=[0]
    %y: f32[3, 8] = binary(%e, %sum) function=div
    output %y
  )");
}
