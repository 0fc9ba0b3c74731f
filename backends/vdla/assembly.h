// Text form of instruction streams: one instruction a line, `gemm pop_prev push_next acc=16 n0=4`;
// fields at their default are left out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backends/vdla/isa.h"

namespace tw::vdla {

std::string disassemble(const Instruction& instruction);
std::string disassemble(const std::vector<Instruction>& stream);  // a line each
Expected<std::vector<Instruction>> assemble(std::string_view text, std::string_view file = "");

std::vector<uint8_t> to_bytes(const std::vector<Instruction>& stream);  // what the fetch unit reads

}  // namespace tw::vdla
