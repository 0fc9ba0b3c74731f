// The text form of instruction streams has one instruction on a line, `gemm pop_prev push_next
// acc=16 n0=4`. Fields with default values are left out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backends/vdla/isa.h"

namespace tw::vdla {

std::string disassemble(const Instruction& instruction);
std::string disassemble(const std::vector<Instruction>& stream);  // one line for each
Expected<std::vector<Instruction>> assemble(std::string_view text, std::string_view file = "");

std::vector<uint8_t> to_bytes(const std::vector<Instruction>& stream);  // bytes for the fetch unit

}  // namespace tw::vdla
