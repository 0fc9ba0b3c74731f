// Operators on strings, by the reference evaluator, which calls the runtime's own functions.
#include <doctest/doctest.h>

#include "frontend/onnx/ops/strings/regex.h"
#include "ir/graph/strings.h"
#include "tests/frontend/helpers.h"

namespace tw::test {
namespace {

std::vector<double> matched(const std::string& pattern, const std::vector<std::string>& texts) {
  const std::string dims = "[" + std::to_string(texts.size()) + "]";
  return run_graph("g (string" + dims + " x) => (bool" + dims +
                       " y) { y = RegexFullMatch<pattern = \"" + pattern + "\">(x) }",
                   {string_tensor({std::ssize(texts)}, texts)}, 20);
}

TEST_CASE("regular expressions match whole strings") {
  CHECK(matched("a|bc*", {"a", "b", "bccc", "ab", ""}) == std::vector<double>{1, 1, 1, 0, 0});
  CHECK(matched("[^a-c]{2,3}", {"xy", "xyzw", "xa", "öü"}) == std::vector<double>{1, 0, 0, 1});
  CHECK(matched("(?i)ab.", {"ABx", "ab", "aB\n"}) == std::vector<double>{1, 0, 0});
  // Backtracking would take forever on this.
  CHECK(matched("(a*)*(a*)*b", {std::string(2000, 'a')}) == std::vector<double>{0});
}

TEST_CASE("expressions without a program are refused by name") {
  const auto problem = [](const char* pattern) {
    Expected<std::vector<int32_t>> words = onnx_import::compile_regex(pattern);
    return words ? std::string() : error_text(words.takeError());
  };
  CHECK(problem("(?<=a)b").find("looks around") != std::string::npos);
  CHECK(problem("(a)\\1").find("refers to a group") != std::string::npos);
  CHECK(problem("a)").find("without its '('") != std::string::npos);
  CHECK(problem("(?m)^a$").find("the flag 'm'") != std::string::npos);
  CHECK(problem("((((((){1000}){1000}){1000}){1000}){1000}){1000}").find("instructions") !=
        std::string::npos);
  CHECK(problem("\xff").find("no UTF-8") != std::string::npos);
}

TEST_CASE("labels and equality") {
  const Tensor x = string_tensor({3}, {"red", "grey", "blue"});
  CHECK(
      run_graph("g (string[3] x) => (bool[3] y) <string[1] red = {\"red\"}> { y = Equal(x, red) }",
                {x}, 19) == std::vector<double>{1, 0, 0});
}

TEST_CASE("what moves elements moves strings") {
  const Tensor x = string_tensor({3}, {"red", "grey", "blue"});
  Tensor holds = Tensor::zeros(DType::boolean, {3});
  holds.set_int(0, 1), holds.set_int(2, 1);
  const auto equal_to = [](const std::string& first, const std::string& head,
                           const std::string& nodes, const std::vector<Tensor>& inputs) {
    return run_graph(head + " => (bool[2] y) <string[2] want = {\"" + first + "\", \"blue\"}, " +
                         "string[1] new = {\"new\"}, int64[1] i = {0}, int64[1,1] ij = {0}, " +
                         "int64[2] ends = {0, 2}, int64[1] size = {2}> { " + nodes +
                         " y = Equal(made, want) }",
                     inputs, 24);
  };
  const std::vector<double> both{1, 1};
  CHECK(equal_to("red", "g (string[3] x, bool[3] c)",
                 "s = Compress<axis = 0>(x, c) made = Reshape(s, size)", {x, holds}) == both);
  CHECK(equal_to("new", "g (string[3] x)", "s = ScatterElements(x, i, new) made = Gather(s, ends)",
                 {x}) == both);
  CHECK(equal_to("new", "g (string[3] x)", "s = ScatterND(x, ij, new) made = Gather(s, ends)",
                 {x}) == both);
  CHECK(error_of(graph_bytes("g (string[3] x) => (string[3] y) <int64[1] i = {0}, string[1] u = "
                             "{\"a\"}> { y = ScatterElements<reduction = \"add\">(x, i, u) }",
                             18))
            .find("a reduction of string") != std::string::npos);
}

TEST_CASE("arithmetic on strings is refused") {
  CHECK(
      error_of(graph_bytes("g (string[2] x) => (string[2] y) { y = Add(x, x) }")).find("string") !=
      std::string::npos);
  CHECK(error_of(graph_bytes("g (string[2] x) => (float[2] y) { y = Cast<to = 1>(x) }"))
            .find("LabelEncoder") != std::string::npos);
}

}  // namespace
}  // namespace tw::test
