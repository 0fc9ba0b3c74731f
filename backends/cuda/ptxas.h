// Runs NVIDIA's assembler as a program: PTX to a cubin, with its report on each function.
#pragma once
#include <map>
#include <string>

#include "support/diag.h"

namespace tw::cuda {

struct PtxasFunction {
  int64_t registers = 0, stack_bytes = 0, spill_bytes = 0, shared_bytes = 0;
};
struct PtxasResult {
  std::string cubin;
  std::map<std::string, PtxasFunction> functions;
};

std::string find_ptxas();                               // empty: not found
std::string ptxas_version(const std::string& program);  // "V13.0.88"
// Errors: it refuses the text, spills registers, or repairs something by itself (its notes C75xx).
Expected<PtxasResult> run_ptxas(const std::string& program, const std::string& ptx,
                                const std::string& chip);
// Reads the assembler's report (-v), by function. Errors as above.
Expected<std::map<std::string, PtxasFunction>> read_ptxas_report(const std::string& report);

}  // namespace tw::cuda
