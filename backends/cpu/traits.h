// What code generation must know of a CPU: one file an architecture decides, from the Target's
// features only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// How bytes are looked up in registers: tables of 16 entries in 128 or 256 bits, of 128 entries in
// 512 bits, of 64 entries in 128 bits.
enum class TableLookup : uint8_t { none, pshufb_128, pshufb_256, vpermi2b, tbl4 };

struct CpuTraits {
  // Function attribute target-cpu: the baseline, so that only checked extensions are used
  std::string cpu;
  // tune-cpu: scheduling model; empty where the architecture has no such attribute
  std::string tune_cpu;
  std::string features;  // target-features: "+avx2,+fma"
  // Extensions beyond the baseline that the code may use: the artifact asks the processor for them
  std::vector<std::string> checked;
  // Those and the baseline's
  std::vector<std::string> usable;
  bool fma = false;      // fused multiply-add of f32 and f64 is an instruction
  bool half = false;     // so is f16 <-> f32 conversion
  bool nearest = false;  // and f32 to the nearest i32, which takes no rounding before
  // LLVM makes fixed-point conversions of conversions beside products by powers of two, and where
  // another instruction has their number of bits as a constant, it takes a register for it.
  bool wrong_fixed_point = false;
  // LLVM joins conversions of vectors from f16 to f32 and on to f64, and has no code for that.
  bool no_half_to_double = false;
  // The widest floats of which floor, ceil, trunc and round-to-even are instructions; 0: none
  int rounding_bits = 0;
  // The widest floats of which an instruction gives the larger one, or a NaN of either; 0: none
  int maximum_bits = 0;
  bool scalar_maximum = false;      // LLVM's maximum of scalars takes few instructions
  bool nan_by_mask = false;         // all ones under a mask are cheaper than a float under it
  bool saturates = false;           // vectors of floats become integers as values.h's truncate says
  bool flushes_subnormals = false;  // in vectors of f32
  int vector_bits = 128;
  TableLookup table_lookup = TableLookup::none;
};

// An extension counts as present when the Target lists it or its cpu implies it, and the runtime
// can check it. Error: an unknown triple, cpu or feature.
Expected<CpuTraits> cpu_traits(const Target& target);
// The architecture's guaranteed instruction set, for this triple.
Expected<CpuTraits> baseline_traits(const Target& target);

// Answers for the features of one cpu and its list.
class FeatureSet {
 public:
  virtual ~FeatureSet() = default;
  virtual bool has(const std::string& feature) const = 0;
};
void fill_x86(CpuTraits& traits, const FeatureSet& features);
void fill_aarch64(CpuTraits& traits, const FeatureSet& features);
void fill_arm(CpuTraits& traits, const FeatureSet& features);
void fill_riscv(CpuTraits& traits, const FeatureSet& features);

}  // namespace tw
