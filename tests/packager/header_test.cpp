// Generated headers compile strictly in C and C++, also two of them in one program, and their typed
// helpers reach the library.
#include "packager/header.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

using tw::DType;
using tw::InterfaceDim;
using Kind = tw::InterfaceDim::Kind;

tw::ModelInterface odd_model() {  // static sizes, and names that are not valid in C
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

tw::ModelInterface fake_model(const std::string& name, const std::string& prefix = "") {
  tw::ModelInterface m;
  m.name = name;
  m.prefix = prefix;
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
  tw_fake_output_count_t count = 0;
  int64_t dims[3];
  const tw_api* api = tw_fake_query(TW_ABI_VERSION);
  tw_context* context = NULL;
  tw_fake_io io;
  if (!api || tw_other_query(TW_ABI_VERSION) == api || tw_fake_query(TW_ABI_VERSION + 1)) return 1;
  if (tw_fake_create(api, 2, &context) != TW_OK) return 2;
  io.n = 2;
  io.a = a; io.b = b; io.c = c; io.y = y; io.y_bytes = sizeof y; io.count = &count;
  if (tw_fake_output_y_bytes(api, &io) != sizeof y) return 4;
  tw_fake_output_y_dims(api, &io, dims);
  tw_fake_input_c_dims(api, &io, dims + 2);
  if (dims[0] != 2 || dims[1] != 4 || dims[2] != 4) return 5;
  if (other_query(TW_ABI_VERSION) != tw_other_query(TW_ABI_VERSION) || OTHER_OUTPUTS != 2) return 6;
  if (tw_fake_arena_bytes(api, &io) != api->arena_bytes(&io.n)) return 7;
  printf("%d ", (int)tw_fake_run(api, context, &io));
  printf("%d\n", (int)y[6]);
  io.n = 0;
  printf("%d %s\n", (int)tw_fake_run(api, context, &io), api->last_error(context));
  api->destroy(context);
  return sizeof(tw_odd_io) > 0 && sizeof(tw_odd_input__2x_t) == 2 && TW_FAKE_INPUT_A_DIM_1 == 4 && TW_ODD_OUTPUT_INPUT_1_0_2_DIM_0 == 4 && TW_ODD_INPUT_INPUT_1_0_BYTES == 16 && TW_ODD_ARENA_BYTES == 1024 ? 0 : 3;
}
)";

const char* const kKeywords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq _Alignas _Bool _Complex _Generic "
    "__asm__ __attribute__ __func__ __int128 __restrict int64_t uint64_t size_t tw_status inputs "
    "outputs symbols context api io dims0 data final override import module";

// The C library's headers, which a program may include first
std::string library_headers() {
  std::string text;
  for (const char* name :
       {"assert",    "complex",   "ctype",         "errno",      "fenv",     "float",
        "inttypes",  "iso646",    "limits",        "locale",     "math",     "setjmp",
        "signal",    "stdarg",    "stdbool",       "stddef",     "stdint",   "stdio",
        "stdlib",    "string",    "time",          "wchar",      "wctype",   "unistd",
        "fcntl",     "sys/types", "sys/stat",      "sys/socket", "sys/time", "sys/mman",
        "sys/ioctl", "sys/wait",  "sys/sysmacros", "netinet/in", "netdb",    "poll",
        "pthread",   "dlfcn",     "dirent",        "termios",    "syslog",   "sched",
        "utmp",      "elf",       "link",          "linux/types"})
    text += std::string("#include <") + name + ".h>\n";
  return text;
}

// Keywords, and all macros of these headers
std::vector<std::string> awkward_names(const ScratchDir& dir) {
  write(dir / "library.c", library_headers());
  std::string words = kKeywords;
  for (const char* like : {"-x c -std=gnu17", "-x c++ -std=gnu++20"}) {
    const CommandResult defined = run_command(std::string(TW_CLANG " -D_GNU_SOURCE -dM -E ") +
                                              like + " " + (dir / "library.c"));
    REQUIRE(defined.status == 0);
    std::istringstream lines(defined.output);
    for (std::string line; std::getline(lines, line);)
      words += " " + line.substr(8, line.find_first_of(" (", 8) - 8);
  }
  std::vector<std::string> names;
  std::istringstream all(words);
  for (std::string word; all >> word;)
    if (std::ranges::find(names, word) == names.end()) names.push_back(word);
  return names;
}

}  // namespace

TEST_CASE("identifiers are valid and distinct") {
  std::vector<std::string> taken;
  CHECK(tw::c_identifier("input.1:0", taken) == "input_1_0");
  CHECK(tw::c_identifier("input/1:0", taken) == "input_1_0_2");
  CHECK(tw::c_identifier("Input_1_0", taken) == "Input_1_0_3");
  CHECK(tw::c_identifier("X", taken) == "X");
  CHECK(tw::c_identifier("EOF", taken) == "EOF_");
  CHECK(tw::c_identifier("2x", taken) == "_2x");
  CHECK(tw::c_identifier("class", taken) == "class_");
  CHECK(tw::c_identifier("", taken) == "_");
  CHECK(tw::c_identifier("y", taken) == "y");
  CHECK(tw::c_identifier("y_bytes", taken) == "y_bytes_2");
  CHECK(tw::c_identifier("z_rank", taken) == "z_rank");
  CHECK(tw::c_identifier("z", taken) == "z_2");
  CHECK(tw::c_identifier("w", taken, 2) == "w");
  CHECK(tw::c_identifier("w_dim_1", taken, 1) == "w_dim_1_2");
  CHECK(tw::c_identifier("w_dim_2", taken, 1) == "w_dim_2");
}

TEST_CASE("headers compile strictly and two models link into one program") {
  const ScratchDir dir;
  write(dir / "odd.h", tw::write_header(odd_model()));
  write(dir / "fake.h", tw::write_header(fake_model("fake")));
  write(dir / "other.h", tw::write_header(fake_model("other", "other")));
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
  CHECK(
      run.output ==
      "0 7\n5 input 0 (a): dim 0 is 0, expected at least 1 (n): one compiled with --dim n=0..MOST "
      "takes 0\n");
  CHECK(run.status == 0);
}

// Functions for the sizes of a freestanding object, in C alone. A long formula becomes a function
// of short lines.
TEST_CASE("a freestanding header's functions give the extents and the arena") {
  const ScratchDir dir;
  tw::ModelInterface m;
  m.name = "bare";
  m.freestanding = true;
  m.symbols = {"rows"};
  m.variables = {"n"};
  const tw::Expr n = tw::var("n");
  tw::Expr bytes = n * 64;
  for (int i = 1; i < 20; ++i)
    bytes = tw::max(bytes, tw::floor_div(n * (100 - i) + i, tw::Expr(3)) * 64);
  m.arena = bytes;
  m.arena_text = std::string(5000, 'x');
  m.inputs = {{"x", DType::f32, {{Kind::symbol, 0, {}, {}}}}};
  m.outputs = {{"y", DType::f32, {{Kind::computed, 0, "n // 2 + 1", tw::floor_div(n, 2) + 1}}},
               {"z", DType::i64, {{Kind::computed, 0, "data", tw::var("found")}}}};
  const std::string header = tw::write_header(m);
  write(dir / "bare.h", header);
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 200);
  const tw::Expr at_7 = tw::substitute(bytes, "n", 7);
  write(dir / "main.c", R"(#include "bare.h"
#include <stdio.h>
int main(void) {
  tw_bare_io io;
  int64_t dims[1];
  io.rows = 7;
  tw_bare_output_z_dims(&io, dims);
  printf("%d %d %d %llu\n", (int)dims[0], (int)tw_bare_output_y_bytes(&io), tw_bare_output_z_bytes(&io) == UINT64_MAX,
         (unsigned long long)tw_bare_arena_bytes(&io));
  return 0;
}
)");
  must("cd " + dir.path() + " && " TW_CLANG " -std=c99 -Wall -Wextra -Werror -c main.c -o main.o");
  if (run_command("cc --version").status != 0) return;
  // tw_bare_run is not called, so the functions it calls need not exist.
  must("cd " + dir.path() + " && cc -O1 main.c -o main");
  CHECK(run_command("cd " + dir.path() + " && ./main").output ==
        "-1 16 1 " + std::to_string(*tw::as_const(at_7)) + "\n");
}

TEST_CASE("headers of inputs and outputs of every type are C and C++, without a warning") {
  const ScratchDir dir;
  tw::ModelInterface m;
  m.name = "types";
  m.symbols = {"n"};
  for (int t = 0; t <= tw::kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    const std::string name = tw::dtype_name(dtype);
    m.inputs.push_back({"x_" + name, dtype, {{Kind::fixed, 3, {}}}});
    m.inputs.push_back({"free_" + name, dtype, {{Kind::symbol, 0, {}}}});
    m.outputs.push_back({"y_" + name, dtype, {{Kind::fixed, 3, {}}}});
    m.outputs.push_back({"made_" + name, dtype, {{Kind::computed, 0, "n + 1"}}});
  }
  m.needs = {"y (Add) needs n * 2 == 4 /* n */ // 2"};
  m.variables = {"n"};
  m.arena = tw::var("n") * 64;
  m.arena_text = "n*64 /* n */";
  write(dir / "types.h", tw::write_header(m));
  m.prefix = "My_types";
  write(dir / "prefixed.h", tw::write_header(m));
  m.freestanding = true;  // a freestanding header refuses strings
  for (std::vector<tw::InterfaceTensor>* tensors : {&m.inputs, &m.outputs})
    std::erase_if(*tensors, [](const auto& tensor) { return tensor.dtype == DType::string; });
  write(dir / "bare.h", tw::write_header(m));
  const bool has_cc = run_command("cc --version").status == 0;
  for (const std::string header : {"types.h", "prefixed.h", "bare.h"})
    for (const std::string standard : {"c99", "c11", "c17", "c++11", "c++17", "c++20"}) {
      const bool cpp = standard.find("++") != std::string::npos;
      const std::string file = dir / (header + (cpp ? ".cpp" : ".c"));
      write(file, "#include \"" + header + "\"\n");
      const std::string rest = " -Wall -Wextra -pedantic -Werror -fsyntax-only -std=" + standard +
                               (cpp ? " -x c++ " : " -x c ") + file;
      must(TW_CLANG + rest);
      if (has_cc) must("cc" + rest);
    }
}

TEST_CASE("no name of a tensor is a keyword or a macro, whatever the version of C or C++") {
  const ScratchDir dir;
  tw::ModelInterface m;
  m.name = "names";
  m.symbols = {"n", "stdin", "I"};
  const std::vector<std::string> names = awkward_names(dir);
  REQUIRE(names.size() > 3000);
  for (const std::string& name : names)
    m.inputs.push_back({name, DType::i64, {{Kind::symbol, 0, {}}}});
  m.outputs = {{"errno", DType::f32, {{Kind::symbol, 1, {}}}}, {"linux", DType::f32, {}}};
  write(dir / "names.h", tw::write_header(m));
  m.freestanding = true;
  write(dir / "bare.h", tw::write_header(m));
  for (const char* header : {"names.h", "bare.h"})
    for (const char* file : {"main.c", "main.cpp"})
      write(dir / (std::string(header) + "." + file),
            library_headers() + "#include \"" + header + "\"\n");
  const bool has_cc = run_command("cc --version").status == 0;
  for (const std::string standard : {"gnu89", "c99", "gnu99", "c11", "c17", "gnu17", "c2x",
                                     "gnu++98", "c++11", "c++14", "c++17", "gnu++20", "c++2b"}) {
    const bool cpp = standard.find("++") != std::string::npos;
    for (const char* header : {"names.h", "bare.h"}) {
      const std::string file = dir / (std::string(header) + (cpp ? ".main.cpp" : ".main.c"));
      const std::string rest = " -D_GNU_SOURCE -Wno-deprecated -fsyntax-only -std=" + standard +
                               (cpp ? " -x c++ " : " -x c ") + file;
      must(TW_CLANG + rest);
      if (has_cc) must("cc" + rest);
    }
  }
}
