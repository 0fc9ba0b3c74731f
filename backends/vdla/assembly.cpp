#include "backends/vdla/assembly.h"

#include <algorithm>
#include <limits>

#include "support/lexer.h"

namespace tw::vdla {
namespace {

constexpr std::array<const char*, 4> kTokenNames = {"pop_prev", "pop_next", "push_prev",
                                                    "push_next"};

std::array<bool*, 4> flags(Tokens& t) {
  return {&t.pop_prev, &t.pop_next, &t.push_prev, &t.push_next};
}

// The value must fit the sign of the C++ type and the bits of the field.
template <class T>
bool fits(int64_t value, int bits) {
  if constexpr (std::is_signed_v<T>)
    return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
  return value >= 0 && value < int64_t{1} << bits;
}

Error parse_field(Lexer& lexer, Instruction& instruction) {
  Token name = lexer.next();
  TW_TRY(lexer.expect("="));
  Token at = lexer.peek();
  TW_ASSIGN(int64_t value, lexer.integer("a number"));
  bool known = false, small = false;
  std::visit(
      [&](auto& i) {
        visit_fields(i, [&](const char* field, auto& member, int, int bits) {
          using T = std::remove_reference_t<decltype(member)>;
          if (name.text != field) return;
          known = true;
          small = fits<T>(value, bits);
          if (small) member = static_cast<T>(value);
        });
      },
      instruction);
  if (!known)
    return lexer.error_at(
        name,
        llvm::formatv("{0} has no field '{1}'", operation_of(instruction).name, name.text).str());
  if (!small)
    return lexer.error_at(at, llvm::formatv("{0} does not fit in '{1}'", value, name.text).str());
  return Error::success();
}

Expected<Instruction> parse_instruction(Lexer& lexer) {
  Token name = lexer.peek();
  TW_ASSIGN(std::string text, lexer.identifier("an instruction"));
  auto found = std::find_if(kOperations.begin(), kOperations.end(),
                            [&](const Operation& o) { return o.name == text; });
  if (found == kOperations.end())
    return lexer.error_at(name, llvm::formatv("no instruction '{0}'", text).str());
  Instruction instruction = blank(*found);
  Tokens tokens;
  while (lexer.peek().kind == TokenKind::identifier && lexer.peek().line == name.line) {
    auto token = std::find(kTokenNames.begin(), kTokenNames.end(), lexer.peek().text);
    if (token == kTokenNames.end()) {
      TW_TRY(parse_field(lexer, instruction));
      continue;
    }
    if (found->op == 5) return lexer.error_here("finish has no tokens");
    *flags(tokens)[token - kTokenNames.begin()] = true;
    lexer.next();
  }
  if (!lexer.at_end() && lexer.peek().line == name.line)
    return lexer.expected("a token or a field");
  if (found->op != 5) set_tokens(instruction, tokens);
  return instruction;
}

}  // namespace

std::string disassemble(const Instruction& instruction) {
  const Operation& operation = operation_of(instruction);
  std::string text = operation.name;
  Tokens tokens = tokens_of(instruction);
  for (size_t i = 0; i < kTokenNames.size(); ++i)
    if (*flags(tokens)[i]) text += std::string(" ") + kTokenNames[i];
  std::vector<int64_t> defaults;
  Instruction plain = blank(operation);
  std::visit(
      [&](const auto& i) {
        visit_fields(i, [&](const char*, auto value, int, int) {
          defaults.push_back(static_cast<int64_t>(value));
        });
      },
      plain);
  size_t field = 0;
  std::visit(
      [&](const auto& i) {
        visit_fields(i, [&](const char* name, auto value, int, int) {
          const int64_t number = static_cast<int64_t>(value);
          if (number != defaults[field++]) text += llvm::formatv(" {0}={1}", name, number).str();
        });
      },
      instruction);
  return text;
}

std::string disassemble(const std::vector<Instruction>& stream) {
  std::string text;
  for (const Instruction& instruction : stream) text += disassemble(instruction) + "\n";
  return text;
}

Expected<std::vector<Instruction>> assemble(std::string_view text, std::string_view file) {
  Lexer lexer(text, file);
  std::vector<Instruction> stream;
  while (!lexer.at_end()) {
    TW_ASSIGN(Instruction instruction, parse_instruction(lexer));
    stream.push_back(instruction);
  }
  return stream;
}

std::vector<uint8_t> to_bytes(const std::vector<Instruction>& stream) {
  std::vector<uint8_t> bytes;
  bytes.reserve(stream.size() * kInstructionBytes);
  for (const Instruction& instruction : stream)
    for (uint64_t part : encode(instruction))
      for (int shift = 0; shift < 64; shift += 8)
        bytes.push_back(static_cast<uint8_t>(part >> shift));
  return bytes;
}

}  // namespace tw::vdla
