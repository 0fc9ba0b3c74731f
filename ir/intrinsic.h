// A hardware instruction as data.
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

// How the back end writes an instruction: calls, one after the other. The last one's value is the
// new accumulator, unless the accumulator is passed by address.
//   llvm.x86.avx512.vpdpbusd.512(c, a, b)
//   asm("vpdpbusd $2, $3, $0", "=v,0,v,v", c, b, a)
//   t = llvm.x86.avx2.pmadd.wd(a, b), and then add(c, t)
struct EmitCalls {
  enum class OperandKind : uint8_t { value, address, number, bytes };
  struct Operand {
    OperandKind kind = OperandKind::value;
    std::string name;  // of a parameter of the semantics, or of an earlier call's value
    int64_t number = 0;
    std::vector<uint8_t> bytes = {};  // data in memory, whose address is passed
  };
  struct Call {
    std::string value;  // what later calls name its result; empty: they do not
    std::string callee;
    std::string assembly, constraints;  // of the callee "asm"; constraints as in LLVM's IR
    std::vector<Operand> operands;
  };
  std::vector<std::string> lines;  // as they are written
  std::vector<Call> calls;
  // That do the last call together ("over 32"), each the others for itself: the first dimension of
  // every operand counts them
  int64_t threads = 1;
  Location at;  // in the description

  bool empty() const { return lines.empty(); }
  std::string text() const;  // the lines in one
  // One line, which is this text
  friend bool operator==(const EmitCalls& emit, std::string_view line) {
    return emit.lines.size() == 1 && emit.lines[0] == line;
  }
};
// A line a call. A word alone ("async") is a call without operands.
Expected<EmitCalls> parse_emit(std::vector<std::string> lines, const Location& at = {});

// How an instruction adds the products of bf16 that its innermost reduction makes.
enum class PairRule : uint8_t {
  in_order,      // one after the other, each fused and rounded to nearest
  second_first,  // of two neighbours the second, then the first; subnormals are zeros
  // Two neighbours' sum, then all: each rounded to odd; subnormals are zeros
  to_odd,
};
const char* pair_rule_name(PairRule rule);  // as descriptions have it
std::optional<PairRule> pair_rule_from_name(std::string_view name);

// A kernel says what it computes (`semantics`), whose only output is the accumulator; where its
// operands lie is what their indices say. scopes: the memory that each parameter must lie in;
// empty: any.
struct Intrinsic {
  std::string name, semantics;
  EmitCalls emit;
  std::vector<std::string> scopes = {};
  std::vector<std::string> features = {};  // LLVM's names, all of which it needs
  double rate = 1;                         // how many start in a cycle
  PairRule pairs = PairRule::in_order;
  EmitCalls setup = {}, teardown = {};        // around the loops of a kernel that uses it
  bool shipped = false;                       // it follows from the target's features
  std::shared_ptr<const Kernel> kernel = {};  // the semantics, where somebody has parsed them
};

// What cannot be: a parameter that no call takes, an operand that is neither a parameter nor an
// earlier value, a value that nobody uses.
Error check_emit(const EmitCalls& emit, const std::vector<std::string>& parameters);

}  // namespace tw
