// A kernel as a list of instructions with jumps, so that a thread of the interpreter can stop
// anywhere and go on later.
#pragma once
#include "ir/kernel/machine.h"
#include "ir/target.h"

namespace tw::interpreter {

enum class Op : uint8_t {
  store,   // slot: of the list of stores
  loop,    // slot = 0 if its extent (expr) is positive, else to target
  next,    // slot + 1, back to target while below the extent
  branch,  // to target if expr is false
  // a thread for each value of slot below expr begins behind it; when all ended, to target
  fork_loop,
  fork_roles,  // a thread begins at each of starts; when all ended, to target
  end,         // of a thread
  signal,      // slot: the queue
  wait,
  barrier,  // slot: of the loop's variable
};

struct Instruction {
  Op op;
  int slot = 0;
  size_t target = 0;
  Code expr{};
  std::vector<Code> indices{};       // signal, wait
  std::vector<size_t> starts{};      // fork_roles
  std::vector<std::string> names{};  // fork_roles: the roles; fork_loop: the variable
  bool flag = false;                 // signal: async; fork_loop: of a bound loop
  int64_t count = 1;                 // signal, wait: tokens
};

struct StoreCode {
  std::string label;
  int buffer = 0;
  std::vector<Code> indices;
  Code value{}, where{}, init{};
  Combiner combiner = Combiner::none;
  bool is_float = false, has_where = false, has_init = false, async = false;
  std::vector<int> reduce_slots{};  // all 0: store init first
  // Of an instruction's block; not in_order: a product and its successor by the innermost reduction
  PairRule pairs = PairRule::in_order;
};

struct Flat {
  std::vector<Instruction> code;  // ends with `end`
  std::vector<StoreCode> stores;
  bool concurrent = false;  // forks or asynchronous copies: accesses must be ordered
};

// Gives every loop variable a slot of the machine. target: whose instructions blocks name, or null.
Flat flatten(const Kernel& kernel, Machine& machine, const Target* target);

}  // namespace tw::interpreter
