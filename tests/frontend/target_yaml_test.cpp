#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/frontend.h"
#include "tests/frontend/helpers.h"

namespace tw {
namespace {

const std::string kConfigs = std::string(TW_SOURCE_DIR) + "/configs";

std::string yaml_error(const std::string& yaml) {
  Expected<Target> target = parse_target(yaml, "t.yaml");
  return target ? "" : error_text(target.takeError());
}

bool equal(const Target& a, const Target& b) {
  return a.name == b.name && a.triple == b.triple && a.cpu == b.cpu && a.features == b.features &&
         a.cores == b.cores && a.l1_bytes == b.l1_bytes && a.l2_bytes == b.l2_bytes &&
         a.l3_bytes == b.l3_bytes && a.vector_bits == b.vector_bits &&
         a.vector_registers == b.vector_registers && a.fast_math == b.fast_math &&
         a.accuracy == b.accuracy && a.precision == b.precision &&
         a.predicted_schedules == b.predicted_schedules && a.core == b.core;
}

TEST_CASE("a full description is read, sizes in any unit") {
  Expected<Target> t = parse_target(
      "name: board\ntriple: aarch64-linux-gnu\ncpu: cortex-a72\nfeatures: [neon, crc]\ncores: 4\n"
      "caches: {l1: 32768, l2: 1MiB, l3: 0}\nvector_bits: 128\nvector_registers: 32\nfast_math: "
      "true\naccuracy: 1e-3\nprecision: bf16\nschedules: predicted\n",
      "t.yaml");
  REQUIRE(t);
  CHECK(t->name == "board");
  CHECK(t->arch() == Arch::aarch64);
  CHECK(t->features == std::vector<std::string>{"crc", "neon"});
  CHECK(t->l1_bytes == 32768);
  CHECK(t->l2_bytes == 1 << 20);
  CHECK(t->fast_math);
  CHECK(t->accuracy == 1e-3);
  CHECK(t->precision == Precision::bf16);
  CHECK(t->predicted_schedules);
  Expected<Target> again = parse_target(print(*t), "t.yaml");
  REQUIRE(again);
  CHECK(equal(*t, *again));
}

TEST_CASE("what is left out comes from the cpu") {
  Expected<Target> t = parse_target("triple: x86_64-linux-gnu\ncpu: x86-64-v4\n", "dir/mine.yaml");
  REQUIRE(t);
  CHECK(t->name == "mine");
  CHECK(t->has("avx512vl"));
  CHECK(t->vector_bits == 512);
  CHECK(t->vector_registers == 32);
  Expected<Target> plain = parse_target("triple: x86_64-linux-gnu\n", "t.yaml");
  REQUIRE(plain);
  CHECK(plain->vector_bits == 128);
  CHECK(plain->has("sse2"));
  CHECK_FALSE(plain->has("avx"));
}

const std::string kWide = "triple: x86_64-linux-gnu\ncpu: x86-64-v4\n";

TEST_CASE("rates of a core: some may be given, the others follow from vectors and features") {
  Expected<Target> t = parse_target(
      kWide +
          "rates:\n  clock: 2e9\n  multiply_adds: {f32: 32}\n  bytes: {l2: 48}\n  cpus: "
          "[skx, cascadelake]\n",
      "t.yaml");
  if (!t) FAIL(error_text(t.takeError()));
  CHECK(t->core.clock == 2e9);
  CHECK(t->core.loads == 0);
  CHECK(t->core.cpus == std::vector<std::string>{"skx", "cascadelake"});
  Expected<Target> again = parse_target(print(*t), "again.yaml");
  REQUIRE(again);
  CHECK(equal(*t, *again));
  const CoreRates rates = core_rates(*t);
  CHECK(rates.f32 == 32);
  CHECK(rates.f64 == 16);
  CHECK(rates.bf16 == 0);  // no instruction multiplies bf16
  CHECK(rates.multiply_adds(DType::bf16) == 32);
  CHECK(rates.i8 == 64);
  CHECK(rates.loads == 1);
  CHECK(rates.l2_bytes == 48);
  CHECK(rates.l3_bytes == 20);
  t->core = {};
  CHECK(core_rates(*t).f32 == 16);  // one unit of 512 bits
  t->vector_bits = 256;
  CHECK(core_rates(*t).f32 == 16);  // or two units of 256 bits
  t->vector_bits = 512;
  t->features.push_back("amx-tile");
  CHECK(core_rates(*t).f32 == 32);
  t->features.insert(t->features.end(), {"amx-int8", "amx-bf16"});
  CHECK(core_rates(*t).i8 == 1024);
  CHECK(core_rates(*t).bf16 == 512);
  t->features.push_back("avx512fp16");
  CHECK(core_rates(*t).f16 == 64);
  t->features.push_back("amx-fp16");
  CHECK(core_rates(*t).f16 == 512);
}

TEST_CASE("rates of a core: mistakes") {
  const std::string at = "t.yaml:3:";
  const auto error = [](const std::string& rates) { return yaml_error(kWide + rates + "\n"); };
  CHECK(error("rates: {speed: 1}").find(at + "9: unknown key 'speed' in rates") == 0);
  CHECK(error("rates: {speed: 1}")
            .find("accepted keys: clock, multiply_adds, loads, stores, bytes") !=
        std::string::npos);
  CHECK(error("rates: {multiply_adds: {f8: 1}}").find(at + "25: unknown key 'f8'") == 0);
  CHECK(error("rates: {clock: 0}").find(at + "16: clock must be a number above 0") == 0);
  CHECK(error("rates: {bytes: {l3: -2}}").find(at + "21: l3 must be a number above 0") == 0);
  CHECK(error("rates: {loads: two}").find(at + "16: loads must be a number above 0") == 0);
  CHECK(error("rates: {loads: .inf}").find(at + "16: loads must be a number above 0") == 0);
  CHECK(error("rates: 3").find(at + "8: rates must be a map") == 0);
  CHECK(error("rates: {cpus: skx}").find(at + "15: cpus must be a list") == 0);
  CHECK(error("rates: {cpus: [skxx]}").find(at + "16: unknown cpu 'skxx'") == 0);
}

TEST_CASE("rates of a core: those of the description for its cpu, and they change no code") {
  const auto loaded = [](const std::string& yaml) {
    Expected<Target> t = parse_target(yaml, "t.yaml");
    if (!t) FAIL(error_text(t.takeError()));
    return with_all_rates(*t, {kConfigs});
  };
  const std::string x86 = "triple: x86_64-linux-gnu\ncpu: ";
  const Target zen5 = loaded(x86 + "znver5\n"), skylake = loaded(x86 + "skylake-avx512\n");
  CHECK(zen5.core.l3_bytes == 30);
  CHECK(zen5.core.sums == 3);
  CHECK(skylake.core.l3_bytes == 10);  // from the description that lists this cpu
  CHECK(skylake.core.scattered > 0);
  CHECK(loaded(x86 + "znver5\nrates: {bytes: {l3: 40}}\n").core.l3_bytes == 40);
  CHECK(loaded(x86 + "znver5\nvector_bits: 256\n").core.l3_bytes == 20);  // with other vectors
  // x86-64-v4 has no AMX, so this is another chip and does not take its rates.
  CHECK(loaded(x86 + "x86-64-v4\nfeatures: [avx512vl, avx512bw, avx512dq, amx-tile]\n")
            .core.l3_bytes == 10);
  Target other = zen5;
  other.core.clock *= 2;
  CHECK(codegen_hash(other) == codegen_hash(zen5));
}

TEST_CASE("implied features are added") {
  Expected<Target> t = parse_target("triple: x86_64-linux-gnu\nfeatures: [avx2]\n", "t.yaml");
  REQUIRE(t);
  CHECK(t->has("avx"));
  CHECK(t->has("sse4.2"));
}

TEST_CASE("mistakes name file, line, column and what is accepted") {
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncors: 4\n") ==
        "t.yaml:2:1: unknown key 'cors' in the target\n  note: did you mean 'cores'?\n  note: "
        "accepted keys: name, triple, cpu, "
        "features, cores, caches, vector_bits, "
        "vector_registers, fast_math, accuracy, precision, schedules, rates, axes, scopes, "
        "intrinsics, "
        "without_intrinsics, devices, isa, budget");
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncaches: {l1: 32KiB, l4: 1}\n")
            .find("t.yaml:2:21: unknown key 'l4' in caches") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncores: many\n")
            .find("t.yaml:2:8: cores must be an integer from 1 to") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncores: 0\n").find("t.yaml:2:8: cores must be") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncores: 2\ncores: 3\n")
            .find("t.yaml:3:1: key 'cores' is given twice") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncaches: {l1: 32KB}\n")
            .find("t.yaml:2:14: l1 must be a size") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\nfeatures: avx2\n")
            .find("t.yaml:2:11: features must be a list") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\nfeatures: [avx2, avx3]\n")
            .find("t.yaml:2:18: unknown feature 'avx3' for x86_64") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\ncpu: cortex-a72\n")
            .find("t.yaml:2:6: unknown cpu 'cortex-a72' for x86_64") == 0);
  for (const auto& [triple, cpu, like] :
       {std::tuple{"x86_64-linux-gnu", "skylake-avx51", "skylake-avx512"},
        {"aarch64-linux-gnu", "cortex-a7x", "cortex-a7"},
        {"armv7-linux-gnueabihf", "cortex-a99", "cortex-a9"},
        {"riscv64-linux-gnu", "sifive-u75", "sifive-u7"}}) {
    const std::string error = yaml_error(std::string("triple: ") + triple + "\ncpu: " + cpu + "\n");
    CHECK_MESSAGE(error.find(std::string("t.yaml:2:6: unknown cpu '") + cpu) == 0, error);
    CHECK_MESSAGE(error.find(like) != std::string::npos, error);
  }
  CHECK(
      yaml_error("triple: x86_64-linux-gnu\nfeatures: [avx512v]\n").find("without '+': avx512vl") !=
      std::string::npos);
  const std::string sparc = yaml_error("triple: sparc-sun-solaris\n");
  CHECK(sparc ==
        "t.yaml:1:9: no code can be made for triple 'sparc-sun-solaris'\n"
        "  note: accepted: x86_64-linux-gnu, aarch64-linux-gnu, aarch64-linux-android, "
        "armv7-linux-gnueabihf, armv7-linux-androideabi, riscv64-linux-gnu, x86_64-none-elf, "
        "aarch64-none-elf, "
        "armv7-none-eabihf, "
        "riscv64-none-elf, thumbv7em-none-eabihf, thumbv8m.main-none-eabihf, "
        "thumbv8.1m.main-none-eabihf");
  for (const char* triple :
       {"armv6-linux-gnueabihf", "armv7-linux-gnueabi", "armv8-linux-androideabi",
        "aarch64-apple-macos", "x86_64-linux", "riscv64-linux-musl", "armeb-linux-gnueabihf"}) {
    const std::string refused = yaml_error(std::string("triple: ") + triple + "\n");
    CHECK(refused.substr(refused.find('\n')) == sparc.substr(sparc.find('\n')));
  }
  // Every architecture in the list is accepted.
  std::string accepted = sparc.substr(sparc.find("accepted: ") + 10);
  while (!accepted.empty()) {
    const size_t end = std::min(accepted.find(", "), accepted.size());
    CHECK(bool(parse_target("triple: " + accepted.substr(0, end) + "\n", "t.yaml")));
    accepted.erase(0, end + 2);
  }
  CHECK(yaml_error("triple: x86_64-linux-gnu\nvector_bits: 384\n")
            .find("t.yaml:2:14: vector_bits must be a power of two") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\nfast_math: yes\n")
            .find("t.yaml:2:12: fast_math must be true or false") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\naccuracy: -1\n")
            .find("t.yaml:2:11: accuracy must be") == 0);
  CHECK(yaml_error("triple: x86_64-linux-gnu\nprecision: f32\n")
            .find("t.yaml:2:12: precision must be one of fp32, bf16, tf32, fp16, auto") == 0);
  CHECK(yaml_error("cores: 4\n").find("key 'triple' is missing") != std::string::npos);
  CHECK(yaml_error("[1, 2]\n").find("t.yaml:1:1: the target must be a map") == 0);
  CHECK(yaml_error("").find("must be a map") != std::string::npos);
  CHECK(yaml_error("a: [1\nb: }").find("t.yaml:2:") == 0);
}

TEST_CASE("LLVM's features that no kernel uses are left out") {
  Expected<Target> target = parse_target("triple: x86_64-linux-gnu\nfeatures: [aes, sha, avx2]\n",
                                         "t.yaml");
  REQUIRE(bool(target));
  CHECK(std::ranges::count(target->features, "avx2") == 1);
  CHECK(std::ranges::count(target->features, "aes") == 0);
}

TEST_CASE("all mistakes are told at once") {
  const std::string text = yaml_error(
      "triple: x86_64-linux-gnu\ncores: x\nvector_bits: y\nspeed: 3\n");
  CHECK(text.find("2:8") != std::string::npos);
  CHECK(text.find("3:14") != std::string::npos);
  CHECK(text.find("4:1") != std::string::npos);
}

const std::string kDevice =
    "triple: x86_64-linux-gnu\naccuracy: 1e-3\ndevices:\n  - name: gpu\n    driver: opencl\n    "
    "features: [fp64]\n    vector_bits: 256\n"
    "    max_group: 128\n    local_bytes: 16KiB\n    axes: [{name: block.x, level: block, max: "
    "0}]\n    scopes: [{name: local, level: block}]\n"
    "    rates: {flops: 2e12, launch: 5e-6}\n    take_all: true\n";

TEST_CASE("devices are targets of their own beside the processor") {
  Expected<Target> t = parse_target(kDevice, "t.yaml");
  if (!t) FAIL(error_text(t.takeError()));
  REQUIRE(t->devices.size() == 1);
  const Target& device = t->main_device();
  CHECK(device.name == "gpu");
  CHECK(device.driver == "opencl");
  CHECK(device.triple == t->triple);
  CHECK(device.accuracy == 1e-3);
  CHECK(device.has("fp64"));
  CHECK(device.lanes(4) == 8);
  CHECK(device.max_group == 128);
  CHECK(device.local_bytes == 16 << 10);
  CHECK(device.find_axis("block.x") != nullptr);
  CHECK(device.find_scope("local") != nullptr);
  CHECK(device.rates.flops == 2e12);
  CHECK(device.rates.launch == 5e-6);
  CHECK(device.rates.copy_bytes == DeviceRates().copy_bytes);
  CHECK(device.take_all);
  Expected<Target> again = parse_target(print(*t), "printed.yaml");
  if (!again) FAIL(error_text(again.takeError()));
  CHECK(print(*again) == print(*t));
  CHECK(codegen_hash(*again) == codegen_hash(*t));
  Target faster = *t;
  faster.devices[0].rates.flops = 1;
  CHECK(codegen_hash(faster) == codegen_hash(*t));  // rates decide where code runs, not the code
  faster.devices[0].max_group = 64;
  CHECK(codegen_hash(faster) != codegen_hash(*t));
}

TEST_CASE("multiprocessors of a device: some may be said, and they change code") {
  const auto read = [](const std::string& more) {
    Expected<Target> t = parse_target(std::string(kDevice) + more, "t.yaml");
    if (!t) FAIL(error_text(t.takeError()));
    return std::move(*t);
  };
  const Target plain = read(""),
               said = read(
                   "    multiprocessors:\n      count: 20\n      multiply_adds: {f32: 128, f16: "
                   "512}\n      bytes: {memory: 300}\n");
  CHECK(plain.main_device().multiprocessors == Multiprocessors());
  CHECK(print(plain).find("multiprocessors") == std::string::npos);
  const Multiprocessors own = said.main_device().multiprocessors,
                        all = multiprocessors(said.main_device());
  CHECK(own.count == 20);
  CHECK(own.f16 == 512);
  CHECK(own.clock == 0);
  CHECK(all.bf16 == 512);
  CHECK(all.tf32 == 512);
  CHECK(all.memory_rate == 300);
  CHECK(all.l2_rate == 32 * 20);
  CHECK(all.local_bytes == 2 * (16 << 10));
  CHECK(print(said).find("multiply_adds: {f32: 128, f16: 512}") != std::string::npos);
  CHECK(print(read("")) == print(plain));
  Expected<Target> again = parse_target(print(said), "printed.yaml");
  if (!again) FAIL(error_text(again.takeError()));
  CHECK(again->main_device().multiprocessors == own);
  CHECK(codegen_hash(said) != codegen_hash(plain));
}

TEST_CASE("a device has the instructions of its chip and of earlier ones, its own first") {
  const auto device = [](const std::string& feature, const std::string& more) {
    const std::string yaml =
        "triple: x86_64-linux-gnu\ndevices:\n  - name: gpu\n    driver: cuda\n    features: [" +
        feature + "]\n" + more;
    Expected<Target> target = parse_target(yaml, "t.yaml");
    REQUIRE_MESSAGE(bool(target), yaml_error(yaml));
    return target->main_device();
  };
  CHECK(device("sm_75", "").intrinsics.empty());
  const Target later = device("sm_90a", "");
  REQUIRE(later.find_intrinsic("mma.m16n8k16.f16"));
  CHECK(later.find_intrinsic("mma.m16n8k16.f16")->shipped);
  const Target own = device("sm_80",
                            "    intrinsics:\n      - name: cp.async\n        semantics: \"kernel "
                            "@c(x: in f32[1], y: out f32[1]) { for i in 1 { y: y[i] = x[i] } "
                            "}\"\n        emit: async\n");
  CHECK_FALSE(own.find_intrinsic("cp.async")->shipped);
  CHECK(own.intrinsics.size() == device("sm_80", "").intrinsics.size());
}

TEST_CASE("mistakes in devices") {
  const auto in_device = [](const std::string& text) {
    return yaml_error("triple: x86_64-linux-gnu\ndevices:\n  - " + text + "\n");
  };
  CHECK(yaml_error("triple: x86_64-linux-gnu\ndevices: gpu\n")
            .find("t.yaml:2:10: devices must be a list of maps") == 0);
  CHECK(in_device("{name: gpu}").find("a device needs the keys name and driver") !=
        std::string::npos);
  CHECK(in_device("{name: gpu, driver: opencl, colour: red}")
            .find("unknown key 'colour' in a device") != std::string::npos);
  CHECK(in_device("{name: gpu, driver: opencl, rates: {flops: 0}}")
            .find("flops must be a number above 0") != std::string::npos);
  CHECK(in_device("{name: gpu, driver: opencl, multiprocessors: {cores: 3}}")
            .find("unknown key 'cores' in multiprocessors") != std::string::npos);
  CHECK(in_device("{name: gpu, driver: opencl, multiprocessors: {count: 0}}")
            .find("count must be an integer from 1 to") != std::string::npos);
  CHECK(in_device("{name: gpu, driver: opencl, take_all: often}")
            .find("take_all must be true or false") != std::string::npos);
  CHECK(in_device("{name: a, driver: opencl}\n  - {name: a, driver: opencl}")
            .find("a second device 'a'") != std::string::npos);
}

TEST_CASE("hostile files end in an error") {
  CHECK(yaml_error(std::string(100000, '[')) != "");
  CHECK(yaml_error(std::string(60000, '[')) != "");
  CHECK(yaml_error(std::string(60000, '{')) != "");
  CHECK(yaml_error("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ntriple: *c\n") != "");
  CHECK(yaml_error(std::string("triple: \0x", 10)) != "");
}

TEST_CASE("every shipped description is valid and prints to itself") {
  const std::vector<std::string> names = list_targets({kConfigs});
  CHECK(names.front() == "host");
  for (const char* name :
       {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64-generic", "armv7-generic", "cortex-a72"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  for (const std::string& name : names) {
    CAPTURE(name);
    Expected<Target> t = load_target(name, {kConfigs});
    if (!t) FAIL(error_text(t.takeError()));
    CHECK(t->name == name);
    Expected<Target> again = parse_target(print(*t), "printed.yaml");
    if (!again) FAIL(error_text(again.takeError()));
    CHECK((t->isa.empty() ? equal(*t, *again) : print(*t) == print(*again)));
  }
}

TEST_CASE("the levels of x86-64 nest") {
  const auto features = [](const char* name) {
    return llvm::cantFail(load_target(name, {kConfigs})).features;
  };
  const auto v2 = features("x86-64-v2"), v3 = features("x86-64-v3"), v4 = features("x86-64-v4");
  CHECK(std::includes(v3.begin(), v3.end(), v2.begin(), v2.end()));
  CHECK(std::includes(v4.begin(), v4.end(), v3.begin(), v3.end()));
}

TEST_CASE("the host has cores, caches and its baseline") {
  const Target host = host_target();
  CHECK(host.cores >= 1);
  CHECK(host.l1_bytes >= 4 << 10);
  CHECK(host.vector_bits >= 128);
  CHECK(std::is_sorted(host.features.begin(), host.features.end()));
}

TEST_CASE("names, files and neither") {
  const test::TempDir folder;
  test::write_file(folder.path("mine.yaml"), "triple: aarch64-linux-gnu\n");
  Expected<Target> by_path = load_target(folder.path("mine.yaml"), {});
  REQUIRE(by_path);
  CHECK(by_path->name == "mine");
  Expected<Target> missing = load_target("nowhere", {kConfigs});
  REQUIRE_FALSE(missing);
  CHECK(error_text(missing.takeError()).find("'tilewright targets' lists all") !=
        std::string::npos);
  Expected<Target> misspelled = load_target("cortex-a722", {kConfigs});
  REQUIRE_FALSE(misspelled);
  CHECK(error_text(misspelled.takeError()).find("cortex-a72") != std::string::npos);
  Expected<Target> no_file = load_target("./nowhere.yaml", {kConfigs});
  REQUIRE_FALSE(no_file);
  CHECK(error_text(no_file.takeError()).find("cannot open './nowhere.yaml'") == 0);
}

TEST_CASE("a description may list others, each with a program in the library") {
  Expected<Target> fat = load_target("x86-64-fat", {kConfigs});
  REQUIRE(bool(fat));
  CHECK(fat->name == "x86-64-fat");
  CHECK(fat->cpu == "x86-64-v2");
  REQUIRE(fat->wider.size() == 2);
  CHECK(fat->wider[1].name == "x86-64-v4");
  CHECK(fat->wider[1].vector_bits == 512);
  Expected<Target> again = parse_target(print(*fat), "again.yaml");
  REQUIRE(bool(again));
  CHECK(print(*again) == print(*fat));
  const auto refused = [](const std::string& isa) {
    return yaml_error("triple: x86_64-linux-gnu\n" + isa + "\n");
  };
  CHECK(refused("isa: [x86-64-v2]").find("2 to 8 different descriptions") != std::string::npos);
  CHECK(refused("isa: [a, a]").find("2 to 8 different descriptions") != std::string::npos);
  CHECK(refused("isa: [a, b]\ncores: 2").find("isa and the key 'cores'") != std::string::npos);
}

}  // namespace
}  // namespace tw
