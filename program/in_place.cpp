#include "program/in_place.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/kernel/in_place.h"

namespace tw {
namespace {

class Joiner {
 public:
  Joiner(Program& program, std::vector<Kernel>& kernels, std::vector<Lifetime>& lifetimes)
      : program_(program), kernels_(kernels), lifetimes_(lifetimes), home_(lifetimes.size()) {
    std::iota(home_.begin(), home_.end(), size_t{0});
  }

  void run() {
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      KernelCall& call = program_.calls[c];
      for (Operand& operand : call.arguments)  // lifetimes that earlier calls joined
        if (operand.place == Place::arena)
          operand.index = static_cast<int>(home_[static_cast<size_t>(operand.index)]);
      // Transfers go between memories, and the proof does not know a device's threads.
      if (call.device != 0 || call.is_transfer()) continue;
      if (call.function) {
        join_extern(static_cast<int>(c), call);
        continue;
      }
      for (size_t out = 0; out < call.arguments.size(); ++out) join(static_cast<int>(c), call, out);
    }
    for (SizeStep& step : program_.steps) {
      if ((step.kind != SizeStep::Kind::read && step.kind != SizeStep::Kind::within) ||
          step.at.place != Place::arena)
        continue;
      for (size_t home = home_[static_cast<size_t>(step.at.index)];
           home != static_cast<size_t>(step.at.index); home = home_[home])
        step.at.index = static_cast<int>(home);
    }
  }

 private:
  Lifetime& lifetime(const Operand& operand) {
    return lifetimes_[static_cast<size_t>(operand.index)];
  }

  void join(int number, KernelCall& call, size_t out) {
    Operand& made = call.arguments[out];
    Kernel& kernel = kernels_[static_cast<size_t>(call.kernel)];
    if (kernel.buffers[out].role != BufferRole::output || made.place != Place::arena ||
        lifetime(made).first != number)
      return;
    const Operand* best = nullptr;
    for (const BufferId id : inputs_of(call.kernel, out)) {
      const Operand& read = call.arguments[static_cast<size_t>(id.index)];
      if (!fits(number, call, read, made)) continue;
      best = &read;
      break;
    }
    if (!best) return;
    const std::string& input =
        kernel.buffers[static_cast<size_t>(best - call.arguments.data())].name;
    std::vector<std::string>& declared = kernel.buffers[out].in_place;
    if (std::ranges::find(declared, input) == declared.end()) declared.push_back(input);
    move_into(*best, made);
  }

  // A function of the runtime says itself which input it may overwrite.
  void join_extern(int number, KernelCall& call) {
    const int input = call.function->in_place;
    const int read = input < 0 ? -1 : call.function->inputs[static_cast<size_t>(input)].argument;
    if (read < 0) return;
    Operand& made = call.arguments[static_cast<size_t>(call.function->outputs[0].argument)];
    const Operand& from = call.arguments[static_cast<size_t>(read)];
    if (made.place == Place::arena && lifetime(made).first == number &&
        fits(number, call, from, made))
      move_into(from, made);
  }

  // The input dies in this call, and the output has the same size and offset.
  bool fits(int number, const KernelCall& call, const Operand& read, const Operand& made) {
    return read.place == Place::arena && lifetime(read).first < number &&
           lifetime(read).last == number && same(read.offset, made.offset) &&
           same(lifetime(read).bytes, lifetime(made).bytes) && alone(call, read) &&
           alone(call, made);
  }

  void move_into(const Operand& home, Operand& made) {
    lifetime(home).last = lifetime(made).last;
    lifetime(made).bytes = Expr(0);
    home_[static_cast<size_t>(made.index)] = static_cast<size_t>(home.index);
    made.index = home.index;
  }

  static bool same(const Expr& a, const Expr& b) { return is_const(simplify(a - b), 0); }

  static bool alone(const KernelCall& call, const Operand& argument) {
    return std::ranges::count_if(call.arguments, [&](const Operand& o) {
             return o.place == Place::arena && o.index == argument.index;
           }) == 1;
  }

  const std::vector<BufferId>& inputs_of(int kernel, size_t out) {
    const auto [known, fresh] = inputs_.try_emplace({kernel, out});
    if (fresh)
      known->second = in_place_inputs(kernels_[static_cast<size_t>(kernel)],
                                      BufferId{static_cast<int32_t>(out)});
    return known->second;
  }

  Program& program_;
  std::vector<Kernel>& kernels_;
  std::vector<Lifetime>& lifetimes_;
  std::vector<size_t> home_;  // by lifetime: the lifetime in whose memory it lies
  std::map<std::pair<int, size_t>, std::vector<BufferId>> inputs_;  // by kernel and output
};

}  // namespace

void join_in_place(Program& program, std::vector<Kernel>& kernels,
                   std::vector<Lifetime>& lifetimes) {
  Joiner(program, kernels, lifetimes).run();
}

}  // namespace tw
