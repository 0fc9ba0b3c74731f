// Maps arguments to memories, then runs the threads.
#include "ir/kernel/interpreter.h"

#include <algorithm>

#include "ir/kernel/threads.h"
#include "ir/simplify.h"

namespace tw {
namespace {

using namespace interpreter;

constexpr int64_t kMaxElements = int64_t{1} << 32;  // limit for one buffer

class Runner {
 public:
  Runner(const Kernel& kernel, const Target* target) : kernel_(kernel), target_(target) {}

  Error run(std::span<KernelArgument> arguments, const std::map<std::string, int64_t>& symbols) {
    TW_TRY(verify(kernel_));
    for (const std::string& name : kernel_.symbols) {
      auto value = symbols.find(name);
      if (value == symbols.end() || value->second < least_of(name))
        return make_error(DiagCode::invalid_argument,
                          "kernel @{0}: symbol '{1}' needs a value of at least {2}", kernel_.name,
                          name, least_of(name));
      machine_.slots[static_cast<size_t>(machine_.add_slot(name))] = value->second;
    }
    TW_TRY(make_memories(arguments));
    const Flat flat = flatten(kernel_, machine_, target_);
    if (flat.concurrent)
      for (Memory& m : machine_.memories)
        if (!m.written.empty()) m.races = std::make_unique<Races>(m.written.size());
    Threads threads(kernel_, machine_, flat);
    threads.run();
    if (machine_.problem.empty()) return Error::success();
    std::string stage = threads.stage().empty() ? "" : "stage '" + threads.stage() + "': ";
    return make_error(DiagCode::mismatch, "kernel @{0}: {1}{2}", kernel_.name, stage,
                      machine_.problem);
  }

 private:
  Error make_memories(std::span<KernelArgument> arguments) {
    size_t next = 0;
    for (const Buffer& b : kernel_.buffers) {
      Memory m;
      m.name = b.name;
      m.dtype = b.dtype;
      machine_.instances.push_back(static_cast<int>(machine_.memories.size()));
      int64_t count = 1;
      for (const Expr& extent : b.shape) {
        m.shape.push_back(machine_.eval_int(machine_.compile(extent)));
        if (m.shape.back() < 0 || (m.shape.back() > 0 && count > kMaxElements / m.shape.back()))
          return make_error(DiagCode::limit,
                            "kernel @{0}: buffer '{1}' is too large or of a negative size",
                            kernel_.name, b.name);
        count *= m.shape.back();
      }
      size_t bytes = static_cast<size_t>(count * dtype_bytes(b.dtype));
      if (b.role == BufferRole::temp) {
        m.own.resize(bytes);
      } else {
        TW_ASSIGN(KernelArgument * argument, argument_of(b, next++, arguments));
        if (!argument || argument->bytes.size() != bytes)
          return make_error(DiagCode::invalid_argument,
                            "kernel @{0}: argument '{1}' needs {2} bytes, not {3}", kernel_.name,
                            b.name, bytes,
                            argument ? std::to_string(argument->bytes.size()) : "none");
        m.data = argument->bytes.data();
      }
      if (b.role == BufferRole::temp || b.role == BufferRole::output)
        m.written.assign(static_cast<size_t>(count), 0);
      machine_.memories.push_back(std::move(m));
    }
    for (Memory& m : machine_.memories)
      if (!m.data) m.data = m.own.data();
    for (size_t i = 0; i < kernel_.buffers.size(); ++i)
      for (const std::string& input : kernel_.buffers[i].in_place)
        machine_.memories[static_cast<size_t>(kernel_.find_buffer(input)->index)].takers.push_back(
            static_cast<int>(i));
    if (next == arguments.size()) return Error::success();
    return make_error(DiagCode::invalid_argument, "kernel @{0} takes {1} arguments, not {2}",
                      kernel_.name, next, arguments.size());
  }

  // The argument whose bytes hold the parameter; null: it is missing.
  Expected<KernelArgument*> argument_of(const Buffer& parameter, size_t index,
                                        std::span<KernelArgument> arguments) const {
    if (index >= arguments.size()) return nullptr;
    const std::optional<size_t> place = arguments[index].place;
    if (!place) return &arguments[index];
    if (*place >= arguments.size() ||
        std::ranges::find(parameter.in_place, kernel_.buffers[*place].name) ==
            parameter.in_place.end())
      return make_error(DiagCode::invalid_argument,
                        "kernel @{0}: '{1}' may not be made in place of argument {2}", kernel_.name,
                        parameter.name, *place);
    return &arguments[*place];
  }

  const Kernel& kernel_;
  const Target* target_;
  Machine machine_;
};

}  // namespace

Error interpret(const Kernel& kernel, std::span<KernelArgument> arguments,
                const std::map<std::string, int64_t>& symbols, const Target* target) {
  return Runner(kernel, target).run(arguments, symbols);
}

}  // namespace tw
