// A hardware instruction as data: `semantics` says in loop IR what it computes, and `emit` says
// which calls the back end writes for it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

struct Kernel;

// The calls that the back end writes for an instruction, in order. The last call's value is the new
// accumulator, unless the accumulator is passed by address.
//   llvm.x86.avx512.vpdpbusd.512(c, a, b)
//   asm("vpdpbusd $2, $3, $0", "=v,0,v,v", c, b, a)
//   t = llvm.x86.avx2.pmadd.wd(a, b), and then add(c, t)
struct EmitCalls {
  enum class OperandKind : uint8_t { value, address, number, bytes };
  struct Operand {
    OperandKind kind = OperandKind::value;
    std::string name;  // a parameter of the semantics, or the value of an earlier call
    int64_t number = 0;
    std::vector<uint8_t> bytes = {};  // data in memory; its address is passed
  };
  struct Call {
    std::string value;  // name of the result for later calls; empty: unused
    std::string callee;
    std::string assembly, constraints;  // for the callee "asm"; constraints as in LLVM's IR
    std::vector<Operand> operands;
  };
  std::vector<std::string> lines;  // as the description writes them
  std::vector<Call> calls;
  // The number of threads that do the last call together ("over 32"). Each does the other calls for
  // itself. The first dimension of every operand counts the threads.
  int64_t threads = 1;
  Location at;  // place in the description

  bool empty() const { return lines.empty(); }
  std::string text() const;  // the joined lines
  // True: `emit` has one line, and it is this text.
  friend bool operator==(const EmitCalls& emit, std::string_view line) {
    return emit.lines.size() == 1 && emit.lines[0] == line;
  }
};
// Each line is one call. A word alone ("async") is a call without operands.
Expected<EmitCalls> parse_emit(std::vector<std::string> lines, const Location& at = {});

// The order and rounding in which an instruction adds the bf16 products of its innermost reduction
enum class PairRule : uint8_t {
  in_order,      // one after the other; each step is fused and rounds to nearest
  second_first,  // adds the second of two neighbours, then the first; flushes subnormals to zero
  // Adds two neighbours, then that sum to the rest. Each step rounds to odd. Subnormals are zeros.
  to_odd,
};
const char* pair_rule_name(PairRule rule);
std::optional<PairRule> pair_rule_from_name(std::string_view name);

// `semantics` is a kernel that says what the instruction computes. Its only output is the
// accumulator, and its indices say where the operands lie. `scopes` is the memory that each
// parameter must lie in; empty: any.
struct Intrinsic {
  std::string name, semantics;
  EmitCalls emit;
  std::vector<std::string> scopes = {};
  std::vector<std::string> features = {};  // LLVM's names; the instruction needs all of them
  double rate = 1;                         // instructions that start in a cycle
  PairRule pairs = PairRule::in_order;
  EmitCalls setup = {}, teardown = {};        // written around the loops of a kernel that uses it
  bool shipped = false;                       // true: it follows from the target's features
  std::shared_ptr<const Kernel> kernel = {};  // the parsed semantics, or null
};

// Errors: a parameter that no call takes, an operand that is neither a parameter nor an earlier
// value, or a value that nobody uses
Error check_emit(const EmitCalls& emit, const std::vector<std::string>& parameters);

}  // namespace tw
