#include "support/diag.h"

#include <doctest/doctest.h>

#include "support/hash.h"

TEST_CASE("an error keeps every diag and prints a line each") {
  std::vector<tw::Diag> list = {
      {tw::DiagCode::parse, "unknown key 'cors'", {"t.yaml", 3, 5}, {"known keys: cores"}},
      {tw::DiagCode::io, "disk full", {}, {}}};
  CHECK(tw::error_text(tw::make_error(list)) ==
        "t.yaml:3:5: unknown key 'cors'\n  note: known keys: cores\ndisk full");
  tw::Error none = tw::make_error(std::vector<tw::Diag>{});
  CHECK(!none);
}

TEST_CASE("sha256 of the standard's example") {
  CHECK(tw::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("sha256: both implementations agree at every length around the block's") {
  std::string bytes;
  for (int n = 0; n <= 300; ++n) {
    CHECK(tw::sha256_hex(bytes) == tw::sha256_hex(bytes, true));
    bytes += static_cast<char>(n * 37 + n / 7);
  }
  bytes.assign(100003, 'x');
  CHECK(tw::sha256_hex(bytes) == tw::sha256_hex(bytes, true));
}
