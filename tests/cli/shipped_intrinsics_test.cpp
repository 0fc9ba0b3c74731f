// Tensorize uses every instruction that the compiler ships. The scheduled kernel means the same as
// the plain one, its assembly contains the instruction, and the compiled code gives the same
// numbers. AMX is emulated where the machine lacks it. AVX512-FP16, which neither the emulator nor
// qemu has, is checked in the assembly alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "frontend/intrinsic_library.h"
#include "ir/schedule/schedule.h"
#include "tests/cli/kernel_runner.h"

using namespace tw;

namespace {

// The text in assembly of all instructions whose names begin with `name`. The longest match counts.
struct Mnemonic {
  const char *name, *assembly;
};
constexpr Mnemonic kMnemonics[] = {
    {"x86.vpdpbusd", "vpdpbusd"},   {"x86.avxvnni.vpdpbusd", "{vex}\tvpdpbusd"},
    {"x86.vpdpwssd", "vpdpwssd"},   {"x86.avxvnni.vpdpwssd", "{vex}\tvpdpwssd"},
    {"x86.pmaddwd", "pmaddwd"},     {"x86.vdpbf16ps", "vdpbf16ps"},
    {"x86.vfmadd.ph", "vfmadd"},    {"x86.amx.tdpbusd", "tdpbusd"},
    {"x86.amx.tdpbssd", "tdpbssd"}, {"x86.amx.tdpbf16ps", "tdpbf16ps"},
    {"aarch64.smmla", "smmla"},     {"aarch64.ummla", "ummla"},
    {"aarch64.usmmla", "usmmla"},   {"aarch64.sdot", "sdot"},
    {"aarch64.udot", "udot"},       {"aarch64.usdot", "usdot"},
    {"aarch64.bfdot", "bfdot"},     {"aarch64.bfmmla", "bfmmla"},
    {"aarch64.fmlal", "fmlal2"},    {"aarch64.fmlal.low", "fmlal"},
    {"arm.vmlal", "vmlal.s16"},
};

std::string mnemonic_of(const std::string& name) {
  std::string best, found;
  for (const Mnemonic& m : kMnemonics)
    if (name.starts_with(m.name) && best.size() < std::strlen(m.name))
      best = m.name, found = m.assembly;
  return found;
}

// A target with exactly these features and what they imply.
Target target_of(Arch arch, const Intrinsic& intrinsic) {
  std::string list = arch == Arch::x86_64 ? "sse2" : "neon";
  for (const std::string& feature : intrinsic.features) list += ", " + feature;
  Expected<Target> target = parse_target(
      std::string("triple: ") +
          (arch == Arch::arm ? "armv7-linux-gnueabihf"
                             : std::string(arch_name(arch)) + "-linux-gnu") +
          "\nfeatures: [" + list + "]\n",
      "features.yaml");
  REQUIRE_MESSAGE(bool(target), error_text(target.takeError()));
  return *target;
}

constexpr int64_t kRows = 2, kSteps = 3;

// Repeats the instruction for two blocks of sums, each of three steps: for r { for q reduce { ... }
// }.
Kernel repeated(const Intrinsic& intrinsic) {
  Expected<Kernel> kernel = parse_kernel(intrinsic.semantics, intrinsic.name);
  REQUIRE(bool(kernel));
  Kernel out = *kernel;
  out.name = "repeated";
  for (Buffer& buffer : out.buffers) {
    if (buffer.role != BufferRole::output) buffer.shape.insert(buffer.shape.begin(), Expr(kSteps));
    buffer.shape.insert(buffer.shape.begin(), Expr(kRows));
  }
  const auto placed = [&](BufferId id, std::vector<Expr> at) {
    if (out.buffer(id).role != BufferRole::output) at.insert(at.begin(), var("q"));
    at.insert(at.begin(), var("r"));
    return at;
  };
  const auto moved = [&](const Expr& e) {
    const auto* read = as<expr::Load>(e);
    return read ? load(read->buffer, e->type, placed(read->buffer, read->indices)) : Expr();
  };
  const Stmt body = rewrite(out.body, [&](const Stmt& s) -> Stmt {
    if (!is<stmt::Store>(s)) return nullptr;
    stmt::Store store = get<stmt::Store>(s);
    store.indices = placed(store.buffer, store.indices);
    store.value = rewrite(store.value, moved);
    store.init = imm(0, out.buffer(store.buffer).dtype);
    return make_store(std::move(store));
  });
  out.body = make_loop("r", kRows,
                       make_loop("q", kSteps, body, LoopKind::serial, AxisRole::reduce));
  return out;
}

// Fills with small whole numbers, which every type holds exactly, so that sums are exact in any
// order.
void fill(std::vector<std::byte>& bytes, DType t, std::mt19937& random) {
  for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(dtype_bytes(t))) {
    const int value = static_cast<int>(random() % 8) - (is_float(t) || is_signed_int(t) ? 4 : 0);
    if (t == DType::i8 || t == DType::u8) bytes[i] = static_cast<std::byte>(random());
    if (t == DType::i16) {
      const auto word = static_cast<int16_t>(static_cast<int>(random() % 511) - 255);
      std::memcpy(&bytes[i], &word, sizeof word);
    }
    if (t == DType::bf16) {
      const auto real = static_cast<float>(value);
      std::memcpy(&bytes[i], reinterpret_cast<const char*>(&real) + 2, 2);
    }
    if (t == DType::f16) {
      const auto half = static_cast<_Float16>(value);
      std::memcpy(&bytes[i], &half, sizeof half);
    }
  }
}

std::vector<KernelArgument> arguments_of(const Kernel& kernel) {
  std::mt19937 random(7);
  std::vector<KernelArgument> all;
  for (const Buffer& buffer : kernel.buffers) {
    int64_t count = dtype_bytes(buffer.dtype);
    for (const Expr& extent : buffer.shape) count *= *as_const(extent);
    all.emplace_back().bytes.resize(static_cast<size_t>(count));
    if (buffer.role == BufferRole::input) fill(all.back().bytes, buffer.dtype, random);
  }
  return all;
}

// Checks that the tile state is set up once, before all loops, and torn down once, behind them.
void check_around(const std::string& assembly) {
  const size_t setup = assembly.find("ldtilecfg"), teardown = assembly.find("tilerelease");
  REQUIRE(setup != std::string::npos);
  REQUIRE(teardown != std::string::npos);
  CHECK(assembly.find("ldtilecfg", setup + 1) == std::string::npos);
  CHECK(assembly.find("tilerelease", teardown + 1) == std::string::npos);
  CHECK(setup < assembly.find("Loop Header"));
  CHECK(teardown > assembly.rfind("Loop Header"));
}

void check(Arch arch, const Intrinsic& intrinsic) {
  if (!intrinsic.scopes.empty()) return;  // tiles: tests/cli/tile_products_test.cpp
  CAPTURE(intrinsic.name);
  const std::string mnemonic = mnemonic_of(intrinsic.name);
  REQUIRE_MESSAGE(!mnemonic.empty(), "an instruction that this test does not know");
  const Target target = target_of(arch, intrinsic);
  REQUIRE(target.find_intrinsic(intrinsic.name) != nullptr);
  const Kernel plain = repeated(intrinsic);
  REQUIRE(error_text(verify(plain)) == "");
  const std::string first = get<stmt::Loop>(children(children(plain.body)[0])[0]).var;
  Expected<Schedule> schedule = parse_schedule(
      "schedule {\n  decompose_reduction c q\n  tensorize " + first + " " + intrinsic.name +
      " -> block\n}");
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Expected<Kernel> scheduled = apply(plain, *schedule, &target);
  REQUIRE_MESSAGE(bool(scheduled), error_text(scheduled.takeError()));

  std::vector<KernelArgument> expected = arguments_of(plain), interpreted = expected,
                              compiled = expected;
  REQUIRE(error_text(interpret(plain, expected)) == "");
  REQUIRE(error_text(interpret(*scheduled, interpreted)) == "");
  CHECK(interpreted.back().bytes == expected.back().bytes);
  CHECK(std::ranges::any_of(expected.back().bytes, [](std::byte b) { return b != std::byte(0); }));

  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<std::string> assembly = (*backend)->disassemble(*scheduled, "asm");
  REQUIRE_MESSAGE(bool(assembly), error_text(assembly.takeError()));
  CHECK_MESSAGE(assembly->find(mnemonic) != std::string::npos, *assembly);
  if (!intrinsic.setup.empty()) check_around(*assembly);
  if (!test::runs(target)) {
    MESSAGE("in the assembly alone: " << intrinsic.name);
    return;
  }
  test::run_kernel(*scheduled, target, compiled);
  CHECK(compiled.back().bytes == expected.back().bytes);
}

void check_all(Arch arch) {
  for (const LibraryFile& file : intrinsic_files(arch)) {
    Expected<std::vector<Intrinsic>> list = parse_intrinsics(file.text, file.name);
    REQUIRE_MESSAGE(bool(list), error_text(list.takeError()));
    CHECK(!list->empty());
    for (const Intrinsic& intrinsic : *list) check(arch, intrinsic);
  }
}

// Returns the text without this key of one entry, nor the deeper lines below it.
std::string without(const std::string& text, size_t entry, const std::string& key) {
  std::string out;
  std::istringstream lines(text);
  size_t at = 0, indent = 0;
  bool first = false, skipping = false;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" ");
    if (begin != std::string::npos && line.compare(begin, 2, "- ") == 0 && begin == 2)
      first = at++ == entry;
    if (skipping && (begin == std::string::npos || begin > indent)) continue;
    skipping = false;
    const bool dash = first && line.starts_with("  - " + key + ":");
    if (first && (dash || line.starts_with("    " + key + ":"))) {
      skipping = true;
      indent = 4;
      if (dash) {  // the dash stays, and the entry goes on with its next key
        out += "  -\n";
      }
      continue;
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("every shipped instruction of x86-64 by tensorize (FP16: in the assembly where absent)") {
  check_all(Arch::x86_64);
}

TEST_CASE("every shipped instruction of AArch64 by tensorize, under qemu") {
  check_all(Arch::aarch64);
}

TEST_CASE("every shipped instruction of 32-bit ARM by tensorize, under qemu") {
  check_all(Arch::arm);
}

TEST_CASE("an instruction that lacks a field or has a strange one is an error that names it") {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64, Arch::arm})
    for (const LibraryFile& file : intrinsic_files(arch)) {
      Expected<std::vector<Intrinsic>> list = parse_intrinsics(file.text, file.name);
      REQUIRE(bool(list));
      for (size_t entry = 0; entry < list->size(); ++entry)
        for (const std::string key :
             {"name", "features", "rate", "semantics", "emit", "setup", "teardown"}) {
          CAPTURE(entry);
          CAPTURE(key);
          const std::string text = without(file.text, entry, key);
          if (text == file.text) {  // optional keys may be absent
            CHECK((key == "setup" || key == "teardown"));
            continue;
          }
          Expected<std::vector<Intrinsic>> read = parse_intrinsics(text, file.name);
          REQUIRE(!read);
          const std::string problem = error_text(read.takeError());
          CHECK_MESSAGE(problem.find("lacks the key " + key) != std::string::npos, problem);
          CHECK(problem.find(file.name + ":") != std::string::npos);
        }
    }
  Expected<std::vector<Intrinsic>> strange = parse_intrinsics(
      "intrinsics:\n  - {name: a, features: [], rate: 1, semantics: x, emit: b, speed: 3}\n",
      "t.yaml");
  REQUIRE(!strange);
  CHECK(error_text(strange.takeError()).find("t.yaml:2:61: unknown key 'speed'") !=
        std::string::npos);
}
