#include "passes/in_place.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/kernel/in_place.h"

namespace tw {
namespace {

class Joiner {
 public:
  Joiner(Program& program, std::vector<Lifetime>& lifetimes) : program_(program), lifetimes_(lifetimes), home_(lifetimes.size()) {
    std::iota(home_.begin(), home_.end(), size_t{0});
  }

  void run() {
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      KernelCall& call = program_.calls[c];
      for (Operand& operand : call.arguments)   // joined before
        if (operand.place == Place::arena) operand.index = static_cast<int>(home_[static_cast<size_t>(operand.index)]);
      for (size_t out = 0; out < call.arguments.size(); ++out) join(static_cast<int>(c), call, out);
    }
  }

 private:
  Lifetime& lifetime(const Operand& operand) { return lifetimes_[static_cast<size_t>(operand.index)]; }

  void join(int number, KernelCall& call, size_t out) {
    Operand& made = call.arguments[out];
    Kernel& kernel = program_.kernels[static_cast<size_t>(call.kernel)];
    if (kernel.buffers[out].role != BufferRole::output || made.place != Place::arena || lifetime(made).first != number) return;
    const Operand* best = nullptr;   // the one made last: it is the likeliest to be in the cache
    for (size_t in = 0; in < call.arguments.size(); ++in) {
      const Operand& read = call.arguments[in];
      const bool fits = read.place == Place::arena && lifetime(read).first < number && lifetime(read).last == number && same(read.offset, made.offset) &&
                        same(lifetime(read).bytes, lifetime(made).bytes) && alone(call, in) && alone(call, out) && allowed(call.kernel, out, in);
      if (fits && (!best || lifetime(*best).first < lifetime(read).first)) best = &read;
    }
    if (!best) return;
    const std::string& input = kernel.buffers[static_cast<size_t>(best - call.arguments.data())].name;
    std::vector<std::string>& declared = kernel.buffers[out].in_place;
    if (std::ranges::find(declared, input) == declared.end()) declared.push_back(input);
    lifetime(*best).last = lifetime(made).last;
    lifetime(made).bytes = Expr(0);
    home_[static_cast<size_t>(made.index)] = static_cast<size_t>(best->index);
    made.index = best->index;
  }

  static bool same(const Expr& a, const Expr& b) { return is_const(simplify(a - b), 0); }

  static bool alone(const KernelCall& call, size_t argument) {
    const Operand& one = call.arguments[argument];
    return std::ranges::count_if(call.arguments, [&](const Operand& o) { return o.place == Place::arena && o.index == one.index; }) == 1;
  }

  bool allowed(int kernel, size_t out, size_t in) {
    const auto [known, fresh] = allowed_.emplace(std::tuple(kernel, out, in), false);
    if (fresh) known->second = may_be_in_place(program_.kernels[static_cast<size_t>(kernel)], BufferId{static_cast<int32_t>(out)}, BufferId{static_cast<int32_t>(in)});
    return known->second;
  }

  Program& program_;
  std::vector<Lifetime>& lifetimes_;
  std::vector<size_t> home_;        // by lifetime: the one that it lies in
  std::map<std::tuple<int, size_t, size_t>, bool> allowed_;   // by kernel, output and input
};

}  // namespace

void join_in_place(Program& program, std::vector<Lifetime>& lifetimes) { Joiner(program, lifetimes).run(); }

}  // namespace tw
