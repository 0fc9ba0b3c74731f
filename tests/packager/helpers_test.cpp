// The runtime's conversions of halves, in a library for a processor without F16C, against the compiler's own.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>

#include "ir/dtype.h"
#include "packager/loaded_library.h"
#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

TEST_CASE("halves convert on a baseline processor") {
  const ScratchDir dir;
  const char* const source =
      "#include \"runtime/helpers.c\"\n"
      "#define API __attribute__((visibility(\"default\")))\n"
      "API uint16_t to_half(float x) { tw_f16_bits r; r.f = (_Float16)x; return r.u; }\n"
      "API uint16_t double_to_half(double x) { tw_f16_bits r; r.f = (_Float16)x; return r.u; }\n"
      "API float from_half(uint16_t x) { tw_f16_bits r; r.u = x; return (float)r.f; }\n"
      "API uint16_t to_bfloat(float x) { tw_bf16_bits r; r.f = (__bf16)x; return r.u; }\n";
  REQUIRE(!tw::write_file(dir / "h.c", source));
  const CommandResult built = run_command("cd " + dir.path() + " && " TW_CLANG " --target=x86_64-linux-gnu -march=x86-64 -O2 -ffreestanding "
                                          "-fPIC -fvisibility=hidden -c h.c -I " TW_SOURCE_DIR);
  INFO(built.output);
  REQUIRE(built.status == 0);
  std::ifstream stream(dir / "h.o", std::ios::binary);
  tw::LinkRequest request;
  request.objects = {std::string(std::istreambuf_iterator<char>(stream), {})};
  request.exports = {"to_half", "double_to_half", "from_half", "to_bfloat"};
  auto image = tw::link_shared(request);
  if (!image) FAIL(tw::error_text(image.takeError()));
  auto library = tw::LoadedLibrary::load(*image);
  REQUIRE(bool(library));
  const auto to_half = reinterpret_cast<uint16_t (*)(float)>(library->symbol("to_half"));
  const auto double_to_half = reinterpret_cast<uint16_t (*)(double)>(library->symbol("double_to_half"));
  const auto from_half = reinterpret_cast<float (*)(uint16_t)>(library->symbol("from_half"));
  const auto to_bfloat = reinterpret_cast<uint16_t (*)(float)>(library->symbol("to_bfloat"));
  int wrong = 0;
  for (int h = 0; h < 65536; ++h) {
    const float expected = tw::f16_to_f32(static_cast<uint16_t>(h)), got = from_half(static_cast<uint16_t>(h));
    if (std::isnan(expected) ? !std::isnan(got) : std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(got)) ++wrong;
  }
  CHECK(wrong == 0);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 9973) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(x)) {
      wrong += !std::isnan(from_half(to_half(x))) + !std::isnan(tw::bf16_to_f32(to_bfloat(x)));
      continue;
    }
    wrong += to_half(x) != tw::f32_to_f16(x);
    wrong += double_to_half(x) != to_half(x);
    wrong += to_bfloat(x) != tw::f32_to_bf16(x);
  }
  CHECK(wrong == 0);
  CHECK(double_to_half(std::ldexp(1.0, -25)) == 0);                                  // a tie goes to even: zero
  CHECK(double_to_half(std::nextafter(std::ldexp(1.0, -25), 1.0)) == 1);
  CHECK(double_to_half(1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)) == 0x3c01);  // no double rounding
  CHECK(double_to_half(65519.99) == 0x7bff);
  CHECK(double_to_half(65520) == 0x7c00);
  CHECK(library->symbol("nothing") == nullptr);
}
