// Tools of the VDLA's tests: random instructions and race-free streams, a memory image with a
// stream in it, the GEMM of two threads.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "backends/vdla/assembly.h"
#include "backends/vdla/simulator.h"

namespace tw::vdla {

// DRAM with base registers 0 (inputs), 1 (outputs), 2 (all of it). The stream lies behind both.
struct Board {
  explicit Board(const std::vector<Instruction>& stream, uint32_t seed = 1,
                 uint64_t data_bytes = kData);
  explicit Board(const std::string& assembly, uint32_t seed = 1);
  static constexpr uint64_t kData = 1 << 17, kOutputs = 3 << 15;  // outputs begin at three quarters
  std::vector<uint8_t> dram;
  Launch launch;
};

// The configuration must be valid.
Outcome run(Board& board, const Config& config = {}, const SimulatorOptions& options = {});
std::vector<Instruction> assembled(const std::string& text);
std::string text_of(const std::vector<Diag>& diags);

using Random = std::mt19937;
int pick(Random& random, int low, int high);  // inclusive

// The instruction passes check_fields, but perhaps not check_range.
Instruction random_instruction(Random& random, const Config& config);
// Returns small instructions on overlapping slots, ordered by as few tokens as their conflicts
// need, with finish at the end.
std::vector<Instruction> random_stream(Random& random, const Config& config, int length);

// A product of (tiles * pixels) x (steps * k_blocks * 16) by 16 * out_blocks columns, int8,
// requantized: `threads` virtual threads and their tokens, written by hand.
struct GemmShape {
  int tiles = 4, steps = 2, pixels = 8, k_blocks = 2, out_blocks = 1;
};
std::vector<Instruction> gemm_stream(const GemmShape& shape, int threads,
                                     const Config& config = {});

struct TokenPlace {
  size_t index;
  bool Tokens::* token;
};
std::vector<TokenPlace> tokens_in(const std::vector<Instruction>& stream);
std::vector<Instruction> without(std::vector<Instruction> stream,
                                 std::initializer_list<TokenPlace> places);
// Pairs every push of a token with the pop that takes it.
std::vector<std::pair<TokenPlace, TokenPlace>> token_pairs(const std::vector<Instruction>& stream);

}  // namespace tw::vdla
