// A kernel as a list of instructions with jumps. A thread of the interpreter can then stop anywhere
// and resume later.
#pragma once
#include "ir/kernel/machine.h"
#include "ir/target.h"

namespace tw::interpreter {

enum class Op : uint8_t {
  store,   // slot: index of the store
  loop,    // sets slot to 0 if the extent (expr) is positive, otherwise jumps to target
  next,    // increments slot; jumps back to target while it is below the extent
  branch,  // jumps to target if expr is false
  // Starts a thread behind the instruction for each value of slot below expr. Goes to target when
  // all have ended.
  fork_loop,
  fork_roles,  // starts a thread at each of `starts`; goes to target when all have ended
  end,         // ends the thread
  signal,      // slot: the queue
  wait,
  barrier,  // slot: the variable of the loop
};

struct Instruction {
  Op op;
  int slot = 0;
  size_t target = 0;
  Code expr{};
  std::vector<Code> indices{};       // for signal and wait
  std::vector<size_t> starts{};      // for fork_roles
  std::vector<std::string> names{};  // fork_roles: the roles; fork_loop: the variable
  bool flag = false;                 // signal: async; fork_loop: the loop is bound
  int64_t count = 1;                 // signal, wait: number of tokens
};

struct StoreCode {
  std::string label;
  int buffer = 0;
  std::vector<Code> indices;
  Code value{}, where{}, init{};
  Combiner combiner = Combiner::none;
  bool is_float = false, has_where = false, has_init = false, async = false;
  std::vector<int> reduce_slots{};  // all 0: store init first
  // From the intrinsic of the block around. Other than in_order: the store adds a product and its
  // successor in the innermost reduction together.
  PairRule pairs = PairRule::in_order;
};

struct Flat {
  std::vector<Instruction> code;  // ends with `end`
  std::vector<StoreCode> stores;
  bool concurrent = false;  // has forks or asynchronous copies, so accesses must be ordered
};

// Gives every loop variable a slot of the machine. `target` has the instructions that blocks name;
// it may be null.
Flat flatten(const Kernel& kernel, Machine& machine, const Target* target);

}  // namespace tw::interpreter
