#include "program/fast_paths.h"

#include <algorithm>

#include "program/share_weights.h"

namespace tw {
namespace {

Error check(const Program& program, const std::map<std::string, int64_t>& sizes) {
  for (const auto& [symbol, size] : sizes) {
    if (!std::ranges::count(program.symbols, symbol)) {
      Diag diag{DiagCode::invalid_argument,
                llvm::formatv("--specialize: the model has no free dimension '{0}'", symbol).str(),
                {},
                {}};
      for (const std::string& name : program.symbols)
        diag.notes.push_back("there is " + interface_name(name));
      return make_error(std::move(diag));
    }
    const SymbolLimits range = limits_of(program.limits, symbol);
    if (size < range.least || size > range.most)
      return make_error(DiagCode::invalid_argument,
                        "--specialize {0}={1}: the dimension is {2} to {3}", interface_name(symbol),
                        size, range.least, range.most);
  }
  const char* reason = !program.data_symbols.empty() || program.growable_buffers > 0
                           ? "sizes made from data"
                       : !program.regions.empty() ? "an If or Loop that is decided while running"
                       : !program.devices.empty() ? "a device beside the processor"
                                                  : nullptr;
  return reason ? make_error(DiagCode::unsupported, "--specialize: not for models with {0}", reason)
                : Error::success();
}

std::vector<int> add_kernels(Program& program, const Program& special) {
  std::map<std::string, int> known;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    known.emplace(kernel_hash(program.kernels[k]), static_cast<int>(k));
  std::vector<int> numbers;
  for (size_t k = 0; k < special.kernels.size(); ++k) {
    const auto [at, fresh] = known.emplace(kernel_hash(special.kernels[k]),
                                           static_cast<int>(program.kernels.size()));
    numbers.push_back(at->second);
    if (!fresh) continue;
    program.kernels.push_back(special.kernels[k]);
    program.work.push_back(special.work[k]);
  }
  return numbers;
}

}  // namespace

Expected<std::vector<int>> add_fast_path(Program& program, Program special,
                                         const std::map<std::string, int64_t>& sizes) {
  TW_TRY(check(program, sizes));
  TW_TRY(check(special, {}));
  TW_CHECK(program.inputs.size() == special.inputs.size() &&
               program.outputs.size() == special.outputs.size(),
           "a fast path of another model");
  std::vector<int> numbers = add_kernels(program, special);
  share_weights(program, special);
  FastPath path{sizes, program.calls.size(), 0};
  for (KernelCall& call : special.calls) {
    if (!call.function) call.kernel = numbers[static_cast<size_t>(call.kernel)];
    program.calls.push_back(std::move(call));
  }
  path.end = program.calls.size();
  for (SizeStep step : special.steps) {
    step.before += path.begin;
    program.steps.push_back(std::move(step));
  }
  Expr fits;
  for (const auto& [symbol, size] : sizes) fits = logical_and(fits, eq(var(symbol), size));
  program.arena_bytes = select(fits, special.arena_bytes, program.arena_bytes);
  if (program.max_arena_bytes.defined())
    program.max_arena_bytes = simplify(
        max(program.max_arena_bytes,
            special.max_arena_bytes.defined() ? special.max_arena_bytes : special.arena_bytes));
  program.fast_paths.push_back(std::move(path));
  return numbers;
}

}  // namespace tw
