// Generated headers compile strictly, in C and C++, two in one program, and the typed helpers reach
// the library.
#include "packager/header.h"

#include <doctest/doctest.h>

#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

using tw::DType;
using tw::InterfaceDim;
using Kind = tw::InterfaceDim::Kind;

tw::ModelInterface odd_model() {  // static, with names that C does not take
  tw::ModelInterface m;
  m.name = "odd";
  const InterfaceDim one{Kind::fixed, 1, {}}, four{Kind::fixed, 4, {}};
  m.inputs = {{"input.1:0", DType::f32, {one, four}},
              {"class", DType::i64, {}},
              {"Class_", DType::boolean, {four}},
              {"2x", DType::f16, {one}},
              {"a*/b\n\?\?/", DType::u8, {one}}};
  m.outputs = {{"input.1:0", DType::f64, {four, four}}, {"\xc3\xa9", DType::bf16, {}}};
  m.arena_bytes = 1024;
  return m;
}

tw::ModelInterface fake_model(const std::string& name) {
  tw::ModelInterface m;
  m.name = name;
  const InterfaceDim n{Kind::symbol, 0, {}}, four{Kind::fixed, 4, {}};
  m.symbols = {"n"};
  m.inputs = {{"a", DType::f32, {n, four}},
              {"b", DType::f32, {n, four}},
              {"c", DType::f32, {{Kind::computed, 0, "2*n"}}}};
  m.outputs = {{"y", DType::f32, {n, four}}, {"count", DType::i64, {}}};
  return m;
}

void write(const std::string& path, const std::string& text) {
  tw::Error error = tw::write_file(path, text);
  if (error) FAIL(tw::error_text(std::move(error)));
}

void must(const std::string& command) {
  const CommandResult result = run_command(command);
  INFO(command << "\n" << result.output);
  CHECK(result.status == 0);
}

const char* const kProgram = R"(#include "fake.h"
#include "odd.h"
#include "other.h"
#include <stdio.h>
int main(void) {
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {0, 0, 0, 0, 0, 0, 0, 0}, c[4] = {0.5f, 0, -300, 0}, y[8];
  int64_t count = 0;
  const tw_api* api = tw_fake_query(TW_ABI_VERSION);
  tw_context* context = NULL;
  tw_fake_io io;
  if (!api || tw_other_query(TW_ABI_VERSION) == api || tw_fake_query(TW_ABI_VERSION + 1)) return 1;
  if (tw_fake_create(api, 2, &context) != TW_OK) return 2;
  io.n = 2;
  io.a = a; io.b = b; io.c = c; io.y = y; io.y_bytes = sizeof y; io.count = &count;
  if (tw_fake_output_y_bytes(api, &io) != sizeof y) return 4;
  printf("%d ", (int)tw_fake_run(api, context, &io));
  printf("%d\n", (int)y[6]);
  io.n = 0;
  printf("%d %s\n", (int)tw_fake_run(api, context, &io), api->last_error(context));
  api->destroy(context);
  return sizeof(tw_odd_io) > 0 && TW_ODD_INPUT_INPUT_1_0_BYTES == 16 && TW_ODD_ARENA_BYTES == 1024 ? 0 : 3;
}
)";

}  // namespace

TEST_CASE("identifiers are valid and distinct") {
  std::vector<std::string> taken;
  CHECK(tw::c_identifier("input.1:0", taken) == "input_1_0");
  CHECK(tw::c_identifier("input/1:0", taken) == "input_1_0_2");
  CHECK(tw::c_identifier("INPUT_1_0", taken) == "INPUT_1_0_3");
  CHECK(tw::c_identifier("2x", taken) == "_2x");
  CHECK(tw::c_identifier("class", taken) == "class_");
  CHECK(tw::c_identifier("", taken) == "_");
  CHECK(tw::c_identifier("y", taken) == "y");
  CHECK(tw::c_identifier("y_bytes", taken) == "y_bytes_2");
  CHECK(tw::c_identifier("z_rank", taken) == "z_rank");
  CHECK(tw::c_identifier("z", taken) == "z_2");
}

TEST_CASE("headers compile strictly and two models link into one program") {
  const ScratchDir dir;
  write(dir / "odd.h", tw::write_header(odd_model()));
  write(dir / "fake.h", tw::write_header(fake_model("fake")));
  write(dir / "other.h", tw::write_header(fake_model("other")));
  write(dir / "main.c", kProgram);
  write(dir / "main.cpp", kProgram);
  write_fake(dir / "fake.so", "fake.x86_64");
  write_fake(dir / "other.so", "other.x86_64", "other");
  const std::string cd = "cd " + dir.path() + " && ", strict = " -Wall -Wextra -pedantic -Werror ";
  must(cd + TW_CLANG + strict + "-std=c99 -O0 main.c fake.so other.so -Wl,-rpath,. -o c_program");
  must(cd + TW_CLANG + strict + "-std=c++11 -x c++ -c main.cpp -o main.o");
  if (run_command("cc --version").status == 0)
    must(cd + "cc" + strict + "-std=c99 -O1 main.c fake.so other.so -Wl,-rpath,. -o c_program");
  const CommandResult run = run_command(cd + "./c_program");
  CHECK(run.output == "0 7\n5 input 0 (a): dim 0 is 0, expected at least 1 (n)\n");
  CHECK(run.status == 0);
}
