#include "ir/kernel/code_size.h"

#include "tests/ir/parsed.h"

namespace tw {
namespace {

// Counts the operations of a store in loops of these kinds. The store has five: itself, a sum, two
// loads and a difference.
int64_t operations(const std::string& rows, const std::string& columns, int64_t lanes) {
  return written_out_operations(
      test::parsed_kernel("kernel @k(x: in f32[3, 20], y: out f32[3, 20]) { for i in 3 " + rows +
                          " { for j in 20 " + columns +
                          " { y: y[i, j] = x[i, j] + x[2 - i, j] } } }"),
      lanes);
}

TEST_CASE("unrolled loops are written out, vectors in steps of lanes; loops count once") {
  CHECK(operations("", "", 8) == 5);
  CHECK(operations("unroll", "", 8) == 15);
  CHECK(operations("", "vector", 8) == 15);
  CHECK(operations("unroll", "vector", 8) == 45);
  CHECK(operations("unroll", "unroll", 8) == 300);
}

}  // namespace
}  // namespace tw
