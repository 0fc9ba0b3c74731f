// Emits values of expressions at the present point of a function.
#pragma once
#include <unordered_map>

#include "backends/llvm/emission.h"

namespace tw::codegen {

class MemoryEmitter;

class ExpressionEmitter : private EmissionPart {
 public:
  ExpressionEmitter(Emission& emission, MemoryEmitter& memory)
      : EmissionPart(emission), memory_(memory) {}

  Value* emit(const Expr& e);

  // Values are emitted once until they are forgotten. Values of one iteration of an expanded loop
  // are wrong for the next.
  void forget() { known_.clear(); }
  void begin_statement() {
    known_.clear();
    known_.emplace_back();
  }
  // `fn` runs under a condition; values that it emits are forgotten afterwards.
  template <class Fn>
  auto in_scope(const Fn& fn) {
    known_.emplace_back();
    struct End {
      ExpressionEmitter& self;
      ~End() { self.known_.pop_back(); }
    } end{*this};
    return fn();
  }

 private:
  Value* emit_node(const Expr& e);
  Value* emit_binary(const expr::Binary& binary);
  Value* emit_select(const expr::Select& select);
  Value* lane_comparison(const expr::Binary& comparison);
  Value* square_root(Value* a);
  Value* index_division(const expr::Binary& division);
  bool needs_guard(const Expr& e) const;

  MemoryEmitter& memory_;
  // A known value. The expression must stay alive, as its address is the key.
  struct Known {
    Expr expr;
    Value* value;
  };
  // Values of this statement, by scope
  std::vector<std::unordered_map<const ExprNode*, Known>> known_;
};

}  // namespace tw::codegen
