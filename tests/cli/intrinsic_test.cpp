// A hardware instruction that stands only in a target's YAML: a schedule asks for it, the
// interpreter runs its meaning, and the compiled kernel holds the instruction and gives the same
// sums.
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

// Links the object, loads it and runs its kernel.
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
  // Four bytes of x; the unsigned operand cannot come from memory
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

TEST_CASE("an emit that the code generator does not know is an error") {
  Expected<Target> target = parse_target(kYaml, "vnni.yaml");
  REQUIRE(bool(target));
  const auto problem = [](auto& made) { return made ? "" : error_text(made.takeError()); };
  for (const char* emit : {"dot(c, a, b)", "llvm.x86.no.such(c, a, b)",
                           "llvm.x86.avx512.vpdpbusd.512(c, a, b) over 32", "async"}) {
    target->intrinsics[0].emit = emit;
    auto made = make_backend(*target);
    CHECK(problem(made).find("intrinsic 'x86.vpdpbusd': no code is known for emit '" +
                             std::string(emit) + "'") != std::string::npos);
  }
  target->driver = "opencl";
  target->features.clear();
  auto made = make_device_backend(*target);
  CHECK(problem(made).find("no code is known for emit 'async'") != std::string::npos);
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
  CHECK(problem("intrinsics: [{name: a, semantics: \"kernel\", emit: x}]")
            .find("the semantics are no kernel") != std::string::npos);
}
