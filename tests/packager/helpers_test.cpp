// The runtime's conversions of halves, in a library for a processor without F16C, against the
// compiler's own.
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
  const CommandResult built = run_command(
      "cd " + dir.path() +
      " && " TW_CLANG
      " --target=x86_64-linux-gnu -march=x86-64 -O2 -ffreestanding "
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
  const auto double_to_half = reinterpret_cast<uint16_t (*)(double)>(
      library->symbol("double_to_half"));
  const auto from_half = reinterpret_cast<float (*)(uint16_t)>(library->symbol("from_half"));
  const auto to_bfloat = reinterpret_cast<uint16_t (*)(float)>(library->symbol("to_bfloat"));
  int wrong = 0;
  for (int h = 0; h < 65536; ++h) {
    const float expected = tw::f16_to_f32(static_cast<uint16_t>(h)),
                got = from_half(static_cast<uint16_t>(h));
    if (std::isnan(expected) ? !std::isnan(got)
                             : std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(got))
      ++wrong;
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
  // A tie rounds to even, here to zero.
  CHECK(double_to_half(std::ldexp(1.0, -25)) == 0);
  CHECK(double_to_half(std::nextafter(std::ldexp(1.0, -25), 1.0)) == 1);
  // This would round up twice by way of f32.
  CHECK(double_to_half(1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)) == 0x3c01);
  CHECK(double_to_half(65519.99) == 0x7bff);
  CHECK(double_to_half(65520) == 0x7c00);
  CHECK(library->symbol("nothing") == nullptr);
}

TEST_CASE("64-bit integers divide and convert on ARMv7") {
  const ScratchDir dir;
  const char* const source =
      "#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
      "#ifdef __arm__\n#include \"runtime/helpers.c\"\n#endif\n"
      "static uint64_t state = 1, sum;\n"
      "static uint64_t next(void) { state = state * 6364136223846793005u + 1442695040888963407u; "
      "return state >> (state >> 58) | 1; }\n"
      "static void add(uint64_t v) { sum = (sum ^ v) * 0x100000001b3u; sum ^= sum >> 29; }\n"
      "static void add_double(double v) { uint64_t u; memcpy(&u, &v, 8); add(u); }\n"
      "static void add_float(float v) { uint32_t u; memcpy(&u, &v, 4); add(u); }\n"
      "int main(void) {\n"
      "  for (int i = 0; i < 200000; ++i) {\n"
      "    volatile uint64_t a = next(), b = next();\n"
      "    volatile int64_t c = i & 1 ? -(int64_t)(a >> 1) : (int64_t)(a >> 1), d = i & 2 ? "
      "-(int64_t)(b >> 1) - 1 : (int64_t)(b >> 1) + 1;\n"
      "    volatile uint32_t e = (uint32_t)a, f = (uint32_t)b | 1;\n"
      "    volatile double g = (double)(a >> 1), h = i & 1 ? -g : g;\n"
      "    volatile float k = (float)(a >> 2), l = i & 1 ? -k : k;\n"
      "    add(a / b), add(a % b), add((uint64_t)(c / d)), add((uint64_t)(c % d)), add(e / f), "
      "add(e % f), add((uint32_t)((int32_t)e / (int32_t)f)), add((uint32_t)((int32_t)e % "
      "(int32_t)f));\n"
      "    add_double((double)a), add_double((double)c), add_float((float)a), "
      "add_float((float)c);\n"
      "    add((uint64_t)g), add((uint64_t)(int64_t)h), add((uint64_t)k), "
      "add((uint64_t)(int64_t)l);\n"
      "  }\n"
      "  printf(\"%08x%08x\\n\", (unsigned)(sum >> 32), (unsigned)sum);\n"
      "  return 0;\n"
      "}\n";
  REQUIRE(!tw::write_file(dir / "h.c", source));
  const CommandResult native = run_command("cd " + dir.path() +
                                           " && " TW_CLANG " -O1 h.c -o native && ./native");
  REQUIRE_MESSAGE(native.status == 0, native.output);
  const CommandResult built = run_command("cd " + dir.path() +
                                          " && CLANG=" TW_CLANG " LLD=" TW_LLD " " TW_TEST_DIR
                                          "/cross_cc.sh armv7 h.c arm -I " TW_SOURCE_DIR
                                          " -I " TW_SOURCE_DIR "/runtime");
  if (built.status == 77 || run_command("qemu-arm --version").status != 0) {
    MESSAGE("skipped: no libc or no qemu for armv7");
    return;
  }
  REQUIRE_MESSAGE(built.status == 0, built.output);
  CHECK(run_command("qemu-arm -L /usr/arm-linux-gnueabihf " + (dir / "arm")).output ==
        native.output);
}

TEST_CASE("doubles of processors that have none are the processor's own") {
  const ScratchDir dir;
  const CommandResult run = run_command("cd " + dir.path() +
                                        " && " TW_CLANG " -O2 -I " TW_SOURCE_DIR " " TW_SOURCE_DIR
                                        "/tests/packager/soft_double.c -o soft -lm && ./soft");
  INFO(run.output);
  CHECK(run.status == 0);
}
