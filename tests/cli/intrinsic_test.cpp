// A hardware instruction that only a target's YAML describes: a schedule uses it, the interpreter
// runs its meaning, and the compiled kernel contains the instruction and gives the same sums.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "ir/kernel/interpreter.h"
#include "ir/schedule/schedule.h"
#include "packager/link.h"

using namespace tw;

namespace {

const char* const kYaml = R"(
triple: x86_64-linux-gnu
features: [avx512f, avx512bw, avx512dq, avx512vl, avx512vnni, avx2, fma]
intrinsics:
  - name: x86.vpdpbusd
    features: [avx512vnni]
    rate: 1
    semantics: |
      kernel @vpdpbusd(a: in u8[4], b: in i8[64], c: out i32[16]) {
        for i in 16 { for k in 4 reduce { c: c[i] += i32(a[k]) * i32(b[i * 4 + k]) } }
      }
    emit: llvm.x86.avx512.vpdpbusd.512(c, a, b)
)";

const char* const kDense =
    R"(kernel @dense(x: in u8[3, 24], w: const i8[6, 32, 4], y: out i32[3, 32]) {
  temp c: i32[3, 32]
  for i in 3 { for j in 32 { for q in 6 reduce { for k in 4 reduce {
    c: c[i, j] += i32(x[i, q * 4 + k]) * i32(w[q, j, k]) init 0
  } } } }
  for a in 3 { for b in 32 {
    y: y[a, b] = max(c[a, b], 0)
  } }
})";

const char* const kSchedule = R"(schedule {
  split b 16 -> b0 b1
  reorder b0 a b1
  compute_at c b0
  reorder q c_i c_j k
  decompose_reduction c q
  tensorize c_j x86.vpdpbusd -> dot
  unroll c_i
  unroll c_i_init
  vectorize c_j_init
  unroll a
  vectorize b1
  set_scope c register
})";

std::vector<KernelArgument> arguments() {
  std::mt19937 random(3);
  std::vector<KernelArgument> list(3);
  list[0].bytes.resize(3 * 24);
  list[1].bytes.resize(6 * 32 * 4);
  list[2].bytes.resize(3 * 32 * 4);
  for (KernelArgument& a : list)
    for (std::byte& b : a.bytes) b = static_cast<std::byte>(random());
  return list;
}

void run_object(std::string object, const std::string& name,
                std::vector<KernelArgument>& arguments) {
  LinkRequest request;
  request.objects = {std::move(object)};
  request.exports = {name};
  Expected<LinkedImage> image = link_shared(request);
  REQUIRE_MESSAGE(bool(image), error_text(image.takeError()));
  std::string path = (std::filesystem::temp_directory_path() / "tw_kernel_XXXXXX").string();
  close(mkstemp(path.data()));
  std::ofstream(path, std::ios::binary) << image->bytes;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  REQUIRE_MESSAGE(library != nullptr, dlerror());
  std::vector<void*> buffers;
  for (KernelArgument& a : arguments) buffers.push_back(a.bytes.data());
  reinterpret_cast<void (*)(void* const*, void*, const int64_t*)>(dlsym(library, name.c_str()))(
      buffers.data(), nullptr, nullptr);
  dlclose(library);
}

}  // namespace

TEST_CASE("an instruction of the YAML target reaches the code") {
  Expected<Target> target = parse_target(kYaml, "vnni.yaml");
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  Expected<Target> again = parse_target(print(*target), "vnni.yaml");
  REQUIRE_MESSAGE(bool(again), error_text(again.takeError()));
  CHECK(print(*again) == print(*target));
  CHECK(codegen_hash(*again) == codegen_hash(*target));

  Expected<Kernel> kernel = parse_kernel(kDense);
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  Expected<Schedule> schedule = parse_schedule(kSchedule);
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<Kernel> scheduled = apply(*kernel, *schedule, &*target);
  REQUIRE_MESSAGE(bool(scheduled), error_text(scheduled.takeError()));
  CHECK(print(*scheduled).find("block dot by x86.vpdpbusd") != std::string::npos);

  std::vector<KernelArgument> expected = arguments(), interpreted = expected, compiled = expected;
  REQUIRE(error_text(interpret(*kernel, expected)) == "");
  REQUIRE(error_text(interpret(*scheduled, interpreted)) == "");
  CHECK(interpreted[2].bytes == expected[2].bytes);

  auto backend = make_backend(*target);
  REQUIRE(bool(backend));
  Expected<std::string> assembly = (*backend)->disassemble(*scheduled, "asm");
  REQUIRE_MESSAGE(bool(assembly), error_text(assembly.takeError()));
  CHECK(assembly->find("vpdpbusd") != std::string::npos);
  // This loads four bytes of x. The unsigned operand cannot come from memory.
  CHECK(assembly->find("vpbroadcastd") != std::string::npos);

  bool runs = true;
  const Target host = host_target();
  for (const std::string& feature : target->features) runs &= host.has(feature);
  if (!runs) {
    MESSAGE("SKIPPED: this machine has no AVX-512 VNNI");
    return;
  }
  Expected<std::string> object = (*backend)->compile_kernel(*scheduled);
  REQUIRE_MESSAGE(bool(object), error_text(object.takeError()));
  run_object(std::move(*object), scheduled->name, compiled);
  CHECK(compiled[2].bytes == expected[2].bytes);
}

TEST_CASE("an emit that the code generator does not know is an error with its place") {
  const auto problem = [](const std::string& emit) {
    std::string yaml = kYaml;
    yaml.replace(yaml.find("llvm.x86.avx512.vpdpbusd.512(c, a, b)"), 37, emit);
    Expected<Target> target = parse_target(yaml, "vnni.yaml");
    if (!target) return error_text(target.takeError());
    auto made = make_backend(*target);
    return made ? "" : error_text(made.takeError());
  };
  const std::pair<const char*, const char*> wrong[] = {
      {"dot(c, a, b)", "no code is known for 'dot'"},
      {"llvm.x86.no.such(c, a, b)", "LLVM has no intrinsic 'llvm.x86.no.such'"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a, b) over 32", "threads do nothing together"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a, b, 3)", "takes 3 operands"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a, &b)", "operand 'b' does not fit"},
      {"llvm.fma(c, a, b)", "which its name must end with"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a)", "nothing takes 'b'"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a, d)", "'d' is no parameter"},
      {"llvm.x86.avx512.vpdpbusd.512(c, a, b", "',' or ')' is expected at column 37"},
      {"[\"t = add(a, b)\", \"llvm.x86.avx512.vpdpbusd.512(c, a, b)\"]", "nothing takes 't'"},
      {"[\"w = widen.v16i8(b)\", \"llvm.x86.avx512.vpdpbusd.512(c, a, w)\"]",
       "the operand of 'widen.v16i8' does not fit it"},
      {"'asm(\"vpdpbusd $2, $1\", \"=q\", c, a, b)'", "constraints \"=q\""},
      {"'asm(\"nosuch $2, $1, $0\", \"=v,v,v,0\", a, b, c)'", "the code generator refuses it"},
  };
  for (const auto& [emit, text] : wrong) {
    CAPTURE(emit);
    const std::string told = problem(emit);
    CHECK_MESSAGE(told.find(text) != std::string::npos, told);
    CHECK_MESSAGE(told.find("vnni.yaml:12:11: ") != std::string::npos, told);
  }
  CHECK(problem("llvm.x86.avx512.vpdpbusd.512(c, a, b)") == "");
  CHECK(problem("'asm(\"vpdpbusd $2, $1, $0\", \"=v,v,v,0\", a, b, c)'") == "");
}

TEST_CASE("an instruction needs features that the target and a library can have") {
  const auto problem = [](const std::string& feature) {
    std::string yaml = kYaml;
    yaml.replace(yaml.find("features: [avx512vnni]"), 22, "features: [" + feature + "]");
    Expected<Target> target = parse_target(yaml, "vnni.yaml");
    return target ? "" : error_text(target.takeError());
  };
  CHECK(problem("avx512vnni") == "");
  CHECK(problem("amx-int8").find("needs the feature 'amx-int8', which the target has not") !=
        std::string::npos);
}

TEST_CASE("a description leaves shipped instructions out by name, and replaces them") {
  const std::string begin = "triple: aarch64-linux-gnu\nfeatures: [dotprod]\n";
  const Target all = *parse_target(begin, "t.yaml");
  CHECK(all.find_intrinsic("aarch64.sdot") != nullptr);
  CHECK(all.find_intrinsic("aarch64.smmla") == nullptr);
  Expected<Target> less = parse_target(begin + "without_intrinsics: [aarch64.sdot]\n", "t.yaml");
  REQUIRE(bool(less));
  CHECK(less->find_intrinsic("aarch64.sdot") == nullptr);
  CHECK(less->find_intrinsic("aarch64.udot") != nullptr);
  CHECK(codegen_hash(*less) != codegen_hash(all));
  CHECK(print(*parse_target(print(*less), "t.yaml")) == print(*less));
  auto unknown = parse_target(begin + "without_intrinsics: [x86.vpdpbusd.512]\n", "t.yaml");
  REQUIRE(!unknown);
  CHECK(error_text(unknown.takeError()).find("t.yaml:3:21: no instruction 'x86.vpdpbusd.512'") !=
        std::string::npos);
}

TEST_CASE("pairs says how an instruction adds products of bf16, and of nothing else") {
  const auto described = [](const std::string& pairs, const std::string& type, int depth) {
    const std::string k = std::to_string(depth);
    return parse_target(
        "triple: x86_64-linux-gnu\nintrinsics:\n  - name: dot\n    features: []\n"
        "    rate: 1\n    pairs: " +
            pairs + "\n    semantics: 'kernel @d(a: in " + type + "[" + k + "], b: in " + type +
            "[" + k + "], c: out f32[1]) { for k in " + k +
            " reduce { c: c[0] += f32(a[k]) * f32(b[k]) } }'\n    emit: dot(c, a, b)\n",
        "t.yaml");
  };
  Expected<Target> target = described("to-odd", "bf16", 2);
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  CHECK(target->find_intrinsic("dot")->pairs == PairRule::to_odd);
  Expected<Target> again = parse_target(print(*target), "t.yaml");
  REQUIRE_MESSAGE(bool(again), error_text(again.takeError()));
  CHECK(again->find_intrinsic("dot")->pairs == PairRule::to_odd);
  const auto problem = [&](const std::string& pairs, const std::string& type, int depth) {
    Expected<Target> wrong = described(pairs, type, depth);
    return wrong ? "" : error_text(wrong.takeError());
  };
  CHECK(problem("twice", "bf16", 2)
            .find("t.yaml:6:12: pairs must be in-order, second-first or to-odd") !=
        std::string::npos);
  const char* const refused = "t.yaml:6:12: intrinsic 'dot' does not add products of bf16";
  CHECK(problem("to-odd", "f16", 2).find(refused) != std::string::npos);
  CHECK(problem("second-first", "bf16", 3).find(refused) != std::string::npos);
}

TEST_CASE("mistakes in axes, scopes and intrinsics are told") {
  const auto problem = [](const std::string& yaml) {
    Expected<Target> target = parse_target("triple: x86_64-linux-gnu\n" + yaml, "t.yaml");
    return target ? "" : error_text(target.takeError());
  };
  CHECK(problem("axes: [{name: block.x, level: block, max: 8}]\nscopes: [{name: shared, level: "
                "block}]\n") == "");
  CHECK(problem("axes: [{name: block.x, level: block}]").find("t.yaml:2:8: ") != std::string::npos);
  CHECK(problem("axes: [{name: a, level: b, size: 8}]").find("unknown key 'size' in axes") !=
        std::string::npos);
  CHECK(problem("scopes: shared").find("scopes must be a list of maps") != std::string::npos);
  CHECK(problem("intrinsics: [{name: a, features: [], rate: 1, semantics: \"kernel\", emit: x}]")
            .find("the semantics are no kernel") != std::string::npos);
}
