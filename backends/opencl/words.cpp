#include "backends/opencl/words.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "support/diag.h"

namespace tw::opencl {

std::string storage_type(DType t) {
  switch (t) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::f16:
    case DType::bf16:
    case DType::u16: return "ushort";
    case DType::i8: return "char";
    case DType::i16: return "short";
    case DType::i32: return "int";
    case DType::i64: return "long";
    case DType::u8:
    case DType::boolean: return "uchar";
    case DType::u32: return "uint";
    case DType::u64: return "ulong";
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2:
    case DType::string: break;  // the emitter refuses them
  }
  TW_UNREACHABLE("{0} is for storage", dtype_name(t));
}

std::string value_type(DType t) {
  if (t == DType::f16 || t == DType::bf16) return "float";
  return t == DType::boolean ? "int" : storage_type(t);
}

std::string unsigned_type(DType t) { return dtype_bytes(t) == 8 ? "ulong" : "uint"; }

std::string literal(double value, DType t) {
  const bool wide = t == DType::f64;
  if (std::isnan(value)) return wide ? "((double)NAN)" : "NAN";
  if (std::isinf(value))
    return std::string(value < 0 ? "(-"
                       : wide    ? "("
                                 : "") +
           (wide ? "(double)INFINITY" : "INFINITY") + (value < 0 || wide ? ")" : "");
  std::array<char, 64> buffer;
  const auto shortest = wide ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value)
                             : std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                             static_cast<float>(value));
  std::string text(buffer.data(), shortest.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!wide) text += "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

std::string literal(int64_t value, DType t) {
  if (is_float(t)) return literal(static_cast<double>(value), t);
  if (t == DType::u64) return std::to_string(static_cast<uint64_t>(value)) + "UL";
  const std::string text = std::to_string(value) + (t == DType::i64   ? "L"
                                                    : t == DType::u32 ? "U"
                                                                      : "");
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807L - 1L)";
  if (t == DType::i32 && value == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  return value < 0 ? "(" + text + ")" : text;
}

std::string bare(const std::string& text) {
  if (text.empty() || text.front() != '(' || text.back() != ')') return text;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0 && i + 1 < text.size()) return text;
  }
  return text.substr(1, text.size() - 2);
}

std::string Names::fresh(std::string_view wanted) {
  static const std::set<std::string, std::less<>> kReserved = {
      "auto",       "bool",      "break",     "case",      "char",       "const",     "constant",
      "continue",   "default",   "do",        "double",    "else",       "enum",      "event_t",
      "extern",     "false",     "float",     "for",       "global",     "goto",      "half",
      "if",         "image",     "inline",    "int",       "kernel",     "local",     "long",
      "pipe",       "private",   "quad",      "read_only", "read_write", "register",  "restrict",
      "return",     "sampler_t", "short",     "signed",    "size_t",     "sizeof",    "static",
      "struct",     "switch",    "true",      "typedef",   "uchar",      "uint",      "ulong",
      "uniform",    "union",     "unsigned",  "ushort",    "void",       "volatile",  "while",
      "write_only", "intptr_t",  "uintptr_t", "ptrdiff_t", "complex",    "imaginary", "INFINITY",
      "NAN",        "barrier",   "exp",       "exp2",      "expm1",      "log",       "log1p",
      "erfc",       "sqrt",      "tanh",      "erf",       "sin",        "cos",       "tan",
      "asin",       "acos",      "atan",      "floor",     "ceil",       "rint",      "trunc",
      "fabs",       "fmod",      "pow",       "fma",       "isnan",      "isinf",     "isgreater",
      "isless",     "select",    "min",       "max",       "abs"};
  std::string name;
  for (const char c : wanted) name += c == '.' ? '_' : c;
  bool taken = kReserved.contains(name) || name.ends_with("_at");
  for (const char* prefix : {"tw_", "get_", "vload", "vstore", "convert", "as_", "_"})
    taken |= name.starts_with(prefix);
  if (taken) name = "v_" + name;
  // A type's name with a number is a type: float4, int8, ...
  std::string stem = name;
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.pop_back();
  if (stem != name && kReserved.contains(stem)) name = "v_" + name;
  std::string unique = name;
  for (int i = 2; !taken_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace tw::opencl
