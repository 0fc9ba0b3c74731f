// Applies steps to a kernel of integers one by one, and compares its results behind each.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/kernel/interpreter.h"
#include "ir/schedule/schedule.h"
#include "support/diag.h"

namespace tw::test {

inline std::string text(const char* format, const auto&... values) {
  return llvm::formatv(format, values...).str();
}

// The bytes of the last argument, the kernel's output
inline std::vector<std::byte> results(const Kernel& kernel,
                                      const std::vector<KernelArgument>& inputs) {
  std::vector<KernelArgument> arguments = inputs;
  const std::string problem = error_text(interpret(kernel, arguments));
  REQUIRE_MESSAGE(problem == "", print(kernel));
  return arguments.back().bytes;
}

// The kernel that the steps make. Its results stay equal, to the bit.
inline Kernel stepwise(const Kernel& defined, const std::string& steps,
                       const std::vector<KernelArgument>& inputs) {
  const std::vector<std::byte> expected = results(defined, inputs);
  Expected<Schedule> schedule = parse_schedule("schedule {\n" + steps + "}\n");
  REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
  Kernel kernel = defined;
  for (const Step& step : schedule->steps) {
    CAPTURE(print(step));
    Expected<Kernel> next = tw::apply(kernel, step);
    REQUIRE_MESSAGE(bool(next), error_text(next.takeError()));
    kernel = std::move(*next);
    CHECK_MESSAGE(results(kernel, inputs) == expected, print(kernel));
  }
  CHECK(bool(tw::apply(defined, *schedule)));
  return kernel;
}

}  // namespace tw::test
