// The description of a chip: run-time data from YAML. Passes and lowering read numbers from here,
// never from the host they run on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core_rates.h"
#include "ir/intrinsic.h"
#include "ir/multiprocessors.h"

namespace tw {

enum class Arch : uint8_t { x86_64, aarch64, arm, riscv64 };
const char* arch_name(Arch a);  // "x86_64", … as in LLVM triples

// nullopt: no code generator exists for the triple
std::optional<Arch> arch_from_triple(std::string_view triple);

// An axis that loops of a device can be bound to, such as "block.x". The level, "block" or
// "thread", says who shares memory there. A loop has at most `max` iterations; 0: any number.
struct DeviceAxis {
  std::string name, level;
  int64_t max = 0;
};
// A memory near the threads of a device. Each iteration of the level's axes has its own. bytes 0:
// not stated.
struct MemoryScope {
  std::string name, level;
  int64_t bytes = 0;
};

// Speed of a device, for the choice of where kernels run
struct DeviceRates {
  double flops = 1e11, bytes = 2e10;  // both a second
  double copy_bytes = 5e9;            // bytes a second, to and from the host's memory
  double launch = 1e-5, copy = 2e-5;  // fixed seconds of each launch and copy
};

// The float type that products multiply in and weights are kept in. automatic: the type that gains
// on the target.
enum class Precision : uint8_t { fp32, bf16, tf32, fp16, automatic };
const char* precision_name(Precision precision);  // "fp32", ..., "auto"
std::optional<Precision> precision_from_name(std::string_view name);
std::string precision_names();

struct Target {
  std::string name;                   // the description's, for people; not part of the identity
  std::string triple;                 // "x86_64-linux-gnu"
  std::string cpu;                    // LLVM's name, "znver4", "generic"
  std::vector<std::string> features;  // LLVM's names without '+', sorted; the code may use them
  int cores = 1;                      // physical
  int64_t l1_bytes = 32 << 10;        // first-level data cache of a core
  int64_t l2_bytes = 256 << 10;  // second-level cache of a core; a device: of all multiprocessors
  int64_t l3_bytes = 0;          // shared cache; 0: none
  int vector_bits = 128;         // widest vectors that are profitable
  int vector_registers = 16;
  bool fast_math = false;  // true: NaN and infinity need not be kept
  double accuracy = 1e-4;  // error budget, relative to an output's range
  Precision precision = Precision::fp32;
  // True: a compile asks predictors for the schedules that no lock or log provides.
  bool predicted_schedules = false;
  CoreRates core;                     // as described; read by core_rates(target)
  std::vector<DeviceAxis> axes;       // axes of a device; empty: a CPU
  std::vector<MemoryScope> scopes;    // memories beyond global, stack and register
  std::vector<Intrinsic> intrinsics;  // the description's own, then those the features bring
  // Names of instructions that the features would bring but the code must not use
  std::vector<std::string> without_intrinsics;
  // For a library with code for several processors: names of their descriptions, the most general
  // first. This target equals the first one except for its name; `wider` has the others.
  std::vector<std::string> isa;
  std::vector<Target> wider;
  // Devices beside the processor, the preferred one first. They have no devices of their own.
  std::vector<Target> devices;
  // The members below are for devices only. `driver` is how the runtime reaches the device, and
  // chooses the back end.
  std::string driver;
  DeviceRates rates;
  int64_t max_group = 256;          // most threads in one iteration of the block axes
  int64_t local_bytes = 0;          // memory that these threads can share
  Multiprocessors multiprocessors;  // as described; read by multiprocessors(target)
  // True: the device runs every kernel it can. False: it runs those estimated to be faster there.
  bool take_all = false;
  int virtual_threads = 1;  // default where the schedule hides latency with them
  std::string address;      // default place where the driver finds it: "iss:"
  // Numbers that the driver knows, by name
  std::vector<std::pair<std::string, int64_t>> parameters;

  Arch arch() const;  // the triple must name one; the reader of descriptions checks it
  bool has(const std::string& feature) const;
  // These return null where there is none of that name.
  const DeviceAxis* find_axis(std::string_view axis) const;
  const MemoryScope* find_scope(std::string_view scope) const;
  const Intrinsic* find_intrinsic(std::string_view intrinsic) const;
  std::optional<int64_t> parameter(std::string_view parameter) const;
  // The target whose shapes guide passes and layouts
  const Target& main_device() const { return devices.empty() ? *this : devices.front(); }
  int lanes(int element_bytes) const { return vector_bits / 8 / element_bytes; }
};

std::string print(const Target& target);  // canonical YAML; parses back to the same Target
// Hashes the facts that change a kernel's code: not the name, cores, accuracy or precision.
std::string codegen_hash(const Target& target);
// The instruction set that every chip of the architecture has, for packing at compile time and for
// query and CPU check
Target baseline_target(Arch arch);

}  // namespace tw
