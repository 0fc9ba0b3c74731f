// What a chip is: run-time data from YAML. Passes and lowering read numbers from here, never the
// host they run on.
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

// nullopt: not one that code can be generated for
std::optional<Arch> arch_from_triple(std::string_view triple);

// What loops can be bound to and what is near the threads there. A level is a word that says what
// shares what: "block", "thread". "block.x", of at most `max` iterations; 0: any number
struct DeviceAxis {
  std::string name, level;
  int64_t max = 0;
};
// Each iteration of the axes of that level has its own; bytes 0: not said
struct MemoryScope {
  std::string name, level;
  int64_t bytes = 0;
};

// What a device reaches, for the choice of where kernels run.
struct DeviceRates {
  double flops = 1e11, bytes = 2e10;  // a second
  double copy_bytes = 5e9;            // a second, to and from the host's memory
  double launch = 1e-5, copy = 2e-5;  // seconds that each costs besides
};

// In which floats products multiply and weights are kept; automatic: what the target gains by.
enum class Precision : uint8_t { fp32, bf16, tf32, fp16, automatic };
const char* precision_name(Precision precision);  // "fp32", ..., "auto"
std::optional<Precision> precision_from_name(std::string_view name);
std::string precision_names();  // of all, for help texts and errors

struct Target {
  std::string name;                   // of the description, for people; not part of the identity
  std::string triple;                 // "x86_64-linux-gnu"
  std::string cpu;                    // LLVM's name, "znver4", "generic"
  std::vector<std::string> features;  // LLVM's names without '+', sorted: what the code may use
  int cores = 1;                      // physical
  int64_t l1_bytes = 32 << 10;        // data cache of a core
  int64_t l2_bytes = 256 << 10;       // of a core
  int64_t l3_bytes = 0;               // shared; 0: none
  int vector_bits = 128;              // widest vectors that pay
  int vector_registers = 16;
  bool fast_math = false;  // NaN and infinity need not be kept
  double accuracy = 1e-4;  // error budget, relative to an output's range
  Precision precision = Precision::fp32;
  // A compile asks predictors for schedules, where nothing else says one
  bool predicted_schedules = false;
  CoreRates core;                     // of a processor, as described; read by core_rates(target)
  std::vector<DeviceAxis> axes;       // none on a CPU
  std::vector<MemoryScope> scopes;    // beyond global, stack and register
  std::vector<Intrinsic> intrinsics;  // the description's own, then those of the features
  // Names of instructions that the features would give
  std::vector<std::string> without_intrinsics;
  // A library with code for several processors: the descriptions' names, the most general first.
  // This target is that one, but for its name; `wider` are the others
  std::vector<std::string> isa;
  std::vector<Target> wider;
  // Beside the processor, the preferred first; these have no devices of their own
  std::vector<Target> devices;
  // Of a device only:
  // What the runtime reaches it through, and who writes code for it
  std::string driver;
  DeviceRates rates;
  int64_t max_group = 256;          // threads below one iteration of the block axes
  int64_t local_bytes = 0;          // that they can share
  Multiprocessors multiprocessors;  // as described; read by multiprocessors(target)
  // Runs whatever it can; else what it is estimated to be faster at
  bool take_all = false;
  int virtual_threads = 1;  // by default, where the schedule hides latency with them
  std::string address;      // where the driver finds it, unless it is told: "iss:"
  std::vector<std::pair<std::string, int64_t>> parameters;  // the driver's numbers, by name

  Arch arch() const;  // the triple must name one (checked when a description is read)
  bool has(const std::string& feature) const;
  // null: there is none of that name
  const DeviceAxis* find_axis(std::string_view axis) const;
  const MemoryScope* find_scope(std::string_view scope) const;
  const Intrinsic* find_intrinsic(std::string_view intrinsic) const;
  std::optional<int64_t> parameter(std::string_view parameter) const;
  // Whose shapes passes and layouts go by
  const Target& main_device() const { return devices.empty() ? *this : devices.front(); }
  int lanes(int element_bytes) const { return vector_bits / 8 / element_bytes; }
};

std::string print(const Target& target);  // canonical YAML: parses back to the same Target
// Of what changes generated code of a kernel: not the name, cores, accuracy or precision
std::string codegen_hash(const Target& target);
// The triple's guaranteed instruction set: compile-time packing, query and CPU check
Target baseline_target(Arch arch);

}  // namespace tw
