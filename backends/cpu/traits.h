// The facts about a CPU that code generation needs. A file for each architecture derives them from
// the Target's features only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/target.h"
#include "support/diag.h"

namespace tw {

// The way to look up bytes in registers: tables of 16 entries in 128 or 256 bits, of 128 entries in
// 512 bits, or of 64 entries in 128 bits.
enum class TableLookup : uint8_t { none, pshufb_128, pshufb_256, vpermi2b, tbl4 };

struct CpuTraits {
  // LLVM's target-cpu: the baseline, so that code uses only checked extensions
  std::string cpu;
  // LLVM's tune-cpu, the scheduling model; empty where the architecture has no such attribute
  std::string tune_cpu;
  std::string features;  // LLVM's target-features: "+avx2,+fma"
  // Extensions beyond the baseline that the code may use; the artifact asks the processor for them
  std::vector<std::string> checked;
  // Checked extensions and those of the baseline
  std::vector<std::string> usable;
  bool fma = false;      // fused multiply-add of f32 and f64 is an instruction
  bool half = false;     // conversion between f16 and f32 is an instruction
  bool nearest = false;  // conversion of f32 to the nearest i32 is one, without rounding before
  // LLVM turns conversions beside products by powers of two into fixed-point conversions. Where
  // another instruction has their number of bits as a constant, LLVM wrongly uses a register for
  // it.
  bool wrong_fixed_point = false;
  // LLVM joins conversions of vectors from f16 to f32 to f64, and has no code for the result.
  bool no_half_to_double = false;
  // Bits of the widest floats with instructions for floor, ceil, trunc and round-to-even; 0: none
  int rounding_bits = 0;
  // Bits of the widest floats with an instruction for the larger one, or a NaN of either; 0: none
  int maximum_bits = 0;
  bool scalar_maximum = false;  // LLVM's maximum of scalars takes few instructions
  bool nan_by_mask = false;     // all ones under a mask are cheaper than a float under it
  bool saturates = false;  // vector conversion from float to integer works as values.h's truncate
  bool flushes_subnormals = false;  // vectors of f32 treat subnormals as 0
  int vector_bits = 128;
  TableLookup table_lookup = TableLookup::none;
};

// An extension counts as present when the Target lists it or its cpu implies it, and the runtime
// can check it. Error: an unknown triple, cpu or feature.
Expected<CpuTraits> cpu_traits(const Target& target);
// The traits of the instruction set that the architecture guarantees, for this triple
Expected<CpuTraits> baseline_traits(const Target& target);

// The features of one cpu and of a list
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
